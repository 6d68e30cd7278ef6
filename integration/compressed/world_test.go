package compressed

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// world is a server with a table whose ids idproxy gives, and an address on the way to that proxy
// where what passes is counted.
type world struct {
	*testing.T
	server  *servers.Server
	root    *sql.DB
	schema  string
	proxy   *harness.Proxy
	addr    string
	counted *atomic.Int64
	seen    int // sessions that ended
}

func newWorld(t *testing.T, server *servers.Server) *world {
	t.Helper()
	w := &world{T: t, server: server, schema: harness.Database(t, server), counted: new(atomic.Int64)}
	w.root = harness.Open(t, server.Config(w.schema), "")
	harness.MustExec(t, w.root, "CREATE TABLE t (id BIGINT PRIMARY KEY, v LONGTEXT)")
	w.proxy = harness.Start(t, harness.Spec{Config: fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, compression: on}]
sources: {ids: {segment: {start: 1000}}}
rules: [{table: %s.t, column: id, source: ids}]
limits: {id_wait: 1m} # disks are busy here
`, server.Addr, w.schema)})
	w.addr = w.counting(w.proxy.Addr("a"))
	return w
}

// counting returns an address that leads to another one, and counts.
func (w *world) counting(to string) string {
	var mu sync.Mutex
	var open []net.Conn
	return harness.Between(w.T, to, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	}, func(client, server net.Conn) [2]func() {
		mu.Lock()
		defer mu.Unlock()
		open = append(open, client, server)
		copying := func(to, from net.Conn) func() {
			return func() {
				defer to.Close()
				_, _ = io.Copy(to, io.TeeReader(from, counter{w.counted})) // it ends with the connection
			}
		}
		return [2]func(){copying(server, client), copying(client, server)}
	})
}

// counter counts what is written to it.
type counter struct{ *atomic.Int64 }

// Write implements io.Writer.
func (c counter) Write(b []byte) (int, error) {
	c.Add(int64(len(b)))
	return len(b), nil
}
