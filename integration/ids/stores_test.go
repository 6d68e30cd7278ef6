package ids

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// storeCase is a proxy with a segment in a store that something happens to while the proxy is away.
type storeCase struct {
	server *servers.Server
	name   string // database of the rows
	direct *sql.DB
	spec   harness.Spec
	store  string // database of the store; empty: a file store in spec.Dir/ids
}

func newStoreCase(t *testing.T, kind string) *storeCase {
	t.Helper()
	s := harness.MariaDB(t)
	c := &storeCase{server: s}
	c.name, c.direct = harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	store := "{file: {dir: ./ids}}"
	if kind == "mysql" {
		c.store = harness.Database(t, s)
		store = fmt.Sprintf("{mysql: {dsn: %q}}", harness.StoreDSN(s, c.store))
	}
	c.spec = harness.Spec{Dir: t.TempDir(), Config: harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: %s}
sources:   {order_id: {segment: {store: main, step: 10, max_step: 10}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, store, c.name)}
	return c
}

// insert starts the proxy, inserts n rows and ends it in good order. It returns the first error.
func (c *storeCase) insert(t *testing.T, n int) (err error) {
	t.Helper()
	// A log of its own, for addresses are read from it.
	assert.Must(t, os.RemoveAll(filepath.Join(c.spec.Dir, "idproxy.log")))
	p := harness.Start(t, c.spec)
	db := harness.Open(t, c.server.Config(c.name), p.Addr("a"))
	for range n {
		if _, err = db.Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
			break
		}
	}
	assert.NoError(t, p.Stop(time.Minute))
	return err
}

func (c *storeCase) highest(t *testing.T) int64 {
	t.Helper()
	return harness.Count(t, c.direct, "SELECT MAX(id) FROM t")
}

// backup copies the store and returns what puts the copy back.
func (c *storeCase) backup(t *testing.T) (restore func()) {
	t.Helper()
	run := func(cmd *exec.Cmd) []byte {
		t.Helper()
		out, err := cmd.Output()
		assert.Must(t, err, cmd.Args)
		return out
	}
	if c.store == "" {
		dir, copied := filepath.Join(c.spec.Dir, "ids"), t.TempDir()
		assert.Must(t, os.CopyFS(copied, os.DirFS(dir)))
		return func() {
			assert.Must(t, os.RemoveAll(dir))
			assert.Must(t, os.CopyFS(dir, os.DirFS(copied)))
		}
	}
	dump := run(c.server.Dump(c.store))
	return func() {
		client := c.server.Client(c.store)
		client.Stdin = bytes.NewReader(dump)
		run(client)
	}
}

var standsAt = regexp.MustCompile(`the store stands at (\d+)`)

// TestRestoredStore puts an older copy of the store back. INSERTs are refused, by both numbers and
// what to do, and work once that was done.
func TestRestoredStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mysql", "file"} {
		t.Run(kind, func(t *testing.T) {
			c := newStoreCase(t, kind)
			assert.Must(t, c.insert(t, 15))
			restore := c.backup(t)
			before := c.highest(t)
			assert.Must(t, c.insert(t, 45))
			highest := c.highest(t)
			restore()
			err := c.insert(t, 1)
			harness.WantError(t, err, 1467, "order_id", fmt.Sprintf("holds %d already", highest), fmt.Sprintf("start: %d", highest+1))
			// What was left of a range may have been given back, or not.
			m := standsAt.FindStringSubmatch(fmt.Sprint(err))
			assert.MustTrue(t, m != nil, "%v does not say where the store stands", err)
			stood, _ := strconv.ParseInt(m[1], 10, 64)
			assert.True(t, stood > before && stood <= before+20, "the store stood behind %d when it was copied, not at %d", before, stood)
			c.spec.Config = strings.Replace(c.spec.Config, "step: 10,", fmt.Sprintf("start: %d, step: 10,", highest+1), 1)
			assert.NoError(t, c.insert(t, 1))
			assert.Equal(t, "the next id", c.highest(t), highest+1)
		})
	}
}

// TestEmptiedStore takes away all that the store knows. Ids go on above the rows, or INSERTs are
// refused.
func TestEmptiedStore(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind string
		empty      func(*testing.T, *storeCase)
		refused    string // part of the error; empty: ids go on
	}{
		{"rows of the table deleted", "mysql", func(t *testing.T, c *storeCase) {
			harness.MustExec(t, c.direct, "DELETE FROM "+c.store+".idproxy_segment")
		}, ""},
		{"database made anew", "mysql", func(t *testing.T, c *storeCase) {
			harness.MustExec(t, c.direct, "DROP DATABASE "+c.store, "CREATE DATABASE "+c.store)
		}, ""},
		{"folder removed", "file", func(t *testing.T, c *storeCase) { assert.Must(t, os.RemoveAll(filepath.Join(c.spec.Dir, "ids"))) }, ""},
		{"folder emptied", "file", func(t *testing.T, c *storeCase) {
			dir := filepath.Join(c.spec.Dir, "ids")
			assert.Must(t, os.RemoveAll(dir))
			assert.Must(t, os.Mkdir(dir, 0o700))
		}, "the log of idproxy says why"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newStoreCase(t, tt.kind)
			assert.Must(t, c.insert(t, 25))
			before := c.highest(t)
			tt.empty(t, c)
			err := c.insert(t, 25)
			if tt.refused != "" {
				harness.WantError(t, err, 1467, "order_id", tt.refused)
				return
			}
			assert.Must(t, err)
			assert.Equal(t, fmt.Sprintf("of 25 rows have ids above %d", before), harness.Count(t, c.direct, "SELECT COUNT(*) FROM t WHERE id > "+strconv.FormatInt(before, 10)), 25)
		})
	}
}

