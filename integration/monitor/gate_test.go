package monitor

import (
	"io"
	"net"
	"sync"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// gate is a plain relay to a server that can be shut: connections are cut then, and new ones
// refused.
type gate struct {
	t      *testing.T
	server string
	addr   string

	mu    sync.Mutex
	l     net.Listener
	conns []net.Conn
	all   sync.WaitGroup
}

// newGate returns an open one.
func newGate(t *testing.T, server string) *gate {
	t.Helper()
	g := &gate{t: t, server: server, addr: harness.FreeAddr(t)}
	g.open()
	t.Cleanup(func() {
		g.shut()
		g.all.Wait()
	})
	return g
}

func (g *gate) open() {
	g.t.Helper()
	l := assert.Of(net.Listen("tcp", g.addr)).Must(g.t)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.l = l
	g.all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", g.server)
			if err != nil {
				client.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, client, server)
			g.mu.Unlock()
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				g.all.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // it ends when either side does
					pair[0].Close()
					pair[1].Close()
				})
			}
		}
	})
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.l.Close()
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}
