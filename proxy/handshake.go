package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// masked are the capabilities that the proxy cannot relay: those of compressed
// connections, which it could not read.
const masked = uint64(mysql.CLIENT_COMPRESS) | uint64(mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)

// handshake is the beginning of a session, up to the point where the relay takes over.
type handshake struct{ *session }

// run connects to the server, relays its own greeting and the client's
// response, and leaves the rest of the authentication to the relay: the
// scramble is the server's, so every exchange is valid as it is sent, and the
// proxy needs no password.
func (s handshake) run() error {
	greeting, raw, err := s.greet()
	if err != nil {
		return err
	}
	offered := greeting.Caps &^ masked
	serverTLS := offered&uint64(mysql.CLIENT_SSL) != 0
	if s.l.ClientTLS == nil || !serverTLS || s.l.UpstreamTLSMode == Disabled {
		offered &^= uint64(mysql.CLIENT_SSL)
	}
	greeting.SetCaps(raw, offered)
	if _, err := s.client.Write(wire.AppendPacket(nil, 0, raw)); err != nil {
		s.abandon(offered)
		return errClientGone
	}
	payload, seq, err := wire.ReadPacket(s.client, relay.MaxHandshake)
	if err != nil {
		s.abandon(offered)
		return readError(err)
	}
	response, err := wire.ParseResponse(payload, 0)
	if err != nil {
		return s.refuse(clienterr.Handshake(err), seq, offered)
	}
	caps := response.Caps & (offered | wire.ClientMySQL)
	if response.SSLRequest {
		if payload, seq, err = s.startTLS(payload, seq, caps); err != nil {
			return err
		}
		if response, err = wire.ParseResponse(payload, caps); err != nil {
			return s.refuse(clienterr.Handshake(err), seq, offered)
		}
	} else if s.l.UpstreamTLSMode == Required {
		return s.refuse(clienterr.TLSRequired(), seq, offered)
	}
	s.begin(greeting, caps)
	s.c.SetUser([]byte(response.User))
	wire.SetResponseCaps(payload, caps)
	return s.write(wire.AppendPacket(nil, seq, payload))
}

// begin sets the session up for the capabilities both sides agreed on.
func (s handshake) begin(greeting *wire.Greeting, caps uint64) {
	s.who.thread.Store(greeting.ThreadID)
	s.c.Begin(caps, greeting.MariaDB(), greeting.Number())
	if secure(s.client) != secure(s.server) {
		s.replies.Bridged = true
	}
	s.c.SetPhase(relay.PhaseAuth)
	s.c.Send(relay.Pending{Reply: relay.ReplyAuth})
}

// greet connects to the server and reads its greeting. When there is none, the
// client is told why in its place.
func (s handshake) greet() (*wire.Greeting, []byte, error) {
	dialer := net.Dialer{Timeout: s.l.srv.settings().Handshake}
	server, err := dialer.DialContext(s.ctx.handed(), s.l.Upstream.Network(), s.l.Upstream.String())
	s.l.heard(err)
	if err != nil {
		s.log(&s.up).Warn("server unreachable", "server.address", s.l.Upstream.String(), "error.message", err)
		return nil, nil, s.refuseFirst(err)
	}
	s.setServer(server)
	raw, _, err := wire.ReadPacket(server, relay.MaxHandshake)
	if err != nil {
		s.l.heard(fmt.Errorf("no greeting: %w", err))
		s.log(&s.up).Warn("server sent no greeting", "server.address", s.l.Upstream.String(), "error.message", err)
		return nil, nil, s.refuseFirst(fmt.Errorf("no greeting: %w", err))
	}
	if len(raw) > 0 && raw[0] == wire.ErrByte { // 1040, 1129, 1130: it is the client's to see
		_, _ = s.client.Write(wire.AppendPacket(nil, 0, raw)) // the session ends here anyway
		return nil, nil, fmt.Errorf("server refused the connection: %d %s", wire.ErrCode(raw), wire.ErrMessage(raw))
	}
	greeting, err := wire.ParseGreeting(raw)
	if err != nil {
		return nil, nil, s.refuseFirst(err)
	}
	return greeting, raw, nil
}

func (s handshake) refuseFirst(cause error) error {
	_, _ = s.client.Write(wire.AppendERR(nil, 0, clienterr.Unreachable(s.l.Upstream.String(), cause))) // the session ends here anyway
	return fmt.Errorf("server unreachable: %w", cause)
}

// refuse ends the login with an error behind the client's packet seq.
func (s handshake) refuse(e *mysql.MyError, seq byte, offered uint64) error {
	_, _ = s.client.Write(wire.AppendERR(nil, seq+1, e)) // the session ends here anyway
	s.abandon(offered)
	return e
}

