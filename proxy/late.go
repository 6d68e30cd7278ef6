package proxy

import (
	"net"
	"sync"
	"time"

	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
)

// How long a greeting is waited for that no session waits for any more, and on how many connections.
const (
	lateTime = 30 * time.Second
	lateMost = 100
)

// lateGreetings are connections to servers that did not greet in time. One that closes before the
// login has ended counts as a broken handshake, and a server blocks an address after
// max_connect_errors of them.
type lateGreetings struct {
	wg sync.WaitGroup

	mu   sync.Mutex // guards all below
	open map[net.Conn]struct{}
	over bool
}

// end ends the login on a connection when the greeting comes, if raw is not that already. It owns the
// connection.
func (l *lateGreetings) end(server net.Conn, raw []byte) {
	if !l.add(server) || server.SetDeadline(time.Now().Add(lateTime)) != nil {
		l.drop(server)
		return
	}
	l.wg.Go(func() {
		defer l.drop(server)
		var err error
		if raw == nil {
			if raw, _, err = wire.ReadPacket(server, protocol.MaxHandshake); err != nil {
				return
			}
		}
		if greeting, err := wire.ParseGreeting(raw); err == nil {
			abandonLogin(server, greeting.Caps&^compression)
		}
	})
}

func (l *lateGreetings) add(server net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over || len(l.open) >= lateMost {
		return false
	}
	if l.open == nil {
		l.open = map[net.Conn]struct{}{}
	}
	l.open[server] = struct{}{}
	return true
}

func (l *lateGreetings) drop(server net.Conn) {
	server.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, server)
}

// close gives all of them up.
func (l *lateGreetings) close() {
	l.mu.Lock()
	l.over = true
	for server := range l.open {
		server.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
