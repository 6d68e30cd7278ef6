package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/relay"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
)

// session is one client connection and its one server connection. It owns
// both: run closes them before it returns.
//
// Two goroutines drive it. The one in toServer alone reads from the client and
// writes to the server; the one in toClient alone reads from the server. Both
// write to the client, under clientMu.
type session struct {
	l  *listener
	id uint64 // among all of the process
	// remote is the client's address, and thread the session's number at the server, 0 before the
	// login.
	remote string
	thread atomic.Uint32
	log    *slog.Logger
	stats  stats.Session

	// client and server change during the handshake alone, under connMu, which
	// lets close run at any time.
	connMu sync.Mutex
	client net.Conn
	server net.Conn
	closed bool

	c        relay.Conversation
	requests relay.Requests
	replies  relay.Replies
	decider  decide.Decider
	held     *decide.Statement // while it is decided on
	outcome  stats.Kind        // of that command
	// elsewhere is what is to be taken back once the text of the held command was read.
	elsewhere elsewhere
	in        *inlet // from the client; toServer's
	holding   int    // bytes at its front that are the held command's

	clientMu sync.Mutex    // held from reading a reply's bytes off the machine to having written them
	gone     chan struct{} // closed when no reply will come any more
	ctx      context.Context
	cancel   context.CancelCauseFunc // why the session ended
	login    *time.Timer
	draining atomic.Bool
	started  time.Time
}

// Why sessions end, as logs say it.
var (
	errClientGone = errors.New("client closed the connection")
	errServerGone = errors.New("server closed the connection")
	errDrained    = errors.New("idproxy is shutting down")
	errClosed     = errors.New("closed by an operator")
	errTimeout    = errors.New("login took longer than limits.handshake")
)

// run serves the session from the accepted connection to its end.
func (s *session) run() {
	defer s.close(nil)
	defer s.recover()
	s.login = time.AfterFunc(s.l.srv.settings().Handshake, handshake{s}.expire)
	defer s.login.Stop()
	if err := (handshake{s}).run(); err != nil {
		s.close(err)
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(s.gone)
		defer s.recover()
		s.toClient()
	})
	s.toServer()
	wg.Wait()
}

// recover keeps a fault in one session from the others. It is a defect when it
// has anything to do.
func (s *session) recover() {
	if v := recover(); v != nil {
		s.l.srv.Stats.Panics.Add(1)
		s.log.Error("session panicked", "panic", v, "stack", string(debug.Stack()))
		s.close(errors.New("internal error"))
	}
}

// close ends the session; the first cause given is the one that is logged.
func (s *session) close(cause error) {
	if cause != nil {
		s.cancel(cause)
	}
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.closed = true
	s.client.Close()
	if s.server != nil {
		s.server.Close()
	}
}

// drain closes the session once it is between two transactions. It waits for a
// client that is slow to read its reply.
func (s *session) drain() {
	s.draining.Store(true)
	if s.leave() {
		s.close(errDrained)
	}
}

// leave ends the session between two transactions: a command that comes later is
// not sent. A reply stops being pending before the client has all of it, so
// whoever writes to the client is waited for.
func (s *session) leave() bool {
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	return s.c.Leave()
}

// toServer relays the client's bytes until the client closes.
func (s *session) toServer() {
	in := newInlet(s.client)
	s.in = in
	defer in.release()
	for {
		had := in.w - in.r
		if err := in.more(); err != nil {
			s.clientClosed(err)
			return
		}
		s.stats.FromClient.Add(uint64(in.w - in.r - had))
		for in.r < in.w {
			n, act := s.requests.Next(in.bytes())
			if act == relay.ActMore {
				break
			}
			if act == relay.ActReady {
				if err := s.ready(s.requests.Checking); err != nil {
					s.stop(err)
					return
				}
				continue
			}
			s.holding = n
			if err := s.act(act, in.bytes()[:n]); err != nil {
				s.stop(err)
				return
			}
			in.consume(s.holding)
		}
	}
}

// stop ends the session after err in toServer. When the server is gone, toClient
// still gives the client what the server sent last, or says which ids are in
// doubt, and closes the session then.
func (s *session) stop(err error) {
	if errors.Is(err, errServerGone) {
		s.server.Close()
		return
	}
	s.close(err)
}

