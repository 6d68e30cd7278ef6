package migration

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// ids are those that a test was given, of one table.
type ids struct {
	*site
	table string
	seen  map[int64]bool
}

func (s *site) ids(table string) *ids { return &ids{s, table, map[int64]bool{}} }

// execer is a connection, or a transaction of one.
type execer interface {
	Exec(query string, args ...any) (sql.Result, error)
}

// take inserts rows, and wants ids that were not given before.
func (g *ids) take(db execer, rows int) (first int64) {
	g.t.Helper()
	r := assert.Of(db.Exec("INSERT INTO " + g.table + " (n) VALUES " + strings.TrimSuffix(strings.Repeat("(1),", rows), ","))).Must(g.t)
	first = assert.Of(r.LastInsertId()).Must(g.t)
	for id := first; id < first+int64(rows); id++ {
		assert.MustTrue(g.t, !g.seen[id], "id %d was given before", id)
		g.seen[id] = true
	}
	return first
}

func (s *site) throughFirst(shard int) *sql.DB { return s.through(0, shard) }

// through is a way through a proxy.
func (s *site) through(proxy, shard int) *sql.DB {
	return harness.Open(s.t, s.shards[shard].Config(s.shop), s.proxies[proxy].Addr(fmt.Sprintf("shard%d", shard)))
}

// lose inserts rows, and deletes them.
func (g *ids) lose(db execer, rows int) {
	g.t.Helper()
	first := g.take(db, rows)
	assert.Of(db.Exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", g.table, first, first+int64(rows)-1))).Must(g.t)
}

// hold keeps a table in a transaction, until that ends.
func (s *site) hold(shard int, table string) *sql.Tx {
	s.t.Helper()
	return s.inUse(s.around(shard), table)
}

func (s *site) inUse(db *sql.DB, table string) *sql.Tx {
	s.t.Helper()
	tx := assert.Of(db.BeginTx(s.t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})).Must(s.t) // no gap is locked
	assert.Of(tx.Exec("SELECT * FROM " + table + " WHERE id = 1 FOR UPDATE")).Must(s.t)
	return tx
}

func (s *site) commit(tx *sql.Tx) {
	s.t.Helper()
	assert.Must(s.t, tx.Commit())
}

// start runs a step, and returns what gives its status and what it says.
func (s *site) start(args string) <-chan string {
	done := make(chan string, 1)
	go func() {
		out, status := s.migrate(strings.Fields(args)...)
		done <- fmt.Sprintf("status %d\n%s", status, out)
	}()
	return done
}

// Rows that come and go: more than a step allows for unseen, so that it looks again; one in the
// transaction that it waits for.
func (g *ids) manyGo(shard int, _ *sql.Tx) { g.lose(g.around(shard), 2000) }
func (g *ids) lastGoes(_ int, tx *sql.Tx)  { g.lose(tx, 1) }

// during runs a step that waits for a table, where rows come and go meanwhile.
func (g *ids) during(args string, shard int, goes ...func(shard int, tx *sql.Tx)) {
	g.t.Helper()
	tx := g.hold(shard, g.table)
	done := g.start(args)
	for _, rows := range goes {
		g.waiting(shard, g.table)
		rows(shard, tx)
	}
	g.commit(tx)
	out := <-done
	assert.MustTrue(g.t, strings.HasPrefix(out, "status 0\n"), "migrate %s: %s", args, out)
}

// onEach inserts rows on each shard.
func (g *ids) onEach(way func(shard int) *sql.DB, rows int) {
	g.t.Helper()
	for i := range g.shards {
		g.take(way(i), rows)
	}
}

// forget removes the plan, so that the next step makes another one.
func (s *site) forget() {
	s.t.Helper()
	assert.Must(s.t, os.Remove(s.plan))
}

// waiting waits until a step wants a table for itself.
func (s *site) waiting(shard int, table string) {
	s.t.Helper()
	s.untilWaiting(shard, table, 1)
}

// untilWaiting waits until n ALTERs wait for a table: that of a step that was killed waits on until its
// time is over, and is run when it gets the table before.
func (s *site) untilWaiting(shard int, table string, n int64) {
	s.t.Helper()
	db, query := s.direct(shard, ""), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'ALTER TABLE `"+s.shop+"`.`"+table+"`%' AND STATE LIKE '%metadata lock%'"
	assert.Until(s.t, fmt.Sprintf("%d wait for %s", n, table), func() bool { return harness.Count(s.t, db, query) == n })
}

