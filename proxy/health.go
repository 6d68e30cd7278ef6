package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"idproxy/proxy/dial"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// health is what is known of a listener's servers together.
type health struct {
	mu       sync.Mutex
	err      error     // why none can be used; nil: one can
	at       time.Time // when that was learned
	switches uint64    // how often another one was used, as the log has it
}

// heard notes that a server can be used, where err is nil, or why none can. It says so in the log
// when that is news. That this process has no descriptor left says nothing of servers.
func (l *listener) heard(err error) {
	if dial.Ours(err) {
		return
	}
	h := &l.health
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.err
	h.err, h.at = err, time.Now()
	used, switches := l.choice.Used()
	switch {
	case was == nil && err != nil:
		l.srv.log.Error("server lost", "listener", l.Name, "server.address", l.choice.String(), "error.message", err)
	case was != nil && err == nil:
		l.srv.log.Info("server is back", "listener", l.Name, "server.address", used)
	}
	if switches != h.switches {
		h.switches = switches
		l.srv.log.Warn("another server is used", "listener", l.Name, "server.address", used)
	}
}

// last returns what was learned last, and when.
func (h *health) last() (at time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, h.err
}

// How often a server is asked whether it answers. Without an account that takes a login that
// fails, which some servers write into their log: a login of a client that has just succeeded
// counts as an answer.
const (
	pingPeriod  = time.Second
	loginPeriod = 10 * time.Second
	pingTime    = 2 * time.Second
)

// CheckServers asks the servers of all listeners that are in force whether they answer, again and
// again until ctx is done.
func (srv *Server) CheckServers(ctx context.Context) {
	var checks sync.WaitGroup
	defer checks.Wait()
	running := map[*listener]context.CancelFunc{}
	for {
		inForce := srv.inForce()
		for l, stop := range running {
			if !slices.Contains(inForce, l) {
				stop()
				delete(running, l)
			}
		}
		for _, l := range inForce {
			if running[l] == nil {
				ctx, stop := context.WithCancel(ctx)
				running[l] = stop
				checks.Go(func() { l.check(ctx) })
			}
		}
		select {
		case <-srv.checked:
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return
		}
	}
}

func (srv *Server) inForce() []*listener {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return slices.Clone(srv.listeners)
}

func (l *listener) check(ctx context.Context) {
	tick := time.NewTicker(pingPeriod)
	defer tick.Stop()
	var last time.Time // that all were asked
	for {
		at, err := l.health.last()
		if l.choice.Several() {
			at = last // a client's login says nothing of the others
		}
		if l.hasAccount() || err != nil || time.Since(at) >= loginPeriod {
			last = time.Now()
			l.checkAll(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// checkAll asks all servers whether they answer.
func (l *listener) checkAll(ctx context.Context) {
	var asked sync.WaitGroup
	for i := range l.Upstreams {
		asked.Go(func() {
			l.choice.Check(ctx, l.connectTime(), i, func(ctx context.Context) error { return l.answers(ctx, l.servers[i]) })
		})
	}
	asked.Wait()
	if ctx.Err() == nil {
		l.heard(l.choice.Problem())
	}
}

// answers asks the server whether it answers. What it says to the account alone, which may have a
// wrong password, too many connections or a certificate that it does not trust, is not what it says
// to sessions.
func (l *listener) answers(ctx context.Context, s *server) error {
	u := &s.Upstream
	if u.Account != nil {
		err := l.pings(ctx, u)
		if _, unconnected := errors.AsType[*net.OpError](err); err == nil || unconnected {
			if s.denied.Swap(nil) != nil && err == nil {
				s.tables.Pardon()
			}
			return err
		}
		if l.greets(ctx, u) != nil {
			return err
		}
		if ctx.Err() == nil {
			s.denied.Store(&err)
		}
		if others, ok := l.srv.notices.Due(l.Name + " account " + u.Addr.String()); ok { // sessions can log in
			l.srv.log.Warn("the account cannot ask a server", "listener", l.Name, "server.address", u.Addr.String(), "error.message", err, "others", others)
		}
		return nil
	}
	return l.greets(ctx, u)
}

// pings asks the server with the account.
func (l *listener) pings(ctx context.Context, u *Upstream) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return u.Account.Ping(ctx)
}

// greets asks whether the server takes logins.
func (l *listener) greets(ctx context.Context, u *Upstream) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	server, err := dial.Dial(ctx, u.Addr)
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := server.SetDeadline(deadline); err != nil {
			server.Close()
			return err
		}
	}
	raw, _, err := wire.ReadPacket(server, protocol.MaxHandshake)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		l.srv.late.end(server, nil)
		return fmt.Errorf("no greeting within %v", pingTime)
	}
	defer server.Close()
	if err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}
	if len(raw) > 0 && raw[0] == wire.ErrByte {
		return fmt.Errorf("%d %s", wire.ErrCode(raw), wire.ErrMessage(raw))
	}
	greeting, err := wire.ParseGreeting(raw)
	if err != nil {
		return err
	}
	abandonLogin(server, greeting.Caps&^compression)
	return nil
}
