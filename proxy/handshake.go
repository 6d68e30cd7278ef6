package proxy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/inside"
	"idproxy/proxy/authbridge"
	"idproxy/proxy/catalog"
	"idproxy/proxy/choice"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/compress"
	"idproxy/proxy/dial"
	"idproxy/proxy/origin"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// compression are the capabilities of compressed connections. They are between the client and the
// proxy: no server is asked for one.
const (
	zlib        = uint64(mysql.CLIENT_COMPRESS)
	zstd        = uint64(mysql.CLIENT_ZSTD_COMPRESSION_ALGORITHM)
	compression = zlib | zstd
)

// handshake is the beginning of a session, up to the point where the relay takes over.
type handshake struct{ *session }

// run connects to the server, relays its own greeting and the client's
// response, and leaves the rest of the authentication to the relay: the
// scramble is the server's, so every exchange is valid as it is sent, and the
// proxy needs no password.
func (s handshake) run() error {
	from, err := s.origin()
	if err != nil {
		return err
	}
	if err := s.come(from); err != nil {
		return err
	}
	hello, err := s.greet(from)
	if err != nil {
		return err
	}
	greeting, raw := hello.greeting, hello.raw
	offered, hasTLS := s.offer(greeting)
	greeting.SetCaps(raw, offered)
	if s.l.UpstreamTLSMode == Required && !hasTLS {
		e := clienterr.NoUpstreamTLS(s.at.Addr.String())
		_, _ = s.client.Write(wire.AppendERR(nil, 0, e)) // the session ends here anyway
		s.abandon(offered)
		return e
	}
	s.guest.Awaited.Store(true)
	if _, err := s.client.Write(wire.AppendPacket(nil, 0, raw)); err != nil {
		s.abandon(offered)
		return errClientGone
	}
	r, err := s.respond(offered)
	s.guest.Awaited.Store(false)
	if err != nil {
		return err
	}
	if e := s.userFull(r.User); e != nil {
		return s.refuse(e, r.seq, offered)
	}
	if s.l.ClientsNeedTLS && sideOf(s.client) == authbridge.Plain {
		return s.refuse(clienterr.TLSRequired(offered&uint64(mysql.CLIENT_SSL) != 0), r.seq, offered)
	}
	if err := s.compress(&r); err != nil {
		return s.refuse(clienterr.CompressionLevel(err), r.seq, offered)
	}
	if !s.l.UpstreamTLSMode.toServer(hasTLS, r.request != nil) {
		r.agreed &^= uint64(mysql.CLIENT_SSL)
		return s.begin(greeting, r)
	}
	r.agreed |= uint64(mysql.CLIENT_SSL)
	if err := s.startTLS(r); err != nil {
		return err
	}
	return s.begin(greeting, r)
}

// compress takes what client and proxy agreed on out of the client's response. The client's connection
// is compressed once the login is over.
func (s handshake) compress(r *response) error {
	asked := r.agreed & compression
	r.agreed &^= compression
	if asked == 0 {
		return nil
	}
	method := compress.Zlib()
	if asked&zstd != 0 {
		level := byte(0)
		r.payload, level = r.TakeLevel(r.payload)
		if asked&zlib == 0 { // else both sides take that
			var err error
			if method, err = compress.Zstd(level); err != nil {
				return err
			}
		}
	}
	s.setClient(compress.New(s.client, method, s.c.Asked))
	return nil
}

// offer returns the capabilities that the client is offered, and whether the server has TLS.
func (s handshake) offer(greeting *wire.Greeting) (caps uint64, hasTLS bool) {
	caps = greeting.Caps &^ compression
	if s.l.Compression {
		caps |= zlib
		if !greeting.MariaDB() { // its clients know no zstd
			caps |= zstd
		}
	}
	hasTLS = caps&uint64(mysql.CLIENT_SSL) != 0
	caps &^= uint64(mysql.CLIENT_SSL)
	if s.l.ClientTLS != nil && (hasTLS || s.l.UpstreamTLSMode != AsClient) {
		caps |= uint64(mysql.CLIENT_SSL)
	}
	return caps, hasTLS
}

// response is what the client answers the greeting.
type response struct {
	*wire.Response
	request []byte // for TLS, in front of it; nil: there was none
	payload []byte
	seq     byte
	agreed  uint64 // the capabilities that both sides have
}

