package failover

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

var (
	kinds = []servers.Kind{servers.MariaDB, servers.MySQL}
	// What is no matter of the kind a narrow run looks at with one.
	aMariaDB = width.Of(kinds[:1], kinds)
	aMySQL   = width.Of(kinds[1:], kinds)
)

// rows are the ids that a server has.
func (p *pair) rows(t *testing.T, s *servers.Server) map[int64]bool {
	t.Helper()
	r := assert.Of(p.roots[s].Query("SELECT id FROM shop.orders")).Must(t)
	defer r.Close()
	all := map[int64]bool{}
	for r.Next() {
		var id int64
		assert.Must(t, r.Scan(&id))
		all[id] = true
	}
	assert.Must(t, r.Err())
	return all
}

// TestPrimaryKilled kills the server that takes writes while clients write, and makes the other one
// take them a second later: sessions go there, what was acknowledged is there, and no id comes twice.
func TestPrimaryKilled(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			p := newPair(t, kind)
			p.serve(t, []string{p.first.Addr, p.second.Addr}, "writable: true")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			l := &load{}
			wait := l.run(ctx, t, p.open(t), 8)
			assert.Until(t, "rows at the first server", func() bool { return len(l.by(p.first)) > 500 })
			at := p.listener(t)
			assert.True(t, at.Upstream == p.first.Addr && at.Problem == "", "the listener is %+v", at)

			assert.Until(t, "both were asked", func() bool { return p.listener(t).Servers[1].ReadOnly })
			text, _ := p.get(t, "/metrics")
			holds(t, text, fmt.Sprintf("idproxy_upstream_server_up{listener=\"a\",server=%q} 1\n", p.second.Addr),
				fmt.Sprintf("idproxy_upstream_server_read_only{listener=\"a\",server=%q} 1\n", p.second.Addr))
			assert.Must(t, p.first.Kill())
			killed := time.Now()
			assert.Until(t, "the listener is not ready", func() bool {
				_, status := p.get(t, "/readyz")
				return status == http.StatusServiceUnavailable
			})
			at = p.listener(t)
			assert.True(t, strings.Contains(at.Problem, p.second.Addr+": read-only") && strings.Contains(at.Problem, p.first.Addr+": "), "the listener's problem is %q", at.Problem)
			time.Sleep(time.Until(killed.Add(time.Second)))
			assert.Equal(t, "rows were acknowledged by a server that is read-only", len(l.by(p.second)), 0)
			p.setReadOnly(t, p.second, off)
			promoted := time.Now()
			assert.Until(t, "rows at the second server", func() bool { return len(l.by(p.second)) > 500 })
			end()
			wait()

			before, behind := l.by(p.first), l.by(p.second)
			first := slices.MinFunc(behind, func(a, b ack) int { return a.at.Compare(b.at) }).at
			last := slices.MaxFunc(before, func(a, b ack) int { return a.at.Compare(b.at) }).at
			t.Logf("%d rows at the first server and %d at the second; none for %v, %v of them behind the promotion; clients saw %v: %q",
				len(before), len(behind), first.Sub(last).Round(time.Millisecond), first.Sub(promoted).Round(time.Millisecond), l.errors, l.texts)
			assert.Equal(t, "clients got 1290: they were led to a server that is read-only", l.errors["1290"], 0)
			assert.True(t, first.Sub(promoted) <= patience/2, "the first row came %v behind the promotion", first.Sub(promoted))
			text, _ = p.get(t, "/metrics")
			holds(t, text, fmt.Sprintf("idproxy_upstream_server_used{listener=\"a\",server=%q} 1\n", p.second.Addr),
				fmt.Sprintf("idproxy_upstream_server_used{listener=\"a\",server=%q} 0\n", p.first.Addr), fmt.Sprintf("idproxy_upstream_server_up{listener=\"a\",server=%q} 0\n", p.first.Addr),
				"idproxy_upstream_switches_total{listener=\"a\"} 1\n", "idproxy_upstream_up{listener=\"a\"} 1\n")
			p.accounted(t, l)
		})
	}
}

// accounted expects that each acknowledged row is where it was acknowledged, the killed server started
// again, and that no id came twice.
func (p *pair) accounted(t *testing.T, l *load) {
	t.Helper()
	assert.Must(t, p.first.Start(t.Context()))
	seen := map[int64]bool{}
	for _, s := range []*servers.Server{p.first, p.second} {
		rows, missing := p.rows(t, s), 0
		for _, a := range l.by(s) {
			if !rows[a.id] {
				missing++
			}
		}
		assert.True(t, missing <= 0, "%d of %d acknowledged rows are not at %s", missing, len(l.by(s)), s.Addr)
		for id := range rows {
			assert.True(t, !seen[id], "id %d came twice", id)
			seen[id] = true
		}
	}
}

// insert inserts a row and returns the port of the server that took it.
func insert(ctx context.Context, db *sql.DB) (port string, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.QueryRowContext(ctx, "SELECT @@port").Scan(&port); err != nil {
		return "", err
	}
	_, err = c.ExecContext(ctx, "INSERT INTO orders (worker) VALUES (1)")
	return port, err
}