func (s *session) act(act relay.Action, b []byte) error {
	var err error
	switch act {
	case relay.ActForward:
		if s.c.Ended.Load() { // else the commands, which are pending since requests found them, keep it from ending
			return errDrained
		}
		return s.write(b)
	case relay.ActStatement:
		if !s.c.Decide() {
			return errDrained
		}
		err = s.statement(b)
		s.c.Decided()
	case relay.ActTooLarge:
		s.stats.Commands.Add(stats.Refused, stats.Query)
		err = s.answer(clienterr.HeldTooLarge(s.requests.Limit), s.requests.Seq)
	}
	if err == nil && s.draining.Load() && s.leave() { // it was answered here
		return errDrained
	}
	return err
}

func (s *session) write(b []byte) error {
	if _, err := s.server.Write(b); err != nil {
		return errServerGone
	}
	return nil
}

// clientClosed passes the end of the client's stream on, so that a client that
// only stopped sending still gets its replies.
func (s *session) clientClosed(err error) {
	half, ok := s.server.(interface{ CloseWrite() error })
	if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
		s.close(errClientGone)
		return
	}
	s.cancel(errClientGone)
}

// toClient relays the server's bytes until the server closes.
func (s *session) toClient() {
	in := newInlet(s.server)
	defer in.release()
	for {
		had := in.w - in.r
		if err := in.more(); err != nil {
			s.serverClosed()
			return
		}
		s.stats.FromServer.Add(uint64(in.w - in.r - had))
		if err := s.relay(in); err != nil {
			s.close(err)
			return
		}
	}
}

// relay gives the client what can be given of the bytes read.
func (s *session) relay(in *inlet) error {
	used, ev, err := s.give(in.bytes())
	in.consume(used)
	if err != nil {
		return errClientGone
	}
	if ev&relay.EventDenied != 0 {
		s.denied()
	}
	if ev&relay.EventRefused != 0 {
		return clienterr.Bridge()
	}
	if ev&relay.EventLoggedIn != 0 {
		s.login.Stop()
		s.stats.LoggedIn.Store(true)
	}
	if s.draining.Load() && s.leave() {
		return errDrained
	}
	return nil
}

// give feeds the server's bytes to the machine and writes what comes out of it
// to the client.
func (s *session) give(b []byte) (used int, ev relay.Event, err error) {
	s.clientMu.Lock()
	defer s.clientMu.Unlock() // when feed panics too, for toServer may wait for it
	out, used, ev := s.replies.Feed(b)
	if len(out) > 0 {
		_, err = s.client.Write(out)
	}
	return used, ev, err
}

// serverClosed ends the session when the server did.
func (s *session) serverClosed() {
	s.tellLost()
	s.close(errServerGone)
}

// tellLost answers an injected INSERT that was waiting for its reply with the
// ids it was given.
func (s *session) tellLost() {
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	r, ok := s.c.Watching().(*relay.InsertReply)
	if !ok {
		return
	}
	e, seq := r.Lost(s.replies.Forward, s.replies.Left > 0)
	if e == nil {
		return
	}
	s.log.Warn("server lost with an INSERT in flight", "error", e.Message)
	_, _ = s.client.Write(wire.AppendERR(nil, seq+1, e)) // the client may be gone too
}

// answer sends an error made here as the reply to a command whose last frame
// had sequence number seq.
func (s *session) answer(e *mysql.MyError, seq byte) error {
	s.l.stats.Error(stats.Error{Code: e.Code, Side: stats.Proxy})
	return s.deliver(wire.AppendERR(nil, seq+1, e))
}

// deliver sends a reply made here behind the replies that the client waits for.
func (s *session) deliver(local []byte) error {
	if s.c.Waiting() >= relay.MaxPending {
		if err := s.quiet(); err != nil {
			return err
		}
	}
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	if !s.c.Answerable(local) {
		return nil
	}
	if _, err := s.client.Write(local); err != nil {
		return errClientGone
	}
	return nil
}

// secure reports whether a server or client takes a connection for one that a
// password may cross in clear.
func secure(c net.Conn) bool {
	switch c.(type) {
	case *tls.Conn, *net.UnixConn:
		return true
	}
	return false
}
