package observability

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// balancer is what docs/monitoring.md has for HAProxy. Its arguments are where it listens, how it
// checks, and twice an address and its admin port.
const balancer = `
defaults
  mode tcp
  timeout connect 2s
  timeout client 1m
  timeout server 1m
  timeout check 5s
frontend mysql
  bind %s
  default_backend idproxy
backend idproxy
  balance roundrobin
%s
  default-server check inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions
  server a %s port %s
  server b %s port %s
`

// What its check is: sessions of a process that is not ready are cut, or stay while it drains.
const (
	cutting = "  option httpchk GET /readyz?listener=a"
	keeping = "  option httpchk GET /readyz?listener=a&draining=404\n  http-check disable-on-404"
)

// portOf is the port of an address.
func portOf(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }

// behindHAProxy starts HAProxy in front of two proxies and returns where it listens, and its log.
func behindHAProxy(t *testing.T, check, a, adminA, b, adminB string) (addr string, log func() string) {
	t.Helper()
	addr = harness.FreeAddr(t)
	return addr, harness.HAProxy(t, fmt.Sprintf(balancer, addr, check, a, portOf(adminA), b, portOf(adminB))).Log
}

// downs returns how often HAProxy has marked a proxy down. A machine that is busy enough lets a check of
// a proxy that is well pass its time, too.
func downs(log string) int64 { return int64(strings.Count(log, " is DOWN")) }

// isDown reports whether the last that HAProxy said of a proxy is that it is down.
func isDown(log, name string) bool {
	return strings.LastIndex(log, "/"+name+" is DOWN") > strings.LastIndex(log, "/"+name+" is UP")
}

// recycling are clients that connect for every ten statements, as pools recycle connections.
type recycling struct {
	pause        time.Duration           // behind each statement
	refused      func(*recycling, error) // is told of connections that fail
	done, failed atomic.Int64
	mu           sync.Mutex
	errs         map[string]int // by their texts, without numbers
	stop         context.CancelFunc
	all          sync.WaitGroup
}

func (r *recycling) fail(err error) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs[regexp.MustCompile(`[0-9]+`).ReplaceAllString(err.Error(), "?")]++
}

// end stops the clients and returns their errors.
func (r *recycling) end() map[string]int {
	r.stop()
	r.all.Wait()
	return r.errs
}

// recycle starts clients.
func recycle(t *testing.T, pool *sql.DB, clients int, r *recycling) *recycling {
	t.Helper()
	stop, cancel := context.WithCancel(t.Context())
	r.errs, r.stop = map[string]int{}, cancel
	for range clients {
		r.all.Go(func() {
			for stop.Err() == nil {
				conn, err := pool.Conn(context.Background())
				if err != nil {
					r.refused(r, err)
					continue
				}
				for range 10 {
					if _, err := conn.ExecContext(context.Background(), "INSERT INTO t (a) VALUES (1)"); err != nil {
						r.fail(err)
						break
					}
					r.done.Add(1)
					time.Sleep(r.pause)
				}
				_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // it closes the connection
				conn.Close()
			}
		})
	}
	t.Cleanup(func() { r.end() })
	return r
}

// compare compares what the clients were told with the table, and returns its rows.
func (r *recycling) compare(t *testing.T, pool *sql.DB) (rows int64) {
	t.Helper()
	rows, done := harness.Count(t, pool, "SELECT COUNT(*) FROM t"), r.done.Load()
	distinct := harness.Count(t, pool, "SELECT COUNT(DISTINCT id) FROM t")
	assert.True(t, rows >= done && rows == distinct, "%d rows, %d distinct, %d acknowledged", rows, distinct, done)
	t.Logf("compared: %d rows", rows)
	return rows
}