// TestReadOnlyFirst: without `writable` clients do reach a read-only server that stands first, whose
// 1290 they get as it is; with it none does.
func TestReadOnlyFirst(t *testing.T) {
	for _, kind := range aMySQL {
		t.Run(kind.String(), func(t *testing.T) {
			p := newPair(t, kind)
			order := []string{p.second.Addr, p.first.Addr}

			p.serve(t, order, "writable: false")
			db := p.open(t)
			db.SetMaxIdleConns(0)
			direct := p.config()
			direct.Addr = p.second.Addr
			_, want := insert(t.Context(), openTo(t, direct))
			harness.WantError(t, want, 1290)
			for range 20 {
				port, err := insert(t.Context(), db)
				assert.MustTrue(t, strings.HasSuffix(p.second.Addr, ":"+port), "the session went to %s", port)
				assert.True(t, err != nil && err.Error() == want.Error(), "got %v, want %v", err, want)
			}
			rows := p.rows(t, p.second)
			assert.True(t, len(rows) == 0, "%d rows at the read-only server", len(rows))

			p.serve(t, order, "writable: true")
			holds(t, p.check(t), "server "+p.first.Addr+" is ", "note: listener a: server "+p.second.Addr+" stands by: it is read-only")
			db = p.open(t)
			db.SetMaxIdleConns(0)
			for range 20 {
				port, err := insert(t.Context(), db)
				assert.True(t, err == nil && strings.HasSuffix(p.first.Addr, ":"+port), "at %s: %v", port, err)
			}
			assert.Equal(t, "rows", len(p.rows(t, p.first)), 20)
		})
	}
}

// check is what idproxy check --online says of the configuration.
func (p *pair) check(t *testing.T) string {
	t.Helper()
	out, _ := harness.Command(t, "check", "--config", p.proxy.ConfigPath, "--online") // findings are an exit status
	return out
}

func holds(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		assert.Contains(t, "it", text, w)
	}
}

func openTo(t *testing.T, c *mysql.Config) *sql.DB { return harness.Open(t, c, "") }

// TestDemoted: the servers change places. An open session stays where it is and gets 1290; from then
// on new ones go to the other server.
func TestDemoted(t *testing.T) {
	for _, kind := range aMariaDB {
		t.Run(kind.String(), func(t *testing.T) {
			p := newPair(t, kind)
			p.serve(t, []string{p.first.Addr, p.second.Addr}, "writable: true")
			db := p.open(t)
			old := assert.Of(db.Conn(t.Context())).Must(t)
			defer old.Close()
			assert.Of(old.ExecContext(t.Context(), "INSERT INTO orders (worker) VALUES (0)")).Must(t)
			p.setReadOnly(t, p.first, on)
			p.setReadOnly(t, p.second, off)
			refused := func() {
				t.Helper()
				_, err := old.ExecContext(t.Context(), "INSERT INTO orders (worker) VALUES (0)")
				harness.WantError(t, err, 1290)
			}
			refused()
			refused()
			port, err := insert(t.Context(), db)
			assert.True(t, err == nil && strings.HasSuffix(p.second.Addr, ":"+port), "at %s: %v", port, err)
			refused()
			a, b := len(p.rows(t, p.first)), len(p.rows(t, p.second))
			assert.True(t, a == 1 && b == 1, "%d and %d rows", a, b)
			assert.Until(t, "the other server is shown", func() bool { return p.listener(t).Upstream == p.second.Addr })
		})
	}
}

// TestAllDown: a client is told of each server why it was not taken, and by a socket it comes to one
// that is there.
func TestAllDown(t *testing.T) {
	p := newPair(t, servers.MariaDB)
	const down, other = "127.0.0.1:1", "localhost:2"
	p.serve(t, []string{down, other, "unix:" + p.first.Socket}, "writable: true")
	db := p.open(t)
	db.SetMaxIdleConns(0)
	assert.Of(insert(t.Context(), db)).Must(t)
	p.setReadOnly(t, p.first, on)
	assert.Until(t, "no server takes writes", func() bool {
		err := db.PingContext(t.Context())
		return err != nil && strings.Contains(err.Error(), "read-only")
	})
	_, err := insert(t.Context(), db)
	harness.WantError(t, err, 1042, "'127.0.0.1:1, localhost:2, "+p.first.Socket+"'", "127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused",
		"localhost:2: dial tcp", "127.0.0.1:2: connect: connection refused", p.first.Socket+": read-only")
	holds(t, p.check(t), "error: listener a: 127.0.0.1:1: dial", "unix:"+p.first.Socket+": read-only: NOT checked, nor are its tables")
	p.setReadOnly(t, p.first, off)
	holds(t, p.check(t), "server unix:"+p.first.Socket+" is ", "warning: listener a: server 127.0.0.1:1 could not take the place of unix:"+p.first.Socket)
	p.setReadOnly(t, p.first, on)
	assert.Until(t, "no server takes writes", func() bool { return p.listener(t).Problem != "" })
	text, status := p.get(t, "/readyz")
	assert.True(t, status == http.StatusServiceUnavailable && (strings.Contains(text, "its server does not answer") || strings.Contains(text, "no server can be used")), "%d: %s", status, text)
}
