package ids

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// leafTakes moves max_id as Leaf's DAO does, and returns the ids [lo, hi) that are Leaf's then.
func leafTakes(t *testing.T, db *sql.DB, tag string) (lo, hi int64) {
	t.Helper()
	tx := assert.Of(db.BeginTx(t.Context(), nil)).Must(t)
	defer tx.Rollback() //nolint:errcheck // it was committed
	assert.Of(tx.ExecContext(t.Context(), "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", tag)).Must(t)
	var step int64
	assert.Must(t, tx.QueryRowContext(t.Context(), "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&hi, &step))
	assert.Must(t, tx.Commit())
	return hi - step, hi
}

// TestBesideLeaf moves an estate from Leaf to idproxy without a stop, as the documentation says: idproxy
// takes ranges from Leaf's table while Leaf does, obeys the step in it, and goes on in tables of its own
// when Leaf has ended.
func TestBesideLeaf(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	own := harness.Database(t, s)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	other, table := harness.Tables(t, s,
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, "+
			"description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 20)")
	config := func(store string) string {
		return fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores:    {ids: {mysql: %s}}
sources:   {order_id: {segment: {store: ids, key: orders, step_policy: fixed}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, s.Addr, store, name)
	}
	beside := config(fmt.Sprintf("{dsn: %q, table: {dialect: leaf}}", harness.StoreDSN(s, other)))
	out, err := idproxyCommand(t, beside, "check", "--online")
	assert.Must(t, err, "check --online", out)
	lo, hi := leafTakes(t, table, "orders") // Leaf gives 1 to 20 from memory
	for id := lo; id < hi; id++ {
		harness.MustExec(t, direct, fmt.Sprintf("INSERT INTO t VALUES (%d, 0)", id))
	}
	var wg sync.WaitGroup
	for range 2 {
		p := harness.Start(t, harness.Spec{Config: beside})
		db := harness.Open(t, s.Config(name), p.Addr("a"))
		wg.Go(func() {
			for range 100 {
				assert.Of(db.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1), (1), (1)")).NoError(t)
			}
			assert.NoError(t, p.Stop(time.Minute))
		})
	}
	for range 50 {
		lo, hi := leafTakes(t, table, "orders")
		for id := lo; id < hi; id++ {
			harness.MustExec(t, direct, fmt.Sprintf("INSERT INTO t VALUES (%d, 0)", id))
		}
	}
	wg.Wait()
	assert.Equal(t, "rows", harness.Count(t, direct, "SELECT COUNT(*) FROM t"), 20+2*300+50*20)
	stands := harness.Count(t, table, "SELECT max_id FROM leaf_alloc")
	out, err = idproxyCommand(t, beside, "source", "list")
	assert.True(t, err == nil && strings.Contains(out, fmt.Sprint(stands)), "source list: %v: %s", err, out)

	// Leaf has ended: its keys go into idproxy's own tables, and the rows go on above.
	after := config(fmt.Sprintf("{dsn: %q}", harness.StoreDSN(s, own)))
	out, err = idproxyCommand(t, after, "source", "import", "--format", "leaf", "--from", s.DSN(other), "--store", "ids")
	assert.Must(t, err, "import", out)
	p := harness.Start(t, harness.Spec{Config: after})
	harness.MustExec(t, harness.Open(t, s.Config(name), p.Addr("a")), "INSERT INTO t (a) VALUES (2)")
	id := harness.Count(t, direct, "SELECT id FROM t WHERE a = 2")
	assert.True(t, id >= stands, "id %d is below where Leaf stood, %d", id, stands)
}

// TestBesideLeafRefusals: a key that Leaf does not have is refused by check and by INSERTs, which make none.
func TestBesideLeafRefusals(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores:    {ids: {mysql: {dsn: %q, table: {dialect: leaf}}}}
sources:   {order_id: {segment: {store: ids, key: ordres}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, s.Addr, harness.StoreDSN(s, name), name)
	refused := func(what, want string) {
		t.Helper()
		out, err := idproxyCommand(t, config, "check", "--online")
		assert.True(t, err != nil && strings.Contains(out, want), "check %s: %v: %s", what, err, out)
	}
	refused("without a table", "leaf_alloc")
	harness.MustExec(t, direct, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 20)")
	refused("of a key that is not there", `no row for key "ordres"`)
	p := harness.Start(t, harness.Spec{Config: config})
	_, err := harness.Open(t, s.Config(name), p.Addr("a")).Exec("INSERT INTO t (a) VALUES (1)")
	assert.True(t, err != nil && strings.Contains(err.Error(), "1467") && strings.Contains(p.Log(), "series ordres is not open in its store"), "INSERT: %v", err)
	assert.Equal(t, "rows of leaf_alloc", harness.Count(t, direct, "SELECT COUNT(*) FROM leaf_alloc"), 1)
}

// TestBesideTinyid fills rows of all kinds of statements from a key of tinyid with every third id.
func TestBesideTinyid(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name, direct := harness.Tables(t, s,
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)",
		"CREATE TABLE tiny_id_info (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '', begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0, "+
			"step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', "+
			"update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', version BIGINT NOT NULL DEFAULT 0, UNIQUE KEY (biz_type))",
		"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('orders', 1, 1, 50, 3, 2, 1)")
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores:    {ids: {mysql: {dsn: %q, table: {dialect: tinyid}}}}
sources:   {order_id: {segment: {store: ids, key: orders}}}
rules:     [{table: %s.t, column: id, source: order_id, explicit: advance}]
`, s.Addr, harness.StoreDSN(s, name), name)
	out, err := idproxyCommand(t, config, "check", "--online")
	assert.True(t, err == nil && strings.Contains(out, "ids are 3 apart"), "check: %v: %s", err, out)
	p := harness.Start(t, harness.Spec{Config: config})
	db := harness.Open(t, s.Config(name), p.Addr("a"))
	harness.MustExec(t, db, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a) VALUES (2), (3), (4)", "INSERT INTO t (id, a) VALUES (100, 0)",
		"INSERT INTO t (a) SELECT a FROM t WHERE a > 0", "INSERT INTO t (a) VALUES (5), (6)")
	r := assert.Of(db.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (?), (?)", 7, 8)).Must(t)
	id, err := r.LastInsertId()
	assert.True(t, err == nil && id == harness.Count(t, direct, "SELECT id FROM t WHERE a = 7"), "insert id %d, %v", id, err)
	assert.Equal(t, "rows", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE id <> 100"), 12)
	assert.Equal(t, "rows have ids of other remainders", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE id <> 100 AND id % 3 <> 2"), 0)
	assert.Equal(t, "rows behind the explicit id have smaller ones", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE a > 4 AND id <= 100"), 0)
}

// idproxyCommand runs a command of the program on a configuration and returns what it prints.
func idproxyCommand(t *testing.T, config string, args ...string) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	assert.Must(t, os.WriteFile(path, []byte(config), 0o600))
	return harness.Command(t, append(args, "--config", path)...)
}

// TestImport takes over the tables of Leaf, of tinyid and of two ticket servers: the first id is
// the next one those would have given, and a second import moves nothing.
func TestImport(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	odd, even, store := harness.Database(t, s), harness.Database(t, s), harness.Database(t, s)
	old, db := harness.Tables(t, s,
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, "+
			"description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 2000), ('unknown', 77, 10)",
		"UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'", // Leaf gives 1 to 2000 now
		"CREATE TABLE tiny_id_info (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '', begin_id BIGINT NOT NULL DEFAULT 0, "+
			"max_id BIGINT NOT NULL DEFAULT 0, step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0)",
		"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('test', 1, 100000, 100000)")
	for offset, name := range map[int]string{1: odd, 2: even} {
		db := harness.Open(t, s.Config(name), "")
		db.SetMaxOpenConns(1)
		harness.MustExec(t, db, "CREATE TABLE Tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, stub CHAR(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub))",
			fmt.Sprintf("SET auto_increment_increment = 2, auto_increment_offset = %d", offset))
		for range 20 * offset {
			harness.MustExec(t, db, "REPLACE INTO Tickets64 (stub) VALUES ('a')")
		}
	}
	config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: {mysql: {dsn: %q}}}
sources:
  order_id:  {segment: {store: main, key: orders}}
  test_id:   {segment: {store: main}}
  ticket_id: {segment: {store: main}}
rules:
  - {table: "%[2]s.t", column: a, source: order_id}
  - {table: "%[2]s.t", column: b, source: test_id}
  - {table: "%[2]s.t", column: c, source: ticket_id}
`, harness.StoreDSN(s, store), old)
	for round := range 2 {
		for _, args := range [][]string{
			{"--format", "leaf", "--from", s.DSN(old)},
			{"--format", "tinyid", "--from", s.DSN(old), "test=test_id"},
			{"--format", "tickets64", "--from", s.DSN(odd), "--from", s.DSN(even), "ticket_id"},
		} {
			dry, err := idproxyCommand(t, config, append([]string{"source", "import", "--dry-run"}, args...)...)
			assert.Must(t, err, "import --dry-run", dry)
			out, err := idproxyCommand(t, config, append([]string{"source", "import", "--json"}, args...)...)
			var got struct {
				Tags []struct{ Tag, Source, Result string }
			}
			jerr := json.Unmarshal([]byte(out), &got)
			assert.MustTrue(t, err == nil && jerr == nil, "%q: %v: %s", args, err, out)
			want := []string{"moved from 0", "stays: it is there already"}[round]
			assert.True(t, got.Tags[0].Result == want, "round %d, %q: %+v, want %q", round, args, got.Tags[0], want)
		}
	}
	proxy := harness.StartProxy(t, config)
	harness.MustExec(t, db, "CREATE TABLE t (a BIGINT, b BIGINT, c BIGINT, n INT)")
	harness.MustExec(t, harness.Open(t, s.Config(old), proxy.Addr("a")), "INSERT INTO t (n) VALUES (1)")
	var a, b, c int
	assert.Must(t, db.QueryRow("SELECT a, b, c FROM t").Scan(&a, &b, &c))
	assert.True(t, a == 2001 && b == 100001 && c == 81, "first ids %d, %d, %d, want 2001 after Leaf's, 100001 after tinyid's, 81 after ticket 80", a, b, c)
	out, err := idproxyCommand(t, config, "source", "import", "--format", "leaf", "--from", s.DSN(old), "gone=order_id")
	assert.True(t, err != nil, "a tag that is not there was imported: %s", out)
}

// TestSeveralStores writes through two proxies whose ids come from a MariaDB and a MySQL server,
// and kills one of these after the other: no INSERT fails, and no id comes twice.
func TestSeveralStores(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	stores := []*servers.Server{harness.StartServer(t, servers.MariaDB, servers.Options{}), harness.StartServer(t, servers.MySQL, servers.Options{})}
	var dsns []string
	for _, st := range stores {
		dsns = append(dsns, harness.StoreDSN(st, harness.Database(t, st)))
	}
	config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {tickets: {mysql: {dsns: [%q, %q]}}}
limits:    {id_wait: 1m} # a server of a busy machine may take longer than its second
sources:   {ids: {segment: {store: tickets, step: 20, max_step: 20}}}
rules:     [{table: "*.t", column: id, source: ids}]
`, dsns[0], dsns[1])
	insert := func(p *harness.Proxy, n int) {
		t.Helper()
		db := harness.Open(t, s.Config(name), p.Addr("a"))
		for range n {
			assert.Of(db.Exec("INSERT INTO t (a) VALUES (1), (2), (3)")).Must(t, "INSERT")
		}
	}
	first := harness.StartProxy(t, config)
	insert(first, 50)
	for i, st := range stores {
		assert.Must(t, st.Kill())
		insert(first, 50)
		insert(harness.StartProxy(t, config), 50) // one that starts while a store is down
		assert.Must(t, st.Start(t.Context()))
		insert(first, 50)
		var out string
		assert.Until(t, "source show has both servers", func() bool {
			var err error
			out, err = idproxyCommand(t, config, "source", "show", "ids", "--json")
			var shown struct{ Servers []struct{ Error string } }
			return err == nil && json.Unmarshal([]byte(out), &shown) == nil && len(shown.Servers) == 2 && shown.Servers[i].Error == ""
		}, func() string { return out })
	}
	rows, blocks := harness.Count(t, direct, "SELECT COUNT(*) FROM t"), harness.Count(t, direct, "SELECT COUNT(DISTINCT id DIV 1000000 % 2) FROM t")
	assert.True(t, rows == 3*(50+2*150) && blocks == 2, "%d rows with ids of %d servers, want 1050 of both", rows, blocks)
}
