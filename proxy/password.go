package proxy

import (
	"errors"

	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
)

// password takes on what the login needs read of the client, as one side of the session is more
// secure than the other.
func (s toServer) password(packet []byte) error {
	payload, seq := packet[wire.HeaderLen:], packet[wire.HeaderLen-1]
	err := error(authbridge.Error("the client's packet is larger than any password"))
	if len(payload) == wire.PayloadLen(packet) {
		err = s.c.Login.FromClient(payload, carrier{s, seq})
	}
	if _, unbridged := errors.AsType[authbridge.Error](err); !unbridged {
		return err
	}
	e := clienterr.Bridge(err)
	s.l.stats.Error(stats.Error{Code: e.Code, Side: stats.Proxy})
	s.lockClient(&s.up)
	defer s.clientMu.Unlock()
	_ = s.tell(&s.up, wire.AppendERR(nil, seq+1, e)) // the session ends here anyway
	return e
}

// carrier sends the packets of a login that answer packet seq of the client. It implements
// bridge.Carrier.
type carrier struct {
	toServer
	seq byte
}

// ToServer wipes its own copy of the packet.
func (c carrier) ToServer(payload []byte) error {
	packet := wire.AppendPacket(nil, c.seq-c.c.Login.Shift(), payload)
	defer clear(packet)
	return c.write(packet)
}

// ToClient implements bridge.Carrier.
func (c carrier) ToClient(payload []byte) error {
	c.lockClient(&c.up)
	defer c.clientMu.Unlock()
	if c.tell(&c.up, wire.AppendPacket(nil, c.seq+1, payload)) != nil {
		return errClientGone
	}
	return nil
}

// Await implements bridge.Carrier.
func (c carrier) Await(key <-chan []byte) (text []byte, ok bool) {
	defer c.gone.Release()
	select {
	case text, ok = <-key:
	case <-c.gone.Done():
	}
	return text, ok
}
