package chaos

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// mode is what a relay does with what comes.
type mode uint8

const (
	pass         mode = iota
	hold              // nothing moves; later it goes on or is cut
	dropRequests      // what the client sends is lost
	dropReplies       // what the server sends is lost
	halfOpen          // the server's connections are closed, the client's are not
	refuse            // connections are closed
)

var modes = [...]string{pass: "pass", hold: "hold", dropRequests: "drop requests", dropReplies: "drop replies", halfOpen: "half-open", refuse: "refuse"}

func (m mode) String() string { return modes[m] }

// relay is an address that leads to a server, through a network that fails.
type relay struct {
	addr  string
	first string // where it led to at first
	ln    net.Listener
	wg    sync.WaitGroup

	mu      sync.Mutex
	to      string
	mode    mode
	changed chan struct{} // closed and replaced when mode changes
	clients map[net.Conn]struct{}
	servers map[net.Conn]struct{}
}

func newRelay(t testing.TB, to string) *relay {
	t.Helper()
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	r := &relay{addr: ln.Addr().String(), ln: ln, first: to, to: to, changed: make(chan struct{}), clients: map[net.Conn]struct{}{}, servers: map[net.Conn]struct{}{}}
	r.wg.Go(r.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		r.set(refuse)
		r.wg.Wait()
	})
	return r
}

func (r *relay) serve() {
	for {
		client, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.connect(client) })
	}
}

// connect joins a client with the server, once connections are let through.
func (r *relay) connect(client net.Conn) {
	defer client.Close() //nolint:errcheck // it may be closed already
	if !r.enter(client, r.clients) {
		return
	}
	defer r.leave(client, r.clients)
	if r.await(hold, halfOpen) == refuse {
		return
	}
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	server, err := net.DialTimeout("tcp", to, time.Second)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it may be closed already
	if !r.enter(server, r.servers) {
		return
	}
	defer r.leave(server, r.servers)
	var both sync.WaitGroup
	for _, way := range []struct {
		from, to net.Conn
		lost     mode
	}{{client, server, dropRequests}, {server, client, dropReplies}} {
		both.Go(func() {
			r.pump(way.to, way.from, way.lost)
			r.await(halfOpen)
			_, _ = client.Close(), server.Close()
		})
	}
	both.Wait()
}

func (r *relay) pump(to io.Writer, from io.Reader, lost mode) {
	b := make([]byte, 1<<15)
	for {
		n, err := from.Read(b)
		if now := r.await(hold); n > 0 && now != lost {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// await waits until the mode is none of those, and returns it.
func (r *relay) await(not ...mode) mode {
	for {
		r.mu.Lock()
		now, changed := r.mode, r.changed
		r.mu.Unlock()
		if !slices.Contains(not, now) {
			return now
		}
		<-changed
	}
}

func (r *relay) enter(c net.Conn, set map[net.Conn]struct{}) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mode == refuse {
		return false
	}
	set[c] = struct{}{}
	return true
}

func (r *relay) leave(c net.Conn, set map[net.Conn]struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(set, c)
}

// set changes the mode. What was held goes on with pass, everything else that
// was cut into is closed.
func (r *relay) set(m mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == halfOpen || m == refuse || r.mode == dropRequests || r.mode == dropReplies || r.mode == halfOpen {
		for c := range r.servers {
			_ = c.Close()
		}
	}
	if m == refuse || m == pass && r.mode != hold && r.mode != pass {
		for c := range r.clients {
			_ = c.Close()
		}
	}
	r.mode = m
	close(r.changed)
	r.changed = make(chan struct{})
}

// lead changes where the address leads, and cuts what is connected.
func (r *relay) lead(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	for c := range r.servers {
		_ = c.Close()
	}
}
