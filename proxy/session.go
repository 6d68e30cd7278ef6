package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/compress"
	"idproxy/proxy/decide"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/protocol"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
)

// session is one client connection and its one server connection. It owns
// both: run closes them before it returns.
//
// It has two lanes, [toServer] and [toClient], which goroutines run, or a loop that serves many
// sessions. Both write to the client, under clientMu.
type session struct {
	l     *listener
	at    *place // nil before the greeting
	who   identity
	stats stats.Session

	// client and server change during the handshake alone, under connMu, which
	// lets close run at any time.
	connMu sync.Mutex
	client net.Conn
	server net.Conn
	closed bool

	departs atomic.Uint32 // a departure

	up, down eventloop.Task // to the server, to the client

	c        protocol.Conn
	requests protocol.RequestParser
	replies  protocol.ReplyParser
	held     *decide.Statement // while it is decided on
	account                    // of that command
	// elsewhere is what is to be taken back once the text of the held command was read; nil: nothing.
	elsewhere *elsewhere
	in        *inlet // from the client; toServer's
	holding   int    // bytes at its front that are the held command's

	clientMu sync.Mutex // held from reading a reply's bytes off the machine to having written them
	// Contexts of toServer: gone ends when no reply will come any more, ctx when the session has an end, with the reason.
	gone, ctx eventloop.Context
	guest     *guest
}

// Why sessions end, as logs say it.
var (
	errClientGone = errors.New("client closed the connection")
	errServerGone = errors.New("server closed the connection")
	errDrained    = errors.New("idproxy drains")
	errClosed     = errors.New("closed by an operator")
	errTimeout    = errors.New("login took longer than limits.handshake")
	errOutlasted  = errors.New("limits.logins is reached, and no login waits for its client longer")
)

// recover keeps a fault in one session from the others. It is a defect when it
// has anything to do.
func (s *session) recover() {
	if v := recover(); v != nil {
		s.l.srv.Stats.Panics.Add(1)
		s.log(nil).Error("session panicked", "exception.message", v, "exception.stacktrace", string(debug.Stack()))
		s.close(errors.New("internal error"))
	}
}

// close ends the session; the first cause given is the one that is logged.
func (s *session) close(cause error) {
	if cause != nil {
		s.ctx.End(cause)
	}
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.closed = true
	s.client.Close()
	if s.server != nil {
		s.server.Close()
	}
}

// end is the last that happens to a session.
func (s *session) end() {
	s.loggedIn()
	s.close(nil)
	srv := s.l.srv
	srv.mu.Lock()
	delete(srv.sessions, s)
	s.l.stats.End(&s.stats)
	s.l.open--
	s.l.sessions--
	s.l.goneIfEmpty()
	srv.emptied()
	srv.mu.Unlock()
	s.l.guests.Go(&s.guest.Guest)
	defer srv.wg.Done()
	s.log(nil).Info("session ended", "reason", s.ctx.Cause(), "duration", time.Since(s.who.started).Round(time.Millisecond),
		"compression", compress.Of(s.client))
}

// loggedIn stops the clock of the login.
func (s *session) loggedIn() {
	if s.guest.clock != nil {
		s.guest.clock.Stop()
		s.guest.clock = nil
		s.l.srv.logins.Over(&s.guest.Login)
	}
}

// leave ends the session if it is to depart, and may now: a command that comes later is
// not sent, and one that is there is answered first. A reply stops being pending before the client has all of it, so
// whoever writes to the client is waited for.
func (s *session) leave() bool {
	when := departure(s.departs.Load())
	if when == stays {
		return false
	}
	s.clientMu.Lock()
	defer s.clientMu.Unlock()
	switch {
	case s.unread():
		return false
	case when == betweenCommands:
		return s.c.Abandon()
	}
	return s.c.Leave()
}

// unread reports whether bytes of the client wait to be read.
func (s *session) unread() bool {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	return eventloop.Unread(s.client)
}

// write sends b to the server.
func (s *session) write(b []byte) error {
	if err := writeBy(&s.up, s.server, b); err != nil {
		return errServerGone
	}
	return nil
}

// tell sends b to the client. The caller holds clientMu.
func (s *session) tell(by *eventloop.Task, b []byte) error { return writeBy(by, s.client, b) }

func writeBy(by *eventloop.Task, c net.Conn, b []byte) error {
	if c, ok := c.(*eventloop.Conn); ok {
		return c.WriteBy(by, b)
	}
	_, err := c.Write(b)
	return err
}

// lockClient locks clientMu. Who holds it may wait for a client that is slow to read.
func (s *session) lockClient(by *eventloop.Task) {
	if !s.clientMu.TryLock() {
		by.Handoff()
		s.clientMu.Lock()
	}
}

// sideOf says what keeps others from reading a connection.
func sideOf(c net.Conn) authbridge.Side {
	switch c := c.(type) {
	case *compress.Conn:
		return sideOf(c.NetConn())
	case *tls.Conn:
		return authbridge.TLS
	case *net.UnixConn:
		return authbridge.Socket
	}
	return authbridge.Plain
}

// clientClosed passes the end of the client's stream on, so that a client that
// only stopped sending still gets its replies.
func (s *session) clientClosed(err error) {
	if bad, ok := errors.AsType[*compress.Error](err); ok {
		s.unreadable(bad)
		return
	}
	half, ok := s.server.(interface{ CloseWrite() error })
	if !errors.Is(err, io.EOF) || !ok || half.CloseWrite() != nil {
		s.close(errClientGone)
		return
	}
	s.ctx.End(errClientGone)
}

// unreadable ends a session whose client compresses in a way that cannot be read. It hears why, as
// from a server, if no reply is on its way to it.
func (s *session) unreadable(err *compress.Error) {
	s.lockClient(&s.up)
	defer s.clientMu.Unlock()
	if s.replies.Left == 0 {
		s.l.stats.Error(stats.Error{Code: err.Code, Side: stats.Proxy})
		_ = s.tell(&s.up, wire.AppendERR(nil, 0, clienterr.Compressed(err.Code, err))) // the session ends here anyway
	}
	s.close(err)
}

// elsewhere is what a session has been changed from, to read a text as it was read.
type elsewhere struct {
	schema []byte // the default one; nil: it stayed
	mode   string // sql_mode, if it is moded
	moded  bool
}
