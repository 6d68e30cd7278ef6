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

	"idproxy/proxy/authbridge"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/limit"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rule"
)

// New returns a Server that is not listening yet.
func New(cfg Config, live *Settings) *Server {
	srv := &Server{cfg: cfg, checked: make(chan struct{}, 1), log: cfg.Logger, sessions: map[*session]struct{}{}, notices: newNotices(), key: sync.OnceValues(authbridge.NewKey)}
	if srv.log == nil {
		srv.log = slog.New(slog.DiscardHandler)
	}
	if srv.cfg.Open == nil {
		srv.cfg.Open = Listen
	}
	for _, l := range cfg.Listeners {
		made := srv.newListener(l, &kin{})
		made.kin.add(made)
		srv.listeners = append(srv.listeners, made)
	}
	srv.Set(live)
	return srv
}

// Set puts new settings in force, for open sessions too.
func (srv *Server) Set(live *Settings) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.set(live)
}

// set is Set for a caller that holds mu. Sessions of a listener that is taken away keep its rules.
func (srv *Server) set(live *Settings) {
	before := srv.live.Swap(&current{live, make(chan struct{})})
	for _, l := range srv.listeners {
		rules := live.Rules[l.Name]
		if rules == nil {
			rules = rule.NewList(nil)
		}
		l.kin.follow(rules)
	}
	if before != nil {
		close(before.over)
	}
}

// Listen opens every listener's address, or none, and starts the loops.
func (srv *Server) Listen() error {
	for range srv.cfg.Loops {
		l, err := eventloop.New()
		if err != nil {
			return fmt.Errorf("event loop: %w", err)
		}
		srv.loops = append(srv.loops, l)
	}
	srv.mu.Lock()
	defer srv.mu.Unlock()
	for i, l := range srv.listeners {
		d, err := srv.open(l)
		if err != nil {
			for _, one := range srv.listeners[:i] {
				one.door.Close()
			}
			return err
		}
		l.enter(d)
	}
	for _, l := range srv.listeners {
		l.sayListening()
	}
	return nil
}

// Serve accepts clients until ctx is done, and drains then: Settings.DrainDelay later it stops
// accepting, closes sessions as they come between two transactions, and cuts what is left after
// Settings.ShutdownTimeout. It returns when all sessions have ended.
func (srv *Server) Serve(ctx context.Context) error {
	srv.mu.Lock()
	srv.accepts = true
	for _, l := range srv.listeners {
		srv.accept(l)
	}
	srv.mu.Unlock()
	stopWatching := srv.watchSilent()
	defer stopWatching()
	<-ctx.Done()
	srv.drainToTheEnd(func() {
		srv.StopAccepting()
		srv.accepting.Wait()
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
	srv.mu.Lock()
	defer srv.mu.Unlock()
	srv.stopped = true
	for _, l := range srv.listeners {
		if l.door != nil { // nil: it did not come to listening
			l.door.Close()
		}
	}
}

// acceptPause is how long accepting waits after an error such as too many
// open files.
const acceptPause = 50 * time.Millisecond

func (d *door) accept() {
	for {
		conn, err := d.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if others, ok := d.srv.notices.Due(d.name() + " accept"); ok {
				d.srv.log.Error("accept", "listener", d.name(), "error.message", err, "others", others)
			}
			time.Sleep(acceptPause)
			continue
		}
		d.start(conn)
	}
}

// start serves a client in a goroutine of its own, which owns conn.
func (d *door) start(conn net.Conn) {
	srv := d.srv
	srv.setOptions(conn, d.name())
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.phase >= Closing || d.to == nil {
		srv.wg.Go(func() { refuseConn(conn, clienterr.Draining()) })
		return
	}
	l := d.to
	s := l.newSession(conn, srv.lastID+1)
	if key, e := l.full(s); e != nil {
		srv.wg.Go(func() {
			l.reached(key, s.who.client(), e)
			refuseConn(conn, e)
		})
		return
	}
	srv.lastID++
	s.l.open++
	s.l.sessions++
	s.l.stats.Accepted.Add(1)
	srv.sessions[s] = struct{}{}
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
	s.ctx.Task, s.gone.Task = &s.up, &s.up
	s.c.SetPhase(protocol.PhaseAuth) // from the start: a login that is under way is let finish
	s.c.Unseen, s.c.Failed, s.c.TablesChanged = &l.srv.Stats.Unseen, l.failed, l.forgetAll
	s.requests = protocol.RequestParser{Conn: &s.c, Limit: l.srv.settings().Statement, Commands: &s.stats.Commands}
	s.replies = protocol.ReplyParser{Conn: &s.c}
	return s
}