// TestTableInUse: a table goes on while a step waits for it, and none of the ids that it gives then comes
// again.
func TestTableInUse(t *testing.T) {
	t.Parallel()
	for shard := range width.Of(1, 2) {
		s := newSite(t, 10)
		given, db := s.ids("events"), s.around(shard)
		s.begin("observe")
		given.during("--run lift", shard, given.manyGo, given.lastGoes)
		s.must("--run lift --back")
		assert.LessOrEqual(t, "the counter stays at", s.counter(shard, "events"), 600_000)
		given.lose(db, 10)
		s.must("--run lift")
		given.during("--run lift --back", shard, given.lastGoes)
		given.lose(db, 10)
		s.must("--run lift")
		given.during("--run lift --back", shard, given.manyGo)
		n := s.counter(shard, "events")
		assert.True(t, n >= 1_000_000_000, "the counter is at %d, where the band was used", n)
		given.lose(db, 10)
		s.begin("lift", "enforce", "watch")
		given.during("--run drop --force", shard, given.manyGo, given.lastGoes)
		s.must("--run drop --back")
		given.lose(db, 10)
	}
}

// TestBatchInUse: the transaction that lift waits for brings more ids than lift allows for unseen.
func TestBatchInUse(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe")
	tx := s.hold(0, "events")
	done := s.start("--run lift")
	s.waiting(0, "events")
	given.take(tx, 3000)
	s.commit(tx)
	out := <-done
	assert.MustTrue(t, strings.HasPrefix(out, "status 0\n"), "%v", out)
	harness.MustExec(t, s.around(0), "DELETE FROM events WHERE id > 10")
	s.must("--run lift --back")
	assert.LessOrEqual(t, "the counter stays at", s.counter(0, "events"), 500_000)
	given.lose(s.around(0), 1)
}

// TestTruncatedBand: what watch has seen of a band does not come again behind TRUNCATE.
func TestTruncatedBand(t *testing.T) {
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	given.take(s.around(0), 5)
	s.must("--run watch")
	harness.MustExec(t, s.around(0), "TRUNCATE TABLE events")
	s.refuses("--run watch", "not in its band", "run step lift")
	s.must("--run lift", "1 of 6 counters were lifted")
	given.take(s.around(0), 1)
}

// TestBackFromAbove: a counter that was above last before the plan does not go back there.
func TestBackFromAbove(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	given := s.ids("orders")
	harness.MustExec(t, s.around(0), "ALTER TABLE orders AUTO_INCREMENT = 2000000000")
	s.begin("observe")
	given.lose(s.around(0), 5)
	s.must("--run lift --force")
	s.must("--run lift --back", "the counter of "+s.shop+".orders stays in its band, at 1000000000")
	given.lose(s.around(0), 1)

	// It was in its band, as behind another plan.
	s = newSite(t, 10)
	given = s.ids("events")
	s.begin("observe", "lift")
	given.lose(s.around(0), 1)
	s.must("--run lift --back")
	s.forget()
	s.begin("observe")
	given.lose(s.around(0), 5)
	s.must("--run lift")
	harness.MustExec(t, s.around(0), "TRUNCATE TABLE events")
	s.must("--run lift", "1 of 6 counters were lifted")
	s.must("--run lift --back")
	given.lose(s.around(0), 1)
}

// TestBandsTurned: in the next plan each shard has the band again in which it counts, whatever the order in
// which the table came to them.
func TestBandsTurned(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	given := s.ids("fresh")
	const fresh = "CREATE TABLE fresh (id INT AUTO_INCREMENT PRIMARY KEY, n INT)"
	harness.MustExec(t, s.around(1), fresh)
	s.begin("observe", "lift", "enforce")
	harness.MustExec(t, s.around(0), fresh)
	s.must("--run lift")
	given.onEach(s.around, 2)
	s.back("enforce", "lift")
	s.forget()
	s.begin("observe", "lift", "enforce")
	given.onEach(s.around, 2)
}

// TestOtherKey: a series that is kept elsewhere is another one.
func TestOtherKey(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	given.onEach(s.throughFirst, 1)
	s.must("--run enforce --back")
	s.restartAll(strings.Replace(s.config, `key: "{schema}.{table}"`, `key: "new.{schema}.{table}"`, 1))
	what := "the series of table " + s.shop + ".events was key " + s.shop + ".events in store main, and source ids has key new." + s.shop + ".events in store main"
	s.refuses("--run lift", what)
	s.refuses("--run lift --back", what)
	s.must("--run lift --back --force", "the proxies have given ids")
	for range 3 {
		given.onEach(s.around, 1)
	}
}

