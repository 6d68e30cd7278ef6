package lifecycle

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestPutBack has a store put back under proxies: nobody gets an id again, also when the one that was furthest was given
// another configuration in between, or a successor. That one seals the series, for the others, until an
// administrator has moved it. The rows are taken away, which would be another guard.
func TestPutBack(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	for _, tt := range []struct {
		name    string
		between func(l *line, reload func(step int))
	}{
		{"under the process", func(*line, func(int)) {}},
		{"behind a reload", func(_ *line, reload func(int)) { reload(20) }},
		{"behind two reloads", func(_ *line, reload func(int)) { reload(20); reload(10) }},
		{"beside a predecessor", func(l *line, _ func(int)) { l.upgrade() }},
		{"behind an upgrade", func(l *line, _ func(int)) { l.upgrade(); ended(l.t, l.PIDs()[0]) }},
		{"behind a reload and an upgrade", func(l *line, reload func(int)) { reload(20); l.upgrade(); ended(l.t, l.PIDs()[0]) }},
		{"behind two upgrades", func(l *line, _ func(int)) { l.upgrade(); ended(l.t, l.PIDs()[0]); l.upgrade(); ended(l.t, l.PIDs()[1]) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kept := harness.Database(t, server)
			name, direct := harness.Tables(t, server, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			config := func(step int) string {
				return harness.OneListener(server.Addr) + fmt.Sprintf(`
stores:  {main: {mysql: {dsn: %q}}}
sources: {ids: {segment: {store: main, step: %d, step_policy: fixed}}}
rules:   [{table: %s.t, column: id, source: ids}]
`, harness.StoreDSN(server, kept), step, name)
			}
			l := &line{harness.StartProxy(t, config(10)), t}
			defer func() {
				pid := l.signal(syscall.SIGTERM)
				ended(t, pid)
			}()
			seen := map[int64]bool{}
			insert := func(p *harness.Proxy, n int) (err error) {
				db := harness.Open(t, server.Config(name), p.Addr("a"))
				defer db.Close()
				for range n {
					var r sql.Result
					if r, err = db.Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
						return err
					}
					id := assert.Of(r.LastInsertId()).Must(t)
					assert.True(t, !seen[id], "id %d came twice", id)
					seen[id] = true
				}
				return nil
			}
			assert.Must(t, insert(l.Proxy, 25))
			slower := harness.StartProxy(t, config(10)) // it has ids of before
			assert.Must(t, insert(slower, 5))
			position := harness.Count(t, direct, "SELECT max_id FROM "+kept+".idproxy_segment")
			assert.Must(t, insert(l.Proxy, 75))
			tt.between(l, func(step int) {
				t.Helper()
				from := len(l.Log())
				assert.Must(t, l.Reload(config(step)))
				waitLog(t, l.Proxy, from, `msg="configuration reloaded"`)
			})
			harness.MustExec(t, direct, fmt.Sprintf("UPDATE %s.idproxy_segment SET max_id = %d", kept, position), "DELETE FROM t")
			waits := func(who string, p *harness.Proxy, why string) {
				t.Helper()
				err := insert(p, 200)
				assert.True(t, err != nil && strings.Contains(err.Error(), "1467"), "%s: the store went back, and INSERTs go on: %v", who, err)
				assert.Until(t, who+" says why", func() bool { return strings.Contains(p.Log(), why) }, p.Log)
			}
			waits("the one that was furthest", l.Proxy, "the store went back")
			assert.Until(t, "the series is sealed", func() bool { return strings.Contains(l.Log(), "series sealed") }, l.Log)
			fresh := harness.StartProxy(t, config(10))
			waits("one that was not as far", slower, "the key is sealed")
			waits("one that starts now", fresh, "the key is sealed")
			out, err := harness.Command(t, "source", "set", "ids", fmt.Sprint(slices.Max(slices.Collect(maps.Keys(seen)))+1), "--config", fresh.ConfigPath)
			assert.Must(t, err, out)
			for _, p := range []*harness.Proxy{fresh, slower} {
				assert.Until(t, "INSERTs go on", func() bool { err = insert(p, 30); return err == nil }, func() string { return err.Error() })
			}
		})
	}
}