// respond reads the client's response, over TLS if it asks for that.
func (s handshake) respond(offered uint64) (r response, err error) {
	if r.payload, r.seq, err = wire.ReadPacket(s.client, maxFirst); err != nil {
		if errors.Is(err, wire.ErrPacketTooLarge) && origin.Header4th(r.seq) {
			return r, s.refuse(clienterr.Handshake(errStranger), 0, offered)
		}
		s.abandon(offered)
		return r, readError(err)
	}
	if r.Response, err = wire.ParseResponse(r.payload, 0); err != nil {
		return r, s.refuse(clienterr.Handshake(err), r.seq, offered)
	}
	r.agreed = r.Caps & (offered | wire.ClientMySQL)
	if !r.SSLRequest {
		return r, nil
	}
	if r.agreed&uint64(mysql.CLIENT_SSL) == 0 {
		return r, s.refuse(clienterr.Handshake(errors.New("TLS was not offered")), r.seq, offered)
	}
	client := tls.Server(s.client, s.l.ClientTLS)
	if err := client.HandshakeContext(s.ctx.Detached()); err != nil {
		s.abandon(offered)
		return r, fmt.Errorf("TLS from the client: %w", err)
	}
	s.setClient(client)
	r.request = r.payload
	if r.payload, r.seq, err = wire.ReadPacket(client, protocol.MaxHandshake); err != nil {
		s.abandon(offered)
		return r, readError(err)
	}
	if r.Response, err = wire.ParseResponse(r.payload, r.agreed); err != nil {
		return r, s.refuse(clienterr.Handshake(err), r.seq, offered)
	}
	return r, nil
}

// maxFirst bounds a client's first packet. The beginnings of both kinds of PROXY headers, read as the
// length of a packet, are above.
const maxFirst = 512 << 10

// errStranger is said of a header that is read as a login.
var errStranger = errors.New("a PROXY header from a network that proxy_protocol.accept does not have: add the balancer's network, or have the balancer send none")

// begin sets the session up for the capabilities both sides agreed on, and sends the client's
// response.
func (s handshake) begin(greeting *wire.Greeting, r response) error {
	s.who.thread.Store(greeting.ThreadID)
	s.c.Begin(r.agreed, greeting.MariaDB(), greeting.Number(), r.Schema)
	s.c.SetUser([]byte(r.User))
	s.c.SetPhase(protocol.PhaseAuth)
	s.c.Send(protocol.Pending{Reply: protocol.ReplyAuth})
	wire.SetResponseCaps(r.payload, r.agreed)
	sides := authbridge.Sides{Client: sideOf(s.client), Server: sideOf(s.server)}
	if sides.Alike() {
		return s.write(wire.AppendPacket(nil, r.seq, r.payload))
	}
	s.c.Login = authbridge.New(sides, authbridge.Greeting{
		Plugin: cmp.Or(r.Plugin, greeting.Plugin), Nonce: greeting.Scramble, Factors: r.agreed&wire.MultiFactor != 0,
	}, s.l.srv.key)
	if s.c.Login.Blanks(r.Plugin) {
		r.Blank()
	}
	return s.write(wire.AppendPacket(nil, r.seq-s.c.Login.Shift(), r.payload))
}

// origin returns where the client is. What stands in front says so, if it is known to.
func (s handshake) origin() (origin.Origin, error) {
	if !s.l.Balancers.Has(s.client.RemoteAddr()) {
		return origin.Of(s.client), nil
	}
	s.guest.Awaited.Store(true)
	from, err := origin.Read(s.client)
	s.guest.Awaited.Store(false)
	if err != nil {
		_, _ = s.client.Write(wire.AppendERR(nil, 0, clienterr.Handshake(err))) // the session ends here anyway
		return from, err
	}
	if from.Client != nil {
		s.who.setClient(from.Client.String())
	}
	return from, nil
}

// hello is a server's greeting.
type hello struct {
	greeting *wire.Greeting
	raw      []byte // its payload
}

// greet connects to a server, tells it where the client is if it is to know, and reads its greeting.
// When there is none, the client is told why in its place.
func (s handshake) greet(from origin.Origin) (h hello, err error) {
	err = s.l.choice.Try(s.ctx.Detached(), s.l.connectTime(), func(ctx context.Context, server int) (err error) {
		h, err = s.greeted(ctx, s.l.servers[server], from)
		return err
	})
	refusal := refusalOf(err)
	if refusal != nil && !s.l.choice.Several() {
		s.l.heard(nil) // it answers
	} else if why := s.ctx.Cause(); err == nil || why == nil || errors.Is(why, errTimeout) { // else it says nothing of the server
		s.l.heard(err)
	}
	switch {
	case refusal != nil:
		_, _ = s.client.Write(wire.AppendPacket(nil, 0, refusal.packet)) // the session ends here anyway
	case err != nil:
		_, _ = s.client.Write(wire.AppendERR(nil, 0, clienterr.Unreachable(s.l.choice.String(), err))) // likewise
		s.noteKept(err)
		err = fmt.Errorf("server unreachable: %w", err)
	}
	return h, err
}

// noteKept logs what a client is not told of why it got no server.
func (s handshake) noteKept(err error) {
	_, reference := inside.Text(err)
	if reference == "" {
		return
	}
	if others, ok := s.l.srv.notices.Due(reference); ok {
		s.log(&s.up).Warn("no server can be used", "error.message", err, "reference", reference, "others", others)
	}
}

// refusalOf returns what all servers said in place of a greeting; nil: not all did, or not the same.
func refusalOf(err error) (same *refusedError) {
	all, several := errors.AsType[dial.Failed](err)
	if !several {
		all = dial.Failed{err}
	}
	for _, one := range all {
		refusal, is := errors.AsType[*refusedError](one)
		if !is || same != nil && wire.ErrCode(refusal.packet) != wire.ErrCode(same.packet) {
			return nil
		}
		same = refusal
	}
	return same
}