// TestBeyondLast: a series is not moved to where it has no ids, and that is an error before the proxies
// enforce.
func TestBeyondLast(t *testing.T) {
	s := startSite(t)
	db := s.around(0)
	harness.MustExec(t, db, "INSERT INTO events (id, n) VALUES (950000000, 1)")
	harness.MustExec(t, db, "DELETE FROM events WHERE id = 950000000")
	s.begin("observe")
	s.refuses("--run lift", "the counter of "+s.shop+".events has been at 950000001, and source ids goes on at 1000000", "idproxy source set ids --key "+s.shop+".events 975000000\n")
	st := mainStore(t, s.proxies[0])
	assert.Must(t, st.Segments.Open(t.Context(), s.shop+".events", 1_000_000_000, 0))
	s.refuses("--run lift", "source ids goes on at 1000000000, above its last, 999999999: it has no id left for "+s.shop+".events")
	assert.Must(t, st.Keys.Set(t.Context(), s.shop+".events", 975_000_000))
	s.begin("lift", "enforce")
	s.ids("events").take(s.through(0, 0), 1)
}

// TestKilledLift: what a step has seen of a counter before it took it elsewhere outlives a kill.
func TestKilledLift(t *testing.T) {
	s := startSite(t)
	given, db := s.ids("orders"), s.around(0)
	s.begin("observe")
	first, last := s.hold(0, "events"), s.hold(1, "orders")
	c := s.command("--run", "lift")
	assert.Must(t, c.Start())
	s.waiting(0, "events")
	given.lose(db, 2000)
	s.commit(first)
	s.waiting(1, "orders")
	n := s.counter(0, "orders")
	assert.MustTrue(t, n >= 1_000_000_000, "the counter is at %d", n)
	assert.Must(t, c.Process.Kill())
	_ = c.Wait()
	s.commit(last)
	s.must("--run lift --back")
	assert.LessOrEqual(t, "the counter stays at", s.counter(0, "orders"), 500_000)
	given.lose(db, 1)
}

// TestBackApart: counters of shards do not go back to where the proxies are: they would all give the same
// ids from there.
func TestBackApart(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift", "enforce")
	given := s.ids("events")
	given.onEach(s.throughFirst, 1)
	s.must("--run enforce --back")
	s.must("--run lift --back", "note: "+s.shop+".events: the proxies have given ids, and its counters stay where they are")
	for range 5 {
		given.onEach(s.around, 1)
	}
	// orders got none, and counts from where it was.
	assert.LessOrEqual(t, "the counter of orders stays at", s.counter(0, "orders"), 10_000)
}

// TestNextPlan: a plan that comes behind another one gives no id of a band again, and none of where another
// shard has counted.
func TestNextPlan(t *testing.T) {
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift")
	given.lose(s.around(0), 1)
	given.lose(s.around(1), 1)
	s.must("--run lift --back", "shard shard1: the counter of "+s.shop+".events stays in its band, at 2000000001")
	s.must("--run observe --back")
	s.forget()
	s.begin("observe", "lift")
	given.lose(s.around(0), 1)
	given.lose(s.around(1), 1)
	// A third shard's table would make the bands narrower, and what the second has given is of another's.
	s.must("--run lift --back")
	s.forget()
	s.restartAll(strings.Replace(s.config, "last: 999999999", "last: 1999999", 1))
	s.begin("observe")
	s.refuses("--run lift", "shard shard1: the counter of "+s.shop+".events is at 2000000002, above last of source ids and outside of the shard's band", "step lift: NOT done")
}

// TestMingled: a counter that followed ids of a proxy is lifted, and the proxies do not go on with what it
// may have given.
func TestMingled(t *testing.T) {
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	s.must("--run watch")
	harness.MustExec(t, s.around(0), "TRUNCATE TABLE events")
	given.take(s.through(0, 0), 1)
	for range 3 {
		given.lose(s.around(0), 1)
	}
	n := s.counter(0, "events")
	assert.MustTrue(t, n >= 1_000_000 && n <= 1_000_100, "the counter is at %d: it did not follow", n)
	what := ".sock may have ids of source ids in memory that shard shard0 has given, too: the counter of " + s.shop + ".events was at 1000004. Restart the proxy"
	s.refuses("--run drop", "the counter of "+s.shop+".events is at 1000004, not in its band")
	s.refuses("--run lift", "1 of 6 counters were lifted", what, "step lift: NOT done")
	s.refuses("--run watch", what)
	s.refuses("--run drop", what)
	s.restart(0, s.config)
	s.refuses("--run lift", "0 of 6 counters were lifted", s.proxies[1].socket+" may have ids")
	s.restart(1, s.config)
	s.must("--run lift", "step lift: done")
	s.must("--run watch", "step watch: done")
	for range 10 {
		given.take(s.through(0, 0), 1)
		given.take(s.through(1, 0), 1)
		given.lose(s.around(0), 1)
	}
}

