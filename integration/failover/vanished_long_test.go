//go:build long && linux

package failover

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/network"
	"idproxy/integration/servers"
)

// within runs do, which makes a socket, in the network namespace of a host.
func within[T any](h *network.Host, do func() (T, error)) (made T, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // only where this thread is back in its own namespace
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return made, err
	}
	defer own.Close()
	other, err := os.Open("/run/netns/" + h.Netns)
	if err != nil {
		return made, err
	}
	defer other.Close()
	if err := unix.Setns(int(other.Fd()), unix.CLONE_NEWNET); err != nil {
		return made, err
	}
	made, err = do()
	if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
		panic(back) // the thread is of no use to anybody
	}
	return made, err
}

// hosts makes a network of hosts.
func hosts(t *testing.T, n int) *network.Network {
	t.Helper()
	net := assert.Of(network.New(n)).Must(t)
	t.Cleanup(func() { assert.NoError(t, net.Close()) })
	return net
}

// vanish has two hosts lose all that they send each other.
func vanish(t *testing.T, a, b *network.Host) {
	t.Helper()
	assert.Must(t, a.Lose(b))
	assert.Must(t, b.Lose(a))
}

// TestClientVanishes: the host of a client vanishes in the middle of a transaction. The server's
// session ends within what tcp says, and its locks with it; without keepalive it stays.
func TestClientVanishes(t *testing.T) {
	server := harness.MariaDB(t)
	name, db := harness.Tables(t, server, "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
	for _, tt := range []struct {
		name, tcp string
		busy      bool          // a reply is under way when it vanishes
		bound     time.Duration // 0: it is not noticed
	}{
		{"keepalive", "{keepalive: 3s}", false, 3*time.Second + 3*time.Second},
		{"neither", "{keepalive: 0}", false, 0},
		{"a reply under way, user_timeout", "{keepalive: 3s, user_timeout: 4s}", true, 8 * time.Second},
		{"a reply under way, keepalive alone", "{keepalive: 3s}", true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := hosts(t, 1)
			p := harness.StartProxy(t, fmt.Sprintf("listeners: [{name: a, listen: '%s:0', upstream: %q}]\ntcp: %s\n", n.Here.IP, server.Addr, tt.tcp))
			c := server.Config(name)
			c.Addr, c.TLSConfig, c.AllowFallbackToPlaintext = p.Addr("a"), "", true
			c.Logger = &mysql.NopLogger{}
			c.DialFunc = func(_ context.Context, _, addr string) (net.Conn, error) {
				return within(n.Hosts[0], func() (net.Conn, error) { return net.Dial("tcp", addr) })
			}
			client := assert.Of(harness.Open(t, c, "").Conn(t.Context())).Must(t)
			var thread int64
			assert.Must(t, client.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&thread))
			for _, text := range []string{"BEGIN", "UPDATE t SET id = 3 WHERE id = 1"} {
				assert.Of(client.ExecContext(t.Context(), text)).Must(t)
			}
			time.Sleep(time.Second) // the client has said that it has the reply
			replied := time.Now()
			if tt.busy {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				go func() {
					var n int
					_ = client.QueryRowContext(ctx, "SELECT SLEEP(2)").Scan(&n) // nobody will know
				}()
				time.Sleep(500 * time.Millisecond)
				replied = time.Now().Add(1500 * time.Millisecond)
			}
			vanish(t, n.Here, n.Hosts[0])

			there := func() bool {
				return harness.Count(t, db, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %d", thread)) > 0
			}
			if tt.bound == 0 {
				time.Sleep(time.Until(replied.Add(15 * time.Second)))
				assert.True(t, there(), "the session has ended")
				harness.MustExec(t, db, fmt.Sprintf("KILL %d", thread))
				return
			}
			assert.Until(t, "the session ends", func() bool { return !there() })
			took := time.Since(replied)
			t.Logf("noticed after %v, of %v at most", took.Round(10*time.Millisecond), tt.bound)
			assert.True(t, took <= tt.bound+5*time.Second, "it took %v", took)
			harness.MustExec(t, db, "UPDATE t SET id = 1 WHERE id = 1") // its lock is gone
		})
	}
}

// TestServerVanishes: the host of the first server vanishes. Idle sessions with it end within what
// tcp says, and new ones go to the second within connect_timeout.
func TestServerVanishes(t *testing.T) {
	p := newPair(t, servers.MariaDB)
	n := hosts(t, 1)
	far := relayOn(t, n.Hosts[0], p.first.Addr)
	p.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: '127.0.0.1:0', upstreams: [%s, %s]}]
tcp: {keepalive: 3s}
limits: {connect_timeout: 2s}
admin: {listen: '127.0.0.1:0'}
`, far, p.second.Addr))
	db := p.open(t)
	idle := assert.Of(db.Conn(t.Context())).Must(t)
	defer idle.Close()
	time.Sleep(time.Second) // both ends have said that they have all
	began := time.Now()
	vanish(t, n.Here, n.Hosts[0])

	for _, what := range []string{"a new session", "the next one"} {
		at := time.Now()
		connectedTo(t, db, p.second)
		took := time.Since(at)
		t.Logf("%s is there after %v", what, took.Round(10*time.Millisecond))
		assert.True(t, took <= 10*time.Second, "%s took %v", what, took)
	}
	assert.Until(t, "the session with the server that vanished ends", func() bool { return p.listener(t).Sessions == 2 })
	t.Logf("the idle session ended after %v", time.Since(began).Round(10*time.Millisecond))
}

// relayOn listens on a host and passes connections on to a server.
func relayOn(t *testing.T, h *network.Host, to string) (addr string) {
	t.Helper()
	l := assert.Of(within(h, func() (net.Listener, error) { return net.Listen("tcp", h.IP+":0") })).Must(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			mu.Lock()
			open = append(open, c, s)
			mu.Unlock()
			for _, ends := range [][2]net.Conn{{c, s}, {s, c}} {
				all.Go(func() {
					_, _ = io.Copy(ends[0], ends[1]) // until either side is gone
					ends[0].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String()
}
