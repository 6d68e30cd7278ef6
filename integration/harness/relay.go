package harness

import (
	"io"
	"net"
	"sync"
	"testing"

	"idproxy/integration/assert"
)

// Copy relays one direction until either side is gone, and closes both.
func Copy(to, from net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either side does
	to.Close()
	from.Close()
}

// Between returns an address. For each client that connects there it runs the two functions that
// join returns: they relay the two directions until either side is gone. It calls end at the end of
// the test, before it waits for them.
func Between(t *testing.T, upstream string, end func(), join func(client, server net.Conn) [2]func()) (addr string) {
	t.Helper()
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", upstream)
			if err != nil {
				client.Close()
				continue
			}
			for _, direction := range join(client, server) {
				all.Go(direction)
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		end()
		all.Wait()
	})
	return l.Addr().String()
}