// TestMingledWhileWaiting: a counter comes among ids of a proxy behind the look at it.
func TestMingledWhileWaiting(t *testing.T) {
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	proxy, own := s.through(0, 0), s.around(0)
	proxy.SetMaxOpenConns(1)
	given.take(proxy, 1) // the proxy knows the table
	harness.MustExec(t, own, "TRUNCATE TABLE events")
	through, around := s.inUse(proxy, "events"), s.inUse(own, "events")
	done := s.start("--run lift")
	s.waiting(0, "events")
	given.take(through, 1)
	given.lose(around, 1)
	given.lose(around, 1)
	s.commit(through)
	s.commit(around)
	out := <-done
	assert.True(t, strings.Contains(out, "the counter of "+s.shop+".events was at 1000002. Restart the proxy"), "%v", out)
	s.restartAll(s.config)
	s.must("--run lift")
	for range 5 {
		given.take(s.through(0, 0), 1)
	}
}

// TestMingledUpgrade: an upgrade leaves the process before it with the ids that it has in memory.
func TestMingledUpgrade(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	proxy, own := s.through(0, 0), s.around(0)
	proxy.SetMaxOpenConns(1)
	harness.MustExec(t, own, "TRUNCATE TABLE events")
	given.take(proxy, 1)
	given.lose(own, 1)
	s.refuses("--run lift", "Restart the proxy")
	tx := s.inUse(proxy, "orders")
	for _, p := range s.proxies {
		assert.Must(t, p.admin.Upgrade(t.Context()))
	}
	s.refuses("--run lift", "was upgraded, and the process before it, which has sessions yet, may have ids")
	s.commit(tx)
	assert.Must(t, proxy.Close())
	var out string
	assert.Until(t, "lift succeeds", func() bool {
		said, status := s.migrate("--run", "lift")
		out = said
		return status == 0
	}, func() string { return out })
	given.take(s.through(0, 0), 5)
}

// TestMingledFileStore: a store that the proxy holds alone is moved on while that is away.
func TestMingledFileStore(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	before, after, _ := strings.Cut(s.config, "stores: ")
	_, after, _ = strings.Cut(after, "\n")
	s.config = before + fmt.Sprintf("stores: {main: {file: {dir: %q}}}\n", filepath.Join(t.TempDir(), "ids")) + after
	assert.Must(t, s.proxies[1].Stop(patience))
	s.proxies = s.proxies[:1]
	s.restart(0, s.config)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	harness.MustExec(t, s.around(0), "TRUNCATE TABLE events")
	given.take(s.through(0, 0), 1)
	given.lose(s.around(0), 3)
	s.refuses("--run lift", "the series of "+s.shop+".events cannot be moved on", "Stop the proxies, run step lift, start them, and run it again")
	s.refuses("--run lift", "the series of "+s.shop+".events cannot be moved on")
	assert.Must(t, s.proxies[0].Stop(patience))
	s.refuses("--run lift", "it would give ids of rows that are gone. Move it above: idproxy source set ids --key "+s.shop+".events")
	st := mainStore(t, s.proxies[0])
	assert.Must(t, errors.Join(st.Segments.Open(t.Context(), s.shop+".events", 1_100_000, 0), st.Close()))
	s.refuses("--run lift", "It does not say since when it runs")
	was := s.proxies[0]
	s.proxies[0] = watched{harness.Start(t, harness.Spec{Dir: t.TempDir(), Config: s.config + "admin: {socket: " + was.socket + "}\n"}), was.admin, was.socket}
	s.must("--run lift", "step lift: done")
	given.take(s.through(0, 0), 5)
}

