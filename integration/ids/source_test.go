package ids

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestStoreDown takes the store away: ids held in memory go on being used, then INSERTs fail after
// a bounded wait with nothing sent, the session stays, and all is well when the store is back.
func TestStoreDown(t *testing.T) {
	s := harness.MariaDB(t)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	store := harness.StartServer(t, servers.MariaDB, servers.Options{})
	storeDB := harness.Database(t, store)
	proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
stores:    {main: {mysql: {dsn: %q}}}
sources:   {order_id: {segment: {store: main, step: 10, max_step: 10}}}
rules:     [{table: %s.t, column: id, source: order_id}]
`, harness.StoreDSN(store, storeDB), name))
	db := harness.Open(t, s.Config(name), proxy.Addr("a"))
	db.SetMaxOpenConns(1)
	harness.MustExec(t, db, "INSERT INTO t (a) VALUES (1)")
	session := harness.Count(t, db, "SELECT CONNECTION_ID()")
	assert.Must(t, store.Kill())

	var err error
	held := 0
	for ; held < 100 && err == nil; held++ {
		_, err = db.Exec("INSERT INTO t (a) VALUES (2)")
	}
	assert.True(t, held >= 9, "%d ids were left in memory, want at least 9", held)
	harness.WantError(t, err, 1467, "order_id", name+".t.id")
	inserts := func() int64 {
		return harness.Count(t, direct, "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME='COM_INSERT'")
	}
	sent := inserts()
	began := time.Now()
	_, err = db.Exec("INSERT INTO t (a) VALUES (3)")
	harness.WantError(t, err, 1467, "order_id")
	assert.LessOrEqual(t, "the error took, where a wait of some 2s is the bound", time.Since(began), time.Minute)
	assert.Equal(t, "INSERTs of the server, which gets none without an id", inserts(), sent)
	assert.Equal(t, "session", harness.Count(t, db, "SELECT CONNECTION_ID()"), session)

	assert.Must(t, store.Start(t.Context()))
	assert.Until(t, "INSERTs succeed where the store is back", func() bool {
		_, err = db.Exec("INSERT INTO t (a) VALUES (4)")
		return err == nil
	}, func() string { return err.Error() })
	assert.Equal(t, "rows and ids", harness.Count(t, direct, "SELECT COUNT(*) FROM t"), harness.Count(t, direct, "SELECT COUNT(DISTINCT id) FROM t"))
}

// TestColumnsThatDoNotFit names what is wrong between a rule, its source and its table.
func TestColumnsThatDoNotFit(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name, direct := harness.Tables(t, s, "CREATE TABLE good (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE ahead (id BIGINT PRIMARY KEY, a INT)",
			"CREATE TABLE narrow (id TINYINT PRIMARY KEY, a INT)", "CREATE TABLE inexact (id DOUBLE PRIMARY KEY, a INT)", "CREATE TABLE other (x BIGINT PRIMARY KEY, a INT)",
			"CREATE TABLE w_with (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE w_without (x INT, a INT)", "INSERT INTO ahead VALUES (5000, 1)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
sources:
  ids: {segment: {}}
  high: {segment: {start: 200}}
rules:
  - {table: %[2]s.good, column: id, source: ids}
  - {table: %[2]s.ahead, column: id, source: ids}
  - {table: %[2]s.missing, column: id, source: ids}
  - {table: %[2]s.narrow, column: id, source: high}
  - {table: %[2]s.inexact, column: id, source: ids}
  - {table: %[2]s.other, column: id, source: ids}
  - {table: "%[2]s.w_*", column: id, source: ids}
`, s.Addr, name))
		db := harness.Open(t, s.Config(name), proxy.Addr("a"))
		db.SetMaxOpenConns(1)
		session := harness.Count(t, db, "SELECT CONNECTION_ID()")
		insert := func(table string) error {
			_, err := db.Exec("INSERT INTO " + table + " (a) VALUES (1)")
			return err
		}
		assert.NoError(t, insert("good"), "good")
		harness.WantError(t, insert("ahead"), 1467, "ids", "5000", "start: 5001")
		harness.WantError(t, insert("narrow"), 1467, "high", "200", "127")
		harness.WantError(t, insert("inexact"), 1467, "exactly")
		harness.WantError(t, insert("other"), 1054, "'id'", name+".other")
		harness.WantError(t, insert("missing"), 1146, name+".missing")
		assert.NoError(t, insert("w_with"), "w_with")
		assert.NoError(t, insert("w_without"), "w_without")
		for _, table := range []string{"narrow", "inexact", "other"} {
			assert.Equal(t, "rows of "+table, harness.Count(t, direct, "SELECT COUNT(*) FROM "+table), 0)
		}
		assert.Equal(t, "session", harness.Count(t, db, "SELECT CONNECTION_ID()"), session)
		_, err := harness.Open(t, s.Config("no_such_schema"), proxy.Addr("a")).Exec("SELECT 1")
		harness.WantError(t, err, 1049, "no_such_schema")
	})
}