// refusedError is what a server says that refuses connections: 1040, 1129, 1130. It is the client's
// to see.
type refusedError struct{ packet []byte }

// Is reports that the server answered.
func (r *refusedError) Is(target error) bool { return target == choice.ErrAnswered }

// Error returns what the server says.
func (r *refusedError) Error() string {
	return fmt.Sprintf("server refused the connection: %d %s", wire.ErrCode(r.packet), wire.ErrMessage(r.packet))
}

// greeted connects to one server and reads its greeting. Where there are others, it has no more time
// for that than for the connect.
func (s handshake) greeted(ctx context.Context, to *server, from origin.Origin) (h hello, err error) {
	server, err := dial.Dial(ctx, to.Addr)
	if err != nil {
		s.log(&s.up).Warn("server unreachable", "server.address", to.Addr.String(), "error.message", err)
		return h, err
	}
	s.l.srv.setOptions(server, s.l.Name)
	s.setServer(server)
	if err := s.tell(from); err != nil {
		s.unsetServer()
		return h, err
	}
	inTime := func() bool { return true }
	if s.l.choice.Several() {
		inTime = context.AfterFunc(ctx, func() { _ = server.SetReadDeadline(time.Unix(1, 0)) }) // it wakes the read
	}
	raw, _, err := wire.ReadPacket(server, protocol.MaxHandshake)
	if late := !inTime(); late || err != nil {
		err = fmt.Errorf("no greeting: %w", cmp.Or(context.Cause(ctx), err))
		s.log(&s.up).Warn("server sent no greeting", "server.address", to.Addr.String(), "error.message", err)
		if late {
			s.l.srv.late.end(s.yieldServer(), raw)
			return h, err
		}
		s.unsetServer()
		return h, err
	}
	if len(raw) > 0 && raw[0] == wire.ErrByte {
		s.unsetServer()
		return h, &refusedError{raw}
	}
	greeting, err := wire.ParseGreeting(raw)
	if err != nil {
		s.unsetServer()
		return h, err
	}
	s.settle(to.at(server.RemoteAddr()))
	if catalog.IsForeign(greeting.Version) {
		s.learnPlain(greeting.Version)
	}
	return hello{greeting, raw}, nil
}

// tell tells the server where the client is.
func (s handshake) tell(from origin.Origin) error {
	if s.l.TellOrigin == 0 {
		return nil
	}
	header, err := s.l.TellOrigin.Header(from)
	if err != nil {
		return fmt.Errorf("PROXY header: %w", err)
	}
	_, err = s.server.Write(header)
	return err
}

// refuse ends the login with an error behind the client's packet seq.
func (s handshake) refuse(e *mysql.MyError, seq byte, offered uint64) error {
	_, _ = s.client.Write(wire.AppendERR(nil, seq+1, e)) // the session ends here anyway
	s.abandon(offered)
	return e
}

// startTLS starts TLS to the server. A client that speaks TLS has asked for it; for another one, the
// fixed part of its response does: from there the server takes the capabilities.
func (s handshake) startTLS(r response) error {
	const fixed = 32
	request, seq := r.request, r.seq-1
	if request == nil {
		request, seq = bytes.Clone(r.payload[:fixed]), r.seq
	}
	wire.SetResponseCaps(request, r.agreed)
	if err := s.write(wire.AppendPacket(nil, seq, request)); err != nil {
		return err
	}
	server := tls.Client(s.server, s.at.TLS)
	if err := server.HandshakeContext(s.ctx.Detached()); err != nil {
		_, _ = s.client.Write(wire.AppendERR(nil, r.seq+1, clienterr.UpstreamTLS(s.at.Addr.String(), err))) // the session ends here anyway
		return fmt.Errorf("TLS to the server: %w", err)
	}
	s.setServer(server)
	return nil
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
		payload, seq, err := wire.ReadPacket(server, protocol.MaxHandshake)
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
	s.l.stats.Silent.Add(1)
	host, _, err := net.SplitHostPort(s.who.client())
	if err != nil { // a unix socket
		host = s.who.client()
	}
	if others, ok := s.l.srv.notices.Due(s.l.Name + " silent " + host); ok {
		s.log(nil).Warn("login took too long", "timeout", s.l.srv.settings().Handshake, "others", others)
	}
	s.giveUp(errTimeout)
}

// giveUp ends a login in the middle.
func (s handshake) giveUp(cause error) {
	s.ctx.End(cause)
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
	case s.ctx.Cause() != nil:
		s.hurry(c)
	}
}

// settle has the session be at a server.
func (s handshake) settle(at *place) {
	s.at = at
	s.requests.Rules = at.decider.Rules
}

// unsetServer closes a server's connection that is not the session's after all.
func (s handshake) unsetServer() { s.yieldServer().Close() }

// yieldServer takes it from the session.
func (s handshake) yieldServer() net.Conn {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	server := s.server
	s.server = nil
	return server
}