// TestForwardedForm: what a rule forwards without an id is in nobody's way until the columns count no more.
func TestForwardedForm(t *testing.T) {
	s := startSite(t)
	s.config = strings.Replace(s.config, "mode: {switch: migration}}", "mode: {switch: migration}, unsupported: forward}", 1)
	s.restartAll(s.config)
	s.begin("observe")
	db := s.through(0, 0)
	const form = "INSERT INTO events (id, n) VALUES (NULLIF(1, 1), 1)"
	harness.MustExec(t, db, form)
	s.must("--run lift")
	out := s.must("--run enforce", "step enforce: done")
	assert.True(t, !strings.Contains(out, "would be refused"), "what is forwarded would be refused")
	harness.MustExec(t, db, form)
	s.must("--run watch")
	s.refuses("--run drop", "refused: rule "+s.shop+".*.id has unsupported: forward", "warning: would fail: "+s.shop+".*.id: ", "step drop: NOT done")
	s.must("--run drop --force", "step drop: done")
	_, err := db.Exec(form)
	harness.WantError(t, err, 1048)
}

// TestLaterWithoutCounter: a table that was made without AUTO_INCREMENT while the proxies fill it is named
// before they stop.
func TestLaterWithoutCounter(t *testing.T) {
	s := startSite(t)
	harness.MustExec(t, s.around(0), "CREATE TABLE natural_ids (id INT PRIMARY KEY, n INT)")
	s.begin("observe", "lift", "enforce", "watch")
	s.must("--run drop")
	harness.MustExec(t, s.around(0), "CREATE TABLE fresh (id INT PRIMARY KEY, n INT)")
	harness.MustExec(t, s.around(1), "CREATE TABLE with_default (id INT NOT NULL DEFAULT 7, n INT)")
	s.ids("fresh").take(s.through(0, 0), 1)
	s.back("drop", "watch")
	s.refuses("--run enforce --back", "refused: shard shard0: "+s.shop+".fresh came later, and column id does not count", "step enforce: NOT done")
	harness.MustExec(t, s.around(0), "ALTER TABLE fresh MODIFY id INT AUTO_INCREMENT, AUTO_INCREMENT = 1000000000")
	s.refuses("--run enforce --back", "fresh came later, and its counter, at 1000000000, could meet ids", "step enforce: NOT done")
	s.must("--run lift")
	s.must("--run enforce --back", "step enforce: taken back")
}

// TestNoStart: a series that begins above the rows that are there then would give ids of rows that are gone.
func TestNoStart(t *testing.T) {
	s := startSite(t)
	whole := s.config
	s.restartAll(strings.Replace(whole, "start: 1000000, ", "", 1))
	s.refuses("", "table "+s.shop+".events: source ids has no start", "set start: 600010, and reload all proxies")
	assert.Of(os.Stat(s.plan)).Fails(t, "there is a plan", "")
}

// TestListenersTurned: a plan knows its shards by each listener that leads to them.
func TestListenersTurned(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	_, port, _ := strings.Cut(s.shards[0].Addr, ":")
	other := fmt.Sprintf("  - {name: other, listen: 127.0.0.1:0, upstream: \"localhost:%s\", account: {user: app, password: app}}\n", port)
	harness.MustExec(t, s.around(0), "CREATE TABLE natural_ids (id INT PRIMARY KEY, n INT)")
	const first = "  - {name: shard0,"
	s.restartAll(strings.Replace(s.config, first, other+first, 1))
	s.begin("observe", "lift")
	s.restartAll(strings.Replace(s.config, "stores: ", other+"stores: ", 1))
	s.begin("enforce", "watch", "drop")
	s.back("drop", "watch", "enforce")
	s.restartAll(s.config)
	s.refuses("--run watch", "shard other at localhost:"+port+" is gone")
}

// TestOtherEngine: a table that came to another engine behind the plan is altered as that one does it.
func TestOtherEngine(t *testing.T) {
	width.Wide(t, "it takes ten seconds")
	s := startSite(t)
	s.begin("observe")
	for i := range s.shards {
		harness.MustExec(t, s.around(i), "ALTER TABLE events ENGINE = MyISAM")
	}
	s.begin("lift", "enforce", "watch", "drop")
	for i := range s.shards {
		harness.MustExec(t, s.around(i), "ALTER TABLE events ENGINE = InnoDB")
	}
	s.back("drop", "watch", "enforce", "lift")
}

// TestWrongStep: a step that there is not is an error of whoever asks, and makes no plan.
func TestWrongStep(t *testing.T) {
	s := startSite(t)
	for _, step := range []string{"leap", "9"} {
		out, status := s.migrate("--run", step)
		assert.True(t, status == 2 && strings.Contains(out, "there is no step"), "--run %s: status %d: %s", step, status, out)
	}
	assert.Of(os.Stat(s.plan)).Fails(t, "there is a plan", "")
}