// TestServerLost kills the server between an INSERT and its reply. The client is told the ids, and
// they find the rows, or that there are none.
func TestServerLost(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			s := harness.StartServer(t, kind, servers.Options{})
			name, setUp := harness.Tables(t, s, "CREATE TABLE slow (id BIGINT PRIMARY KEY, a INT)",
				"CREATE TRIGGER tr AFTER INSERT ON slow FOR EACH ROW SET @x = SLEEP(60)", "CREATE TABLE fast (id BIGINT PRIMARY KEY, a INT)")
			proxy := harness.StartProxy(t, harness.OneListener(s.Addr)+harness.OneRule(name+".*"))

			sleeps := func() bool {
				return harness.Count(t, setUp, "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'") > 0
			}
			lost := killDuring(t, s, name, proxy.Addr("a"), "INSERT INTO slow (a) VALUES (1), (2)", sleeps)
			direct := harness.Open(t, s.Config(name), "")
			assert.Equal(t, "rows of an INSERT that was never finished", harness.Count(t, direct, "SELECT COUNT(*) FROM slow WHERE id BETWEEN "+lost.first+" AND "+lost.last), 0)
			assert.Equal(t, "table", lost.table, name+".slow")

			direct = harness.Open(t, s.Config(name), "")
			many := func() bool { return harness.Count(t, direct, "SELECT COUNT(*) FROM fast") >= 100 }
			lost = killDuring(t, s, name, proxy.Addr("a"), "INSERT INTO fast (a) VALUES (3), (4)", many)
			n := harness.Count(t, direct, "SELECT COUNT(*) FROM fast WHERE id BETWEEN "+lost.first+" AND "+lost.last)
			assert.True(t, n == 0 || n == 2, "%d rows of an INSERT of two", n)
			t.Logf("the INSERT in flight (ids %s to %s) left %d rows", lost.first, lost.last, n)
			assert.Equal(t, "rows and ids", harness.Count(t, direct, "SELECT COUNT(*) FROM fast"), harness.Count(t, direct, "SELECT COUNT(DISTINCT id) FROM fast"))
		})
	}
}

type lostIDs struct{ first, last, table string }

// killDuring repeats an INSERT of two rows, kills the server when that is due, restarts it, and
// returns what the last INSERT was told.
func killDuring(t *testing.T, s *servers.Server, db, addr, insert string, due func() bool) lostIDs {
	t.Helper()
	for range 10 { // the kill may fall between two INSERTs
		pool := harness.Open(t, s.Config(db), addr)
		pool.SetMaxOpenConns(1)
		ended := make(chan error, 1)
		go func() {
			for {
				if _, err := pool.Exec(insert); err != nil {
					ended <- err
					return
				}
			}
		}()
		assert.Until(t, "the moment to kill the server", due)
		assert.Must(t, s.Kill())
		err := <-ended
		assert.Must(t, s.Start(t.Context()))
		e, ok := errors.AsType[*mysql.MySQLError](err)
		if !ok || e.Number != 1158 {
			t.Logf("the server died between two INSERTs: %v", err)
			continue
		}
		m := harness.AssignedIDs.FindStringSubmatch(e.Message)
		assert.MustTrue(t, m != nil, "message %q names no ids", e.Message)
		first, _ := strconv.Atoi(m[1]) // digits, by the expression
		last, _ := strconv.Atoi(m[2])
		assert.Equal(t, "the last of two ids", last, first+1)
		return lostIDs{m[1], m[2], m[3]}
	}
	t.Fatal("no INSERT was in flight in ten kills")
	return lostIDs{}
}

