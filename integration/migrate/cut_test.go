package migrate

import (
	"io"
	"net"
	"sync"
)

// cutter relays connections until it cuts them; then it takes no others, until it is healed.
type cutter struct {
	mu   sync.Mutex
	down bool
	open []net.Conn
}

// join is for harness.Between.
func (c *cutter) join(client, server net.Conn) [2]func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open = append(c.open, client, server); c.down {
		client.Close()
		server.Close()
	}
	relay := func(to, from net.Conn) func() {
		return func() {
			_, _ = io.Copy(to, from)
			to.Close()
			from.Close()
		}
	}
	return [2]func(){relay(server, client), relay(client, server)}
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.down, c.open = true, nil
}

func (c *cutter) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = false
}
