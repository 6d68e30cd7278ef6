package ids

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
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
	name, other, own := harness.Database(t, s), harness.Database(t, s), harness.Database(t, s)
	direct, table := harness.Open(t, s.Config(name), ""), harness.Open(t, s.Config(other), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	for _, q := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, " +
			"description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 20)",
	} {
		harness.MustExec(t, table, q)
	}
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
	assert.Must(t, err, "check --online", string(out))
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
	assert.True(t, err == nil && strings.Contains(string(out), fmt.Sprint(stands)), "source list: %v: %s", err, out)

	// Leaf has ended: its keys go into idproxy's own tables, and the rows go on above.
	after := config(fmt.Sprintf("{dsn: %q}", harness.StoreDSN(s, own)))
	out, err = idproxyCommand(t, after, "source", "import", "--format", "leaf", "--from", s.DSN(other), "--store", "ids")
	assert.Must(t, err, "import", string(out))
	p := harness.Start(t, harness.Spec{Config: after})
	harness.MustExec(t, harness.Open(t, s.Config(name), p.Addr("a")), "INSERT INTO t (a) VALUES (2)")
	id := harness.Count(t, direct, "SELECT id FROM t WHERE a = 2")
	assert.True(t, id >= stands, "id %d is below where Leaf stood, %d", id, stands)
}

// TestBesideLeafRefusals: a key that Leaf does not have is refused by check and by INSERTs, which make none.
func TestBesideLeafRefusals(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores:    {ids: {mysql: {dsn: %q, table: {dialect: leaf}}}}
sources:   {order_id: {segment: {store: ids, key: ordres}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, s.Addr, harness.StoreDSN(s, name), name)
	if out, err := idproxyCommand(t, config, "check", "--online"); err == nil || !strings.Contains(string(out), "leaf_alloc") {
		t.Errorf("check without a table: %v: %s", err, out)
	}
	harness.MustExec(t, direct, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP)")
	harness.MustExec(t, direct, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 20)")
	const want = `no row for key "ordres"`
	if out, err := idproxyCommand(t, config, "check", "--online"); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("check of a key that is not there: %v: %s", err, out)
	}
	p := harness.Start(t, harness.Spec{Config: config})
	_, err := harness.Open(t, s.Config(name), p.Addr("a")).Exec("INSERT INTO t (a) VALUES (1)")
	assert.True(t, err != nil && strings.Contains(err.Error(), "1467") && strings.Contains(p.Log(), "it has no row for key"), "INSERT: %v", err)
	n := harness.Count(t, direct, "SELECT COUNT(*) FROM leaf_alloc")
	assert.True(t, n == 1, "leaf_alloc has %d rows", n)
}

// TestBesideTinyid fills rows of all kinds of statements from a key of tinyid with every third id.
func TestBesideTinyid(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	for _, q := range []string{
		"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)",
		"CREATE TABLE tiny_id_info (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '', begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0, " +
			"step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', " +
			"update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00', version BIGINT NOT NULL DEFAULT 0, UNIQUE KEY (biz_type))",
		"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('orders', 1, 1, 50, 3, 2, 1)",
	} {
		harness.MustExec(t, direct, q)
	}
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
stores:    {ids: {mysql: {dsn: %q, table: {dialect: tinyid}}}}
sources:   {order_id: {segment: {store: ids, key: orders}}}
rules:     [{table: %s.t, column: id, source: order_id, explicit: advance}]
`, s.Addr, harness.StoreDSN(s, name), name)
	out, err := idproxyCommand(t, config, "check", "--online")
	assert.True(t, err == nil && strings.Contains(string(out), "ids are 3 apart"), "check: %v: %s", err, out)
	p := harness.Start(t, harness.Spec{Config: config})
	db := harness.Open(t, s.Config(name), p.Addr("a"))
	for _, q := range []string{
		"INSERT INTO t (a) VALUES (1)",
		"INSERT INTO t (a) VALUES (2), (3), (4)",
		"INSERT INTO t (id, a) VALUES (100, 0)",
		"INSERT INTO t (a) SELECT a FROM t WHERE a > 0",
		"INSERT INTO t (a) VALUES (5), (6)",
	} {
		harness.MustExec(t, db, q)
	}
	r := assert.Of(db.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (?), (?)", 7, 8)).Must(t)
	id, err := r.LastInsertId()
	assert.True(t, err == nil && id == harness.Count(t, direct, "SELECT id FROM t WHERE a = 7"), "insert id %d, %v", id, err)
	assert.Equal(t, "rows", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE id <> 100"), 12)
	assert.Equal(t, "rows have ids of other remainders", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE id <> 100 AND id % 3 <> 2"), 0)
	assert.Equal(t, "rows behind the explicit id have smaller ones", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE a > 4 AND id <= 100"), 0)
}