// TestBalancer puts two proxies with one store behind HAProxy and takes the store away from one of
// them: it leaves the balancer, and no statement fails but those that were under way there.
func TestBalancer(t *testing.T) {
	server := harness.MariaDB(t)
	db, kept := harness.Database(t, server), harness.Database(t, server)
	store := newGate(t, server.Addr)
	dsn := harness.StoreDSN(server, kept)
	config := "stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main, step: 200, max_step: 200}}}\nrules: [{table: %s.t, column: id, source: ids}]\n"
	a := start(t, server, db, fmt.Sprintf(config, dsn, db))
	b := start(t, server, db, fmt.Sprintf(config, strings.Replace(dsn, server.Addr, store.addr, 1), db))
	harness.MustExec(t, a.open(t, 1), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")

	addr, log := behindHAProxy(t, cutting, a.Addr("a"), a.admin, b.Addr("a"), b.admin)
	pool := harness.Open(t, server.Config(db), addr)
	pool.SetMaxOpenConns(8)
	assert.Until(t, "HAProxy takes clients", func() bool { return pool.PingContext(t.Context()) == nil })

	const clients = 8
	load := recycle(t, pool, clients, &recycling{refused: func(*recycling, error) {}, pause: 10 * time.Millisecond}) // a connection that fails is no statement
	used := func(w *watched) float64 { return w.metric(t, "ids_issued_total", `source="ids"`) }
	assert.Until(t, "both are used", func() bool { return used(a) > 500 && used(b) > 500 })
	failed, early := load.failed.Load(), downs(log())
	assert.True(t, failed <= clients*early, "%d failed while all was well", failed)
	load.failed.Store(0)
	store.shut()
	assert.Until(t, "b is not ready", func() bool { return b.status(t, "/readyz?listener=a") == 503 })
	before := load.done.Load()
	assert.Until(t, "the others go on", func() bool { return load.done.Load() > before+3000 })
	assert.Until(t, "HAProxy has seen it", func() bool { // and what was under way has ended
		return isDown(log(), "b") && b.metric(t, "sessions", `listener="a"`) == 0
	})
	lost, cuts := load.failed.Load(), downs(log())-early
	assert.True(t, cuts != 0 && lost <= clients*cuts, "%d statements failed, want those that were under way, %d at most each time that HAProxy marked a proxy down, which was %d times", lost, clients, cuts)
	after := used(b)
	assert.Until(t, "b gives no ids for two seconds", func() bool { // sessions that were logging in may still get some
		last := after
		time.Sleep(2 * time.Second)
		after = used(b)
		return after == last
	})
	store.open()
	assert.Until(t, "b is used again", func() bool { return used(b) > after+500 })
	n := load.failed.Load() - lost
	assert.True(t, n <= clients*(downs(log())-early-cuts), "%d failed when the store was back", n)
	errs := load.end()
	load.compare(t, pool)
	t.Logf("%d statements failed when b lost its store: %v", lost, errs)
}

// TestRollingRestart restarts two proxies behind HAProxy, one after the other, under clients whose
// pools recycle their connections. With drain.delay no statement fails, and no connection.
func TestRollingRestart(t *testing.T) {
	t.Run("with a delay", func(t *testing.T) {
		t.Parallel()
		assert.Equal(t, "statements or connections failed", rollingRestart(t, "drain: {delay: 10s, spread: 1s}\n", 20*time.Millisecond), 0)
	})
	t.Run("negative control", func(t *testing.T) {
		t.Parallel()
		failed := rollingRestart(t, "", 0)
		assert.True(t, failed != 0, "without a delay nothing fails either: the test finds nothing")
	})
}

func rollingRestart(t *testing.T, drain string, pause time.Duration) (failed int64) {
	server := harness.MariaDB(t)
	db, kept := harness.Database(t, server), harness.Database(t, server)
	config := fmt.Sprintf("listeners: [{name: a, listen: %%q, upstream: %q}]\nadmin: {listen: %%q}\n%s"+
		"stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main}}}\nrules: [{table: %s.t, column: id, source: ids}]\n",
		server.Addr, drain, harness.StoreDSN(server, kept), db)
	var addrs, admins [2]string
	var proxies [2]*harness.Proxy
	begin := func(i int) {
		t.Helper()
		proxies[i] = harness.Start(t, harness.Spec{Plain: true, MayFail: true, Config: fmt.Sprintf(config, addrs[i], admins[i])})
	}
	for i := range proxies {
		addrs[i], admins[i] = harness.FreeAddr(t), harness.FreeAddr(t)
		begin(i)
	}
	addr, _ := behindHAProxy(t, keeping, addrs[0], admins[0], addrs[1], admins[1])
	pool := harness.Open(t, server.Config(db), addr)
	pool.SetMaxOpenConns(8)
	assert.Until(t, "HAProxy takes clients", func() bool { return pool.PingContext(t.Context()) == nil })
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	load := recycle(t, pool, 8, &recycling{refused: (*recycling).fail, pause: pause})
	used := func(i int) float64 {
		return (&watched{admin: "http://" + admins[i]}).metric(t, "ids_issued_total", `source="ids"`)
	}
	for i := range proxies {
		assert.Until(t, "both are used", func() bool { return used(0) > 200 && used(1) > 200 })
		assert.Must(t, proxies[i].Signal(syscall.SIGTERM))
		assert.Must(t, proxies[i].Wait(t.Context()), "idproxy ended")
		begin(i)
	}
	assert.Until(t, "both are used again", func() bool { return used(0) > 200 && used(1) > 200 })
	errs := load.end()
	load.compare(t, pool)
	t.Logf("failed with %q: %v", drain, errs)
	for _, p := range proxies {
		assert.NoError(t, p.Kill()) // for SIGTERM would take as long as drain.delay
	}
	return load.failed.Load()
}

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
				g.all.Go(func() { harness.Copy(pair[0], pair[1]) })
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
