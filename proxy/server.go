package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// Config is what a Server is made of; it does not change while it runs.
type Config struct {
	Listeners    []Listener
	SecondReader decide.SecondReader // nil: none
	Logger       *slog.Logger        // nil: discard
	Refused      func(Refused)       // is told of statements; nil: nobody is
}

// Refused is a statement that was refused, or that an observing rule would have treated otherwise.
type Refused struct {
	Listener, User string
	Rule           string // empty: it is not known, or no single one
	Reason         string // one of rule.Reason's, or "observed"
	Statement      string // without its values
	Code           uint16 // of the error that the client saw; 0: it saw none
	Text           string // of that error, or what would have been done
}

// TLSMode says when the connection to the server uses TLS.
type TLSMode uint8

// AsClient is the default: TLS to the server if, and only if, the client uses
// it. Required refuses clients without TLS, Disabled offers them none.
const (
	AsClient TLSMode = iota
	Required
	Disabled
)

// Listener is one address that clients connect to, and its server.
type Listener struct {
	Name     string
	Listen   net.Addr
	Upstream net.Addr
	// ClientTLS offers TLS to clients; nil: none.
	ClientTLS *tls.Config
	// UpstreamTLS is for the connection to the server.
	UpstreamTLS     *tls.Config
	UpstreamTLSMode TLSMode
	// Greatest returns what ask.GreatestQuery asks for, over a connection of its own.
	// nil: it is asked over the client's, as it is after ErrLocked: the lock may
	// be the client's own, as LOCK TABLES in a dump takes it.
	Greatest func(ctx context.Context, schema, table string, column rule.Column) (uint64, error)
	// Ping asks the server whether it answers, over a connection of its own; nil: there is no
	// account to ask with.
	Ping func(ctx context.Context) error
	// OnHeld is told how long each command was held that was decided on; nil: nobody is.
	OnHeld func(time.Duration)
	// Definition returns what SHOW CREATE VIEW says of a view, nil of a table, where a
	// client may not see it; nil: there is no account to ask with.
	Definition func(ctx context.Context, schema, table string) ([]byte, error)
}

// ErrLocked is what Listener.Greatest answers when someone has locked the table.
var ErrLocked = errors.New("the table is locked")

// Address is a network address that is resolved when it is used.
type Address struct{ Net, Addr string }

// Network returns "tcp" or "unix".
func (a Address) Network() string { return a.Net }

// String returns host:port, or the path of a socket.
func (a Address) String() string { return a.Addr }

// Settings are what may change while sessions run.
type Settings struct {
	Rules           map[string]*rule.List      // by the listener's name
	Sources         map[string]idsource.Source // by the name that rules use
	Sessions        int
	Handshake       time.Duration
	Statement       int           // most bytes of a statement to hold
	ShutdownTimeout time.Duration // 0: sessions are cut at once
}

// Stats counts what the proxy did.
type Stats struct {
	Sessions  atomic.Int64 // open now
	Filled    atomic.Int64 // statements that were given ids
	IDs       atomic.Int64 // ids given
	Refused   atomic.Int64 // statements refused for their form
	Forwarded atomic.Int64 // statements passed without ids because their rule says so
	Observed  atomic.Int64 // statements that an observing rule saw
	LeftAlone atomic.Int64 // statements on tables that a wildcard matches and does not concern
	Unseen    atomic.Int64 // statements that may have written to tables with rules out of sight: CALL, texts that are not known
	Panics    atomic.Int64
}

// Server accepts clients on all listeners.
type Server struct {
	Stats Stats

	cfg       Config
	log       *slog.Logger
	live      atomic.Pointer[Settings]
	listeners []*listener

	notices *notices
	refused rule.Counts // statements that no single rule refused

	mu       sync.Mutex // guards sessions, draining, lastID, and what listeners listen on
	sessions map[*session]struct{}
	lastID   uint64 // number of the newest session
	draining bool
	wg       sync.WaitGroup // one per session
}

// New returns a Server that is not listening yet.
func New(cfg Config, live *Settings) *Server {
	srv := &Server{cfg: cfg, log: cfg.Logger, sessions: map[*session]struct{}{}, notices: newNotices()}
	if srv.log == nil {
		srv.log = slog.New(slog.DiscardHandler)
	}
	for _, l := range cfg.Listeners {
		made := &listener{Listener: l, srv: srv, tables: facts.New()}
		made.stats.OnHeld = l.OnHeld
		srv.listeners = append(srv.listeners, made)
	}
	srv.Set(live)
	return srv
}

// Set puts new settings in force, for open sessions too.
func (srv *Server) Set(live *Settings) {
	srv.live.Store(live)
	for _, l := range srv.listeners {
		rules := live.Rules[l.Name]
		if rules == nil {
			rules = rule.NewList(nil)
		}
		l.rules.Store(rules)
		l.tables.Withdraw(rules)
		l.tables.Forget() // they were asked for the columns of other rules
	}
}

