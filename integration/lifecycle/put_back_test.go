package lifecycle

import (
	"database/sql"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestPutBack has a store put back under a proxy: nobody gets an id again, also when the proxy was given another
// configuration in between, or a successor. The rows are taken away, which would be another guard.
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
			insert := func(n int) (err error) {
				db := harness.Open(t, server.Config(name), l.Addr("a"))
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
			assert.Must(t, insert(25))
			position := harness.Count(t, direct, "SELECT max_id FROM "+kept+".idproxy_segment")
			assert.Must(t, insert(75))
			tt.between(l, func(step int) {
				t.Helper()
				from := len(l.Log())
				assert.Must(t, l.Reload(config(step)))
				waitLog(t, l.Proxy, from, `msg="configuration reloaded"`)
			})
			harness.MustExec(t, direct, fmt.Sprintf("UPDATE %s.idproxy_segment SET max_id = %d", kept, position), "DELETE FROM t")
			err := insert(200)
			assert.True(t, err != nil && strings.Contains(err.Error(), "1467"), "the store went back, and INSERTs go on: %v", err)
			assert.Contains(t, "the log", l.Log(), "the store went back")
		})
	}
}