// TestNoIDTwice lets two proxies write to two shards, kills one of them and starts it again. Over a
// store they share no id is given twice; over stores of their own, the control, some are.
func TestNoIDTwice(t *testing.T) {
	t.Parallel()
	s := harness.MariaDB(t)
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared store %v", shared), func(t *testing.T) {
			rows, ids := writeThroughTwo(t, s, shared)
			t.Logf("%d rows, %d different ids", rows, ids)
			assert.True(t, !shared || rows == ids, "%d rows have %d different ids", rows, ids)
			assert.True(t, shared || rows != ids, "two separate stores gave %d rows different ids: the test cannot see duplicates", rows)
			assert.True(t, rows >= 100, "only %d rows were written", rows)
		})
	}
}

func writeThroughTwo(t *testing.T, s *servers.Server, shared bool) (rows, ids int64) {
	shards := []string{harness.Database(t, s), harness.Database(t, s)}
	storeDB := harness.Database(t, s)
	direct := harness.Open(t, s.Config(""), "")
	var specs []harness.Spec
	for _, shard := range shards {
		harness.MustExec(t, direct, "CREATE TABLE "+shard+".t (id BIGINT PRIMARY KEY, a INT)")
		store := "{file: {dir: ./ids}}"
		if shared {
			store = fmt.Sprintf("{mysql: {dsn: %q}}", harness.StoreDSN(s, storeDB))
		}
		specs = append(specs, harness.Spec{MayFail: true, Config: harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: %s}
sources:   {ids: {segment: {store: main, step: 20, max_step: 20}}}
rules:     [{table: "*.t", column: id, source: ids}]
`, store)})
	}
	first, second := harness.Start(t, specs[0]), harness.Start(t, specs[1])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writers sync.WaitGroup
	write := func(p *harness.Proxy, shard string) {
		db := harness.Open(t, s.Config(shard), p.Addr("a"))
		for range 4 {
			writers.Go(func() {
				for ctx.Err() == nil {
					if _, err := db.ExecContext(ctx, "INSERT INTO t (a) VALUES (1), (2)"); err != nil {
						return // its proxy was killed, or the time is over
					}
					time.Sleep(5 * time.Millisecond) // what else runs needs the processors
				}
			})
		}
	}
	grows := func(shard string) {
		t.Helper()
		rows := func() int64 { return harness.Count(t, direct, "SELECT COUNT(*) FROM "+shard+".t") }
		before := rows()
		assert.Until(t, shard+" grows", func() bool { return rows() >= before+100 })
	}
	write(first, shards[0])
	write(second, shards[1])
	grows(shards[0])
	grows(shards[1])
	for range 3 {
		assert.Must(t, first.Kill())
		first = harness.Start(t, specs[0])
		write(first, shards[0])
		if shared { // else its store is a new one, and gives ids that the shard has
			grows(shards[0])
		}
	}
	cancel()
	writers.Wait()
	both := "(SELECT id FROM " + shards[0] + ".t UNION ALL SELECT id FROM " + shards[1] + ".t) u"
	// At once, for an INSERT whose client has gone may still be under way.
	assert.Must(t, direct.QueryRow("SELECT COUNT(id), COUNT(DISTINCT id) FROM "+both).Scan(&rows, &ids))
	return rows, ids
}

func TestMain(m *testing.M) { harness.Main(m) }