func (srv *Server) settings() *Settings { return srv.live.Load() }

// listener is a Listener at work.
type listener struct {
	Listener
	srv    *Server
	ln     net.Listener
	rules  atomic.Pointer[rule.List]
	tables *facts.Tables
	stats  stats.Listener
	health health
}

func (l *listener) ruleBook() relay.RuleBook {
	return relay.RuleBook{List: l.rules.Load(), Fold: l.tables.Fold() != facts.FoldNo}
}

// Listen opens every listener's address, or none.
func (srv *Server) Listen() error {
	for i, l := range srv.listeners {
		ln, err := Listen(l.Listen.Network(), l.Listen.String())
		if err != nil {
			for _, open := range srv.listeners[:i] {
				open.ln.Close()
			}
			return fmt.Errorf("listener %s: %w", l.Name, err)
		}
		srv.mu.Lock()
		l.ln = ln
		srv.mu.Unlock()
	}
	for _, l := range srv.listeners {
		srv.log.Info("listening", "listen", l.ln.Addr().String(), "upstream", l.Upstream.String(), "listener", l.Name)
	}
	return nil
}

// Serve accepts clients until ctx is done. Then it stops accepting, closes
// sessions as they come between two transactions, and cuts what is left after
// Settings.ShutdownTimeout. It returns when all sessions have ended.
func (srv *Server) Serve(ctx context.Context) error {
	var accepting sync.WaitGroup
	for _, l := range srv.listeners {
		accepting.Go(l.accept)
	}
	<-ctx.Done()
	for _, l := range srv.listeners {
		l.ln.Close()
	}
	accepting.Wait()
	srv.drain()
	return nil
}

func (srv *Server) drain() {
	srv.mu.Lock()
	srv.draining = true
	open := len(srv.sessions)
	for s := range srv.sessions {
		srv.wg.Go(s.drain)
	}
	srv.mu.Unlock()
	timeout := srv.settings().ShutdownTimeout
	srv.log.Info("draining", "sessions", open, "timeout", timeout)
	cut := time.AfterFunc(timeout, func() {
		srv.mu.Lock()
		defer srv.mu.Unlock()
		srv.log.Warn("cutting sessions that did not end in time", "sessions", len(srv.sessions))
		for s := range srv.sessions {
			s.close(errDrained)
		}
	})
	srv.wg.Wait()
	cut.Stop()
	srv.notices.summary(srv.log)
}

// acceptPause is how long accepting waits after an error such as too many
// open files.
const acceptPause = 50 * time.Millisecond

func (l *listener) accept() {
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			l.srv.log.Error("accept", "listener", l.Name, "error", err)
			time.Sleep(acceptPause)
			continue
		}
		l.srv.start(l, conn)
	}
}

// start serves a client in a goroutine of its own, which owns conn.
func (srv *Server) start(l *listener, conn net.Conn) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	limit := srv.settings().Sessions
	if srv.draining || limit > 0 && len(srv.sessions) >= limit {
		srv.wg.Go(func() { refuseConn(conn, limit) })
		return
	}
	s := l.newSession(conn)
	srv.lastID++
	s.id = srv.lastID
	l.stats.Accepted.Add(1)
	srv.sessions[s] = struct{}{}
	srv.Stats.Sessions.Add(1)
	srv.wg.Go(func() {
		s.run()
		srv.ended(s)
	})
}

func refuseConn(conn net.Conn, limit int) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = conn.Write(wire.AppendERR(nil, 0, clienterr.TooManySessions(limit))) // it is told why, if it still listens
	}
}

func (srv *Server) ended(s *session) {
	srv.mu.Lock()
	delete(srv.sessions, s)
	s.l.stats.End(&s.stats)
	srv.mu.Unlock()
	srv.Stats.Sessions.Add(-1)
	s.log.Info("session ended", "reason", context.Cause(s.ctx), "duration", time.Since(s.started).Round(time.Millisecond))
}

func (l *listener) newSession(conn net.Conn) *session {
	s := &session{
		l:      l,
		client: conn,
		remote: conn.RemoteAddr().String(),
		log: l.srv.log.With(slog.Group("session", "listener", l.Name,
			"client", conn.RemoteAddr().String())),
		gone:    make(chan struct{}),
		started: time.Now(),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.c.Unseen = &l.srv.Stats.Unseen
	s.c.Failed = func(code uint16) { l.stats.Error(stats.Error{Code: code, Side: stats.Server}) }
	s.c.TablesChanged, s.c.Infile = l.tables.Forget, make(chan struct{}, 1)
	s.requests = relay.Requests{Conversation: &s.c, Rules: l.ruleBook, Limit: l.srv.settings().Statement, Commands: &s.stats.Commands}
	s.replies = relay.Replies{Conversation: &s.c}
	s.decider = decide.Decider{Tables: l.tables, Rules: l.ruleBook, Second: l.srv.cfg.SecondReader}
	return s
}
