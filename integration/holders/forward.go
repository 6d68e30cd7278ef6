package holders

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
)

// Forward is an address that leads to one server and then to another, as a
// name or a virtual address does.
type Forward struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	to    string
	conns map[net.Conn]*atomic.Bool // whether they are forgotten
}

// NewForward makes an address that leads to another one until the test ends.
func NewForward(t testing.TB, to string) *Forward {
	t.Helper()
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	f := &Forward{ln: ln, to: to, conns: map[net.Conn]*atomic.Bool{}}
	f.wg.Go(f.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		f.Lead(to)
		f.wg.Wait()
	})
	return f
}

// Addr is the address.
func (f *Forward) Addr() string { return f.ln.Addr().String() }

func (f *Forward) serve() {
	for {
		client, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		server, err := net.Dial("tcp", f.to)
		if err != nil {
			f.mu.Unlock()
			_ = client.Close()
			continue
		}
		forgotten := new(atomic.Bool)
		f.conns[client], f.conns[server] = forgotten, forgotten
		f.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			f.wg.Go(func() {
				_, _ = io.Copy(way{pair[0], forgotten}, pair[1]) // ends when either does
				_ = errors.Join(client.Close(), server.Close())
			})
		}
	}
}

// way is a connection that takes what is written and delivers it unless it is forgotten.
type way struct {
	to        io.Writer
	forgotten *atomic.Bool
}

func (w way) Write(b []byte) (int, error) {
	if w.forgotten.Load() {
		return len(b), nil
	}
	return w.to.Write(b)
}

// Forget leaves what is connected without an answer, and without an end, as a
// firewall does that was restarted. New connections lead on.
func (f *Forward) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, forgotten := range f.conns {
		forgotten.Store(true)
	}
}

// Lead changes where the address leads, and cuts what is connected.
func (f *Forward) Lead(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}
