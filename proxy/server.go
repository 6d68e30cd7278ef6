package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/bridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/limit"
	"idproxy/proxy/loop"
	"idproxy/proxy/relay"
	"idproxy/proxy/stats"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// New returns a Server that is not listening yet.
func New(cfg Config, live *Settings) *Server {
	srv := &Server{cfg: cfg, log: cfg.Logger, sessions: map[*session]struct{}{}, notices: newNotices(), key: sync.OnceValues(bridge.NewKey)}
	if srv.log == nil {
		srv.log = slog.New(slog.DiscardHandler)
	}
	if srv.cfg.Open == nil {
		srv.cfg.Open = Listen
	}
	for _, l := range cfg.Listeners {
		made := &listener{Listener: l, srv: srv}
		for _, u := range l.Upstreams {
			made.servers = append(made.servers, made.newServer(u, cfg.SecondReader))
		}
		made.choice = made.choose()
		made.failed = func(code uint16) {
			made.stats.Error(stats.Error{Code: code, Side: stats.Server})
			made.failedWith(code)
		}
		made.forgetAll = made.forget
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
		for _, s := range l.servers {
			s.tables.Withdraw(rules)
		}
		l.forget() // they were asked for the columns of other rules
	}
}

// Listen opens every listener's address, or none, and starts the loops.
func (srv *Server) Listen() error {
	for range srv.cfg.Loops {
		l, err := loop.New()
		if err != nil {
			return fmt.Errorf("event loop: %w", err)
		}
		srv.loops = append(srv.loops, l)
	}
	for i, l := range srv.listeners {
		ln, err := srv.cfg.Open(l.Listen.Network(), l.Listen.String())
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
		srv.log.Info("listening", "listen", l.ln.Addr().String(), "server.address", l.choice.String(), "listener", l.Name)
	}
	return nil
}

// Serve accepts clients until ctx is done, and drains then: Settings.DrainDelay later it stops
// accepting, closes sessions as they come between two transactions, and cuts what is left after
// Settings.ShutdownTimeout. It returns when all sessions have ended.
func (srv *Server) Serve(ctx context.Context) error {
	var accepting sync.WaitGroup
	for _, l := range srv.listeners {
		accepting.Go(l.accept)
		if l.mayEncrypt() {
			accepting.Go(func() { _, _ = srv.key() }) // before a client waits for it; an error comes again then
		}
	}
	stopWatching := srv.watchSilent()
	defer stopWatching()
	<-ctx.Done()
	srv.drainToTheEnd(func() {
		srv.StopAccepting()
		accepting.Wait()
	})
	srv.wg.Wait()
	srv.late.close()
	srv.notices.summary(srv.log)
	for _, l := range srv.loops {
		l.Close()
	}
	return nil
}

// StopAccepting closes what the server listens on, before Serve would. Whoever has copies of these
// sockets accepts in its place.
func (srv *Server) StopAccepting() {
	for _, l := range srv.listeners {
		l.ln.Close()
	}
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
			if others, ok := l.srv.notices.Due(l.Name + " accept"); ok {
				l.srv.log.Error("accept", "listener", l.Name, "error.message", err, "others", others)
			}
			time.Sleep(acceptPause)
			continue
		}
		l.srv.start(l, conn)
	}
}

// start serves a client in a goroutine of its own, which owns conn.
func (srv *Server) start(l *listener, conn net.Conn) {
	l.setOptions(conn)
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.phase >= Closing {
		srv.wg.Go(func() { refuseConn(conn, clienterr.Draining()) })
		return
	}
	s := l.newSession(conn, srv.lastID+1)
	if key, e := l.full(s); e != nil {
		srv.wg.Go(func() {
			l.reached(key, s.who.client(), e)
			refuseConn(conn, e)
		})
		return
	}
	srv.lastID++
	l.stats.Accepted.Add(1)
	srv.sessions[s] = struct{}{}
	l.open++
	srv.wg.Add(1)
	go s.run()
}

func refuseConn(conn net.Conn, why *mysql.MyError) {
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = conn.Write(wire.AppendERR(nil, 0, why)) // it is told, if it still listens
	}
}

func (l *listener) newSession(conn net.Conn, id uint64) *session {
	s := &session{
		l:      l,
		client: conn,
	}
	s.guest = &guest{Login: limit.Login{End: handshake{s}.outlast}}
	s.who.id, s.who.started = id, time.Now()
	s.who.setClient(conn.RemoteAddr().String())
	s.ctx.lane = &s.up
	s.c.SetPhase(relay.PhaseAuth) // from the start: a login that is under way is let finish
	s.c.Unseen, s.c.Failed, s.c.TablesChanged = &l.srv.Stats.Unseen, l.failed, l.forgetAll
	s.requests = relay.Requests{Conversation: &s.c, Limit: l.srv.settings().Statement, Commands: &s.stats.Commands}
	s.replies = relay.Replies{Conversation: &s.c}
	return s
}
