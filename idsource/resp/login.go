package resp

import (
	"context"
	"net"
	"net/netip"
	"time"

	"idproxy/idsource/access"
)

const (
	guessPause = 200 * time.Millisecond // between two passwords of a host, once one was wrong
	guessTime  = time.Minute            // for so long
	maxHosts   = 10_000                 // of which that is noted
)

// login makes the client a user. A wrong password changes nothing for the client and is logged.
// The next password from the same host then has to wait, over any connection, right or wrong.
// Otherwise a client that tries many at once would learn the right one at once.
func (cl *client) login(ctx context.Context, name, password string) bool {
	host := hostOf(cl.addr)
	if wait := cl.s.turn(host); wait > 0 {
		if wait > cl.s.cfg.patience {
			cl.quit = true
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
	}
	var u *access.User
	known := false
	if users := cl.s.cfg.Users; users != nil {
		u, known = users.Named(name, password), users.Bearing(password) != nil
	}
	if u == nil {
		if !known { // else it is a name that is no user's any more, and no guess
			cl.s.wrong(host)
		}
		cl.s.logins.Warn(cl.s.cfg.Logger, host, "login for ids failed", "client.address", cl.addr, "user.name", name[:min(len(name), 64)])
		return false
	}
	cl.user = u
	return true
}

// hostOf is what an address has in common with others of its host, which has a network of 64 bits where
// it is one of IPv6. Clients of a unix socket are one.
func hostOf(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return ""
	}
	if ip := at.Addr().Unmap(); ip.Is4() {
		return ip.String()
	}
	network, _ := at.Addr().WithZone("").Prefix(64) // it has as many bits
	return network.String()
}

// turn is how long a host has to wait with a password.
func (s *Server) turn(host string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tries[host]
	if !ok || time.Since(t.wrong) > guessTime {
		delete(s.tries, host)
		return 0
	}
	wait := max(0, time.Until(t.next))
	if wait <= s.cfg.patience { // otherwise the password is not tried at all
		t.next = time.Now().Add(wait + guessPause)
		s.tries[host] = t
	}
	return wait
}

// tries is when a host gave a wrong password last, and when it may give the next.
type tries struct{ wrong, next time.Time }

// wrong notes that a host gave a wrong password.
func (s *Server) wrong(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tries) >= maxHosts {
		clear(s.tries)
	}
	t, now := s.tries[host], time.Now()
	t.wrong = now
	if next := now.Add(guessPause); next.After(t.next) {
		t.next = next
	}
	s.tries[host] = t
}
