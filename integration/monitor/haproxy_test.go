package monitor

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/integration/harness"
	"idproxy/integration/process"
)

// balancer is what docs/monitoring.md has for HAProxy.
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
  option httpchk GET /readyz?listener=a
  default-server check inter 500ms fall 1 rise 1 on-marked-down shutdown-sessions
  server a %s port %s
  server b %s port %s
`

// freeAddr returns an address that nobody listens on now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
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

	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	addr, path := freeAddr(t), filepath.Join(t.TempDir(), "haproxy.cfg")
	port := func(w *watched) string { return w.admin[strings.LastIndexByte(w.admin, ':')+1:] }
	if err := os.WriteFile(path, fmt.Appendf(nil, balancer, addr, a.Addr("a"), port(a), b.Addr("a"), port(b)), 0o600); err != nil {
		t.Fatal(err)
	}
	haproxy, err := process.Start(process.Spec{Path: program, Args: []string{"-db", "-f", path}, Log: path + ".log"})
	if err != nil {
		t.Fatalf("%v: make test installs it", err)
	}
	t.Cleanup(func() {
		if err := haproxy.Kill(); err != nil {
			t.Error(err)
		}
	})
	pool := harness.Open(t, server.Config(db), addr)
	pool.SetMaxOpenConns(8)
	wait := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	wait("HAProxy takes clients", func() bool { return pool.PingContext(t.Context()) == nil })

	// Clients that connect for every ten statements, as pools recycle connections.
	const clients = 8
	var failed, done atomic.Int64
	var mu sync.Mutex
	errs := map[string]int{}
	stop, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for stop.Err() == nil {
				conn, err := pool.Conn(context.Background())
				if err != nil {
					continue // no statement
				}
				for range 10 {
					if _, err := conn.ExecContext(context.Background(), "INSERT INTO t (a) VALUES (1)"); err != nil {
						failed.Add(1)
						mu.Lock()
						errs[regexp.MustCompile(`[0-9]+`).ReplaceAllString(err.Error(), "?")]++
						mu.Unlock()
						break
					}
					done.Add(1)
				}
				_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // it closes the connection
				conn.Close()
			}
		})
	}
	used := func(w *watched) float64 { return w.metric(t, "ids_issued_total", `source="ids"`) }
	wait("both are used", func() bool { return used(a) > 500 && used(b) > 500 })
	if n := failed.Load(); n > 0 {
		t.Errorf("%d failed while all was well: %v", n, errs)
	}
	failed.Store(0)
	store.shut()
	wait("b is not ready", func() bool { status, _ := b.get(t, "/readyz?listener=a"); return status == 503 })
	before := done.Load()
	wait("the others go on", func() bool { return done.Load() > before+3000 })
	lost := failed.Load()
	if lost > clients {
		t.Errorf("%d statements failed, want those that were under way, %d at most: %v", lost, clients, errs)
	}
	after := used(b)
	time.Sleep(2 * time.Second)
	if now := used(b); now != after {
		t.Errorf("b issued %v ids after it had left", now-after)
	}
	store.open()
	wait("b is used again", func() bool { return used(b) > after+500 })
	if n := failed.Load() - lost; n > 0 {
		t.Errorf("%d failed when the store was back: %v", n, errs)
	}
	cancel()
	all.Wait()
	var rows, distinct int64
	if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*), COUNT(DISTINCT id) FROM t").Scan(&rows, &distinct); err != nil {
		t.Fatal(err)
	}
	if rows < done.Load() || rows != distinct {
		t.Errorf("%d rows, %d distinct, %d acknowledged", rows, distinct, done.Load())
	}
	t.Logf("%d statements failed when b lost its store: %v", lost, errs)
	t.Logf("compared: %d rows", rows)
}
