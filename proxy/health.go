package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
)

// health is what is known of a listener's server.
type health struct {
	mu  sync.Mutex
	err error     // why it does not answer; nil: it does
	at  time.Time // when that was learned
}

// heard notes that the server answers, where err is nil, or why it does not. It says so in the log
// when that is news. That this process has no descriptor left says nothing of the server.
func (l *listener) heard(err error) {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return
	}
	h := &l.health
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.err
	h.err, h.at = err, time.Now()
	switch {
	case was == nil && err != nil:
		l.srv.log.Error("server lost", "listener", l.Name, "server.address", l.Upstream.String(), "error.message", err)
	case was != nil && err == nil:
		l.srv.log.Info("server is back", "listener", l.Name, "server.address", l.Upstream.String())
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

// CheckServers asks all listeners' servers whether they answer, again and again until ctx is done.
func (srv *Server) CheckServers(ctx context.Context) {
	var checks sync.WaitGroup
	for _, l := range srv.listeners {
		checks.Go(func() { l.check(ctx) })
	}
	checks.Wait()
}

func (l *listener) check(ctx context.Context) {
	tick := time.NewTicker(pingPeriod)
	defer tick.Stop()
	for {
		if at, err := l.health.last(); l.Ping != nil || err != nil || time.Since(at) >= loginPeriod {
			err := l.answers(ctx)
			if ctx.Err() != nil {
				return
			}
			l.heard(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// answers asks the server whether it answers.
func (l *listener) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	if l.Ping != nil {
		return l.Ping(ctx)
	}
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, l.Upstream.Network(), l.Upstream.String())
	if err != nil {
		return err
	}
	defer server.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := server.SetDeadline(deadline); err != nil {
			return err
		}
	}
	raw, _, err := wire.ReadPacket(server, relay.MaxHandshake)
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
	abandonLogin(server, greeting.Caps&^masked)
	return nil
}