// TestEmptiedUnderRunningProxies takes the rows of the store away while two proxies use it.
// Whatever either answers, no id comes twice: the table has a unique key, and no INSERT meets it.
func TestEmptiedUnderRunningProxies(t *testing.T) {
	c := newStoreCase(t, "mysql")
	other := c.spec
	other.Dir = t.TempDir()
	one, two := harness.Start(t, c.spec), harness.Start(t, other)
	dbs := []*sql.DB{harness.Open(t, c.server.Config(c.name), one.Addr("a")), harness.Open(t, c.server.Config(c.name), two.Addr("a"))}
	for i := range 200 {
		if i == 50 {
			harness.MustExec(t, c.direct, "DELETE FROM "+c.store+".idproxy_segment")
		}
		if _, err := dbs[i%2].Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
			harness.WantError(t, err, 1467, "order_id")
			assert.True(t, i >= 50, "%v", err)
		}
	}
	assert.GreaterOrEqual(t, "rows", harness.Count(t, c.direct, "SELECT COUNT(*) FROM t"), 50)
}

// TestFileStoreOfTwo starts two proxies with one file store. The second is ready, and refuses
// INSERTs by the number of the first; it takes over when that has ended.
func TestFileStoreOfTwo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source string }{
		{"segment", "{segment: {store: main, step: 10}}"},
		{"snowflake", "{snowflake: {store: main, worker: 5}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := harness.MariaDB(t)
			name, _ := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: {file: {dir: %q}}}
sources:   {order_id: %s}
rules:     [{table: %s.t, column: id, source: order_id}]
`, filepath.Join(t.TempDir(), "ids"), tt.source, name)
			first := harness.StartProxy(t, config)
			db := harness.Open(t, s.Config(name), first.Addr("a"))
			harness.MustExec(t, db, "INSERT INTO t (a) VALUES (1)")
			second := harness.StartProxy(t, config)
			db2 := harness.Open(t, s.Config(name), second.Addr("a"))
			_, err := db2.Exec("INSERT INTO t (a) VALUES (2)")
			harness.WantError(t, err, 1467, "order_id", "the log of idproxy says why")
			assert.Contains(t, "the log", second.Log(), fmt.Sprintf("is held by process %d", first.PID()))
			assert.Of(db2.Exec("UPDATE t SET a = 3")).NoError(t, "other statements")
			harness.MustExec(t, db, "INSERT INTO t (a) VALUES (4)")
			assert.Must(t, first.Stop(time.Minute))
			assert.Until(t, "the second takes over", func() bool {
				_, err = db2.Exec("INSERT INTO t (a) VALUES (5)")
				return err == nil
			}, func() string { return err.Error() })
		})
	}
}

// TestEditedLayout changes what ids of a source are composed of. INSERTs are refused, by both.
func TestEditedLayout(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	r := assert.Of(servers.StartRedis(t.Context())).Must(t)
	t.Cleanup(func() { _ = r.Stop() })
	for _, tt := range []struct{ name, numbers, was, is, wantWas, wantIs string }{
		{"layout", "worker: 5", "layout: 41/10/12", "layout: 41/9/13", "41/10/12", "41/9/13"},
		{"unit", "worker: 5", "layout: 39/10/12", "layout: 39x10ms/10/12", "39/10/12", "39x10ms/10/12"},
		{"epoch", "worker: 5", "epoch: 2020-01-01T00:00:00Z", "epoch: 2021-01-01T00:00:00Z", "2020-01-01", "2021-01-01"},
		{"leased", "workers: leases", "layout: 41/10/12", "layout: 41/9/13", "41/10/12", "41/9/13"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			spec := harness.Spec{Dir: t.TempDir()}
			config := func(shape string) string {
				return harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {leases: {redis: {addrs: [%q]}}}
sources:   {order_id: {snowflake: {%s, %s}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, r.Addr, tt.numbers, shape, name)
			}
			use := func(shape string) error {
				t.Helper()
				spec.Config = config(shape)
				assert.Must(t, os.RemoveAll(filepath.Join(spec.Dir, "idproxy.log")))
				p := harness.Start(t, spec)
				defer func() { _ = p.Stop(time.Minute) }()
				db := harness.Open(t, s.Config(name), p.Addr("a"))
				for {
					_, err := db.Exec("INSERT INTO t (a) VALUES (1)")
					if err == nil || !strings.Contains(err.Error(), "rests for another") {
						return err
					}
					time.Sleep(50 * time.Millisecond)
				}
			}
			if tt.name == "leased" {
				out, err := idproxyCommand(t, config(tt.was), "worker", "add", "4", "--new-pool")
				assert.Must(t, err, "worker add", out)
			}
			assert.Must(t, use(tt.was))
			harness.MustExec(t, direct, "DELETE FROM t") // rows are another guard
			harness.WantError(t, use(tt.is), 1467, "order_id", tt.wantWas, tt.wantIs)
			assert.NoError(t, use(tt.was), "after it was put back")
		})
	}
}