// startTLS relays an SSLRequest, starts TLS on both sides, and reads the
// client's response over it. Both sides do it or neither, so that sequence
// numbers agree and a password in clear is as safe as the client thinks.
func (s handshake) startTLS(request []byte, seq byte, caps uint64) (payload []byte, last byte, err error) {
	wire.SetResponseCaps(request, caps)
	if caps&uint64(mysql.CLIENT_SSL) == 0 {
		return nil, 0, s.refuse(clienterr.Handshake(errors.New("TLS was not offered")), seq, caps)
	}
	client := tls.Server(s.client, s.l.ClientTLS)
	if err := client.HandshakeContext(s.ctx.handed()); err != nil {
		s.abandon(caps &^ uint64(mysql.CLIENT_SSL))
		return nil, 0, fmt.Errorf("TLS from the client: %w", err)
	}
	s.setClient(client)
	if payload, last, err = wire.ReadPacket(client, relay.MaxHandshake); err != nil {
		s.abandon(caps &^ uint64(mysql.CLIENT_SSL))
		return nil, 0, readError(err)
	}
	if err := s.write(wire.AppendPacket(nil, seq, request)); err != nil {
		return nil, 0, err
	}
	server := tls.Client(s.server, s.l.UpstreamTLS)
	if err := server.HandshakeContext(s.ctx.handed()); err != nil {
		_, _ = client.Write(wire.AppendERR(nil, last+1, clienterr.UpstreamTLS(s.l.Upstream.String(), err))) // the session ends here anyway
		return nil, 0, fmt.Errorf("TLS to the server: %w", err)
	}
	s.setServer(server)
	return payload, last, nil
}

func readError(err error) error {
	if errors.Is(err, wire.ErrPacketTooLarge) {
		return err
	}
	return fmt.Errorf("%w during login", errClientGone)
}

// abandonTime is how long the server gets to refuse a login that is abandoned.
const abandonTime = 2 * time.Second

// abandon ends a login that the client left.
func (s handshake) abandon(offered uint64) {
	if s.server != nil && s.server.SetDeadline(time.Now().Add(abandonTime)) == nil {
		abandonLogin(s.server, offered)
	}
}

// abandonLogin ends a login in a way that the server counts as a wrong password. It would count a
// connection that just closes as a broken handshake, and block the proxy's address after
// max_connect_errors of them. MySQL Router does the same.
func abandonLogin(server net.Conn, offered uint64) {
	seq := byte(1)
	if _, overTLS := server.(*tls.Conn); overTLS {
		seq = 2
	}
	if _, err := server.Write(wire.AppendPacket(nil, seq, dummyLogin(offered))); err != nil {
		return
	}
	for range 3 { // an auth switch may come before the ERR
		payload, seq, err := wire.ReadPacket(server, relay.MaxHandshake)
		if err != nil || len(payload) == 0 || payload[0] == wire.ErrByte || payload[0] == wire.OKByte {
			return
		}
		if _, err := server.Write(wire.AppendPacket(nil, seq+1, nil)); err != nil {
			return
		}
	}
}

// dummyLogin returns a HandshakeResponse41 of a user that does not exist.
func dummyLogin(offered uint64) []byte {
	caps := offered & uint64(mysql.CLIENT_PROTOCOL_41|mysql.CLIENT_SECURE_CONNECTION|mysql.CLIENT_PLUGIN_AUTH|mysql.CLIENT_LONG_PASSWORD)
	payload := make([]byte, 32)
	wire.SetResponseCaps(payload, caps|uint64(mysql.CLIENT_LONG_PASSWORD))
	payload[8] = mysql.DEFAULT_COLLATION_ID
	payload = append(payload, "idproxy-abandoned-login\x00"...)
	payload = append(payload, 20)
	payload = append(payload, make([]byte, 20)...)
	if caps&uint64(mysql.CLIENT_PLUGIN_AUTH) != 0 {
		payload = append(payload, mysql.AUTH_NATIVE_PASSWORD+"\x00"...)
	}
	return payload
}

// expire ends a login that takes too long. The handshake, woken by it, ends the
// login at the server in turn.
func (s handshake) expire() {
	s.ctx.end(errTimeout)
	s.l.stats.Silent.Add(1)
	host, _, err := net.SplitHostPort(s.who.remote)
	if err != nil { // a unix socket
		host = s.who.remote
	}
	if others, ok := s.l.srv.notices.Due(s.l.Name + " silent " + host); ok {
		s.log(nil).Warn("login took too long", "timeout", s.l.srv.settings().Handshake, "others", others)
	}
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.client.Close()
	if s.server != nil {
		s.hurry(s.server)
	}
}

// hurry gives the server of a login that has failed a last moment.
func (s handshake) hurry(server net.Conn) {
	if server.SetDeadline(time.Now().Add(abandonTime)) != nil {
		server.Close()
	}
}

// setClient replaces the client's connection, by one over TLS.
func (s handshake) setClient(c net.Conn) {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.client = c
}

// setServer sets or replaces the server's connection. It closes it when the
// session was closed meanwhile, and soon when its time is up.
func (s handshake) setServer(c net.Conn) {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.server = c
	switch {
	case s.closed:
		c.Close()
	case s.ctx.why() != nil:
		s.hurry(c)
	}
}
