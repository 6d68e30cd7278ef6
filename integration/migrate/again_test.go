package migrate

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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
	r, err := db.Exec("INSERT INTO " + g.table + " (n) VALUES " + strings.TrimSuffix(strings.Repeat("(1),", rows), ","))
	if err == nil {
		first, err = r.LastInsertId()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	for id := first; id < first+int64(rows); id++ {
		if g.seen[id] {
			g.t.Fatalf("id %d was given before", id)
		}
		g.seen[id] = true
	}
	return first
}

// lose inserts rows, and deletes them.
func (g *ids) lose(db execer, rows int) {
	g.t.Helper()
	first := g.take(db, rows)
	if _, err := db.Exec(fmt.Sprintf("DELETE FROM %s WHERE id BETWEEN %d AND %d", g.table, first, first+int64(rows)-1)); err != nil {
		g.t.Fatal(err)
	}
}

// hold keeps a table in a transaction, until that ends.
func (s *site) hold(shard int, table string) *sql.Tx {
	s.t.Helper()
	tx, err := s.direct(shard, s.shop).Begin()
	if err == nil {
		_, err = tx.Exec("SELECT * FROM " + table + " WHERE id = 1 FOR UPDATE")
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return tx
}

func (s *site) commit(tx *sql.Tx) {
	s.t.Helper()
	if err := tx.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// during runs a step that waits for a table, where rows come and go meanwhile: more than a step allows for
// unseen, so that it looks again; or one in the transaction that it waits for.
func (g *ids) during(args string, shard int, many, last bool) {
	g.t.Helper()
	tx := g.hold(shard, g.table)
	done := make(chan string)
	go func() {
		out, status := g.migrate(strings.Fields(args)...)
		done <- fmt.Sprintf("status %d\n%s", status, out)
	}()
	g.waiting(shard, g.table)
	if many {
		g.lose(g.direct(shard, g.shop), 2000)
	}
	if last {
		g.waiting(shard, g.table)
		g.lose(tx, 1)
	}
	g.commit(tx)
	if out := <-done; !strings.HasPrefix(out, "status 0\n") {
		g.t.Fatalf("migrate %s: %s", args, out)
	}
}

// waiting waits until a step wants a table for itself.
func (s *site) waiting(shard int, table string) {
	s.t.Helper()
	db := s.direct(shard, "")
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		var n int
		err := db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE ? AND STATE LIKE '%metadata lock%'", "ALTER TABLE `"+s.shop+"`.`"+table+"`%").Scan(&n)
		if err != nil {
			s.t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	s.t.Fatalf("nothing waits for %s", table)
}

// TestTableInUse: a table goes on while a step waits for it, and none of the ids that it gives then comes
// again.
func TestTableInUse(t *testing.T) {
	t.Parallel()
	for shard := range width.Of(1, 2) {
		s := newSite(t, 10)
		given, db := s.ids("events"), s.direct(shard, s.shop)
		s.begin("observe")
		given.during("--run lift", shard, true, true)
		s.must("--run lift --back")
		if n := s.counter(shard, "events"); n > 600_000 {
			t.Errorf("the counter stays at %d", n)
		}
		given.lose(db, 10)
		s.must("--run lift")
		given.during("--run lift --back", shard, false, true)
		given.lose(db, 10)
		s.must("--run lift")
		given.during("--run lift --back", shard, true, false)
		if n := s.counter(shard, "events"); n < 1_000_000_000 {
			t.Errorf("the counter is at %d, where the band was used", n)
		}
		given.lose(db, 10)
		s.begin("lift", "enforce", "watch")
		given.during("--run drop --force", shard, true, true)
		s.must("--run drop --back")
		given.lose(db, 10)
	}
}

// TestKilledLift: what a step has seen of a counter before it took it elsewhere outlives a kill.
func TestKilledLift(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	given, db := s.ids("orders"), s.direct(0, s.shop)
	s.begin("observe")
	first, last := s.hold(0, "events"), s.hold(1, "orders")
	c := s.command("--run", "lift")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.waiting(0, "events")
	given.lose(db, 2000)
	s.commit(first)
	s.waiting(1, "orders")
	if n := s.counter(0, "orders"); n < 1_000_000_000 {
		t.Fatalf("the counter is at %d", n)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	s.commit(last)
	s.must("--run lift --back")
	if n := s.counter(0, "orders"); n > 500_000 {
		t.Errorf("the counter stays at %d", n)
	}
	given.lose(db, 1)
}

// TestBackApart: counters of shards do not go back to where the proxies are: they would all give the same
// ids from there.
func TestBackApart(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift", "enforce")
	given := s.ids("events")
	for i := range s.shards {
		given.take(harness.Open(t, s.shards[i].Config(s.shop), s.proxies[i].Addr(fmt.Sprintf("shard%d", i))), 1)
	}
	s.must("--run enforce --back")
	s.must("--run lift --back", "note: "+s.shop+".events: the proxies have given ids, and its counters stay in their bands")
	for range 5 {
		for i := range s.shards {
			given.take(s.direct(i, s.shop), 1)
		}
	}
	// orders got none, and counts from where it was.
	if n := s.counter(0, "orders"); n > 10_000 {
		t.Errorf("the counter of orders stays at %d", n)
	}
}

// TestNextPlan: a plan that comes behind another one gives no id of a band again, and none of where another
// shard has counted.
func TestNextPlan(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	given := s.ids("events")
	s.begin("observe", "lift")
	given.lose(s.direct(0, s.shop), 1)
	given.lose(s.direct(1, s.shop), 1)
	s.must("--run lift --back", "shard shard1: the counter of "+s.shop+".events has gone on in its band, and stays there, at 2000000001")
	s.must("--run observe --back")
	if err := os.Remove(s.plan); err != nil {
		t.Fatal(err)
	}
	s.begin("observe", "lift")
	given.lose(s.direct(0, s.shop), 1)
	given.lose(s.direct(1, s.shop), 1)
	// A third shard's table would make the bands narrower, and what the second has given is of another's.
	s.must("--run lift --back")
	if err := os.Remove(s.plan); err != nil {
		t.Fatal(err)
	}
	for i := range s.proxies {
		s.restart(i, strings.Replace(s.config, "last: 999999999", "last: 1999999", 1))
	}
	s.begin("observe")
	s.refuses("--run lift", "shard shard1: the counter of "+s.shop+".events is at 2000000002, above last of source ids and outside of the shard's band", "step lift: NOT done")
}

// TestMingled: a counter that followed ids of a proxy is lifted, and the proxies do not go on with what it
// may have given.
func TestMingled(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	given := s.ids("events")
	s.begin("observe", "lift", "enforce")
	through := func(proxy int) *sql.DB {
		return harness.Open(t, s.shards[0].Config(s.shop), s.proxies[proxy].Addr("shard0"))
	}
	harness.MustExec(t, s.direct(0, s.shop), "TRUNCATE TABLE events")
	given.take(through(0), 1)
	for range 3 {
		given.lose(s.direct(0, s.shop), 1)
	}
	if n := s.counter(0, "events"); n < 1_000_000 || n > 1_000_100 {
		t.Fatalf("the counter is at %d: it did not follow", n)
	}
	what := ".sock may have ids of source ids in memory that shard shard0 has given, too: the counter of " + s.shop + ".events was at 1000004. Restart the proxy"
	s.refuses("--run lift", "1 of 6 counters were lifted", what, "step lift: NOT done")
	s.refuses("--run watch", what)
	s.restart(0, s.config)
	s.refuses("--run lift", "0 of 6 counters were lifted", s.proxies[1].socket+" may have ids")
	s.restart(1, s.config)
	s.must("--run lift", "step lift: done")
	s.must("--run watch", "step watch: done")
	for range 10 {
		given.take(through(0), 1)
		given.take(through(1), 1)
		given.lose(s.direct(0, s.shop), 1)
	}
}

// TestForwardedForm: what a rule forwards without an id is in nobody's way until the columns count no more.
func TestForwardedForm(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.config = strings.Replace(s.config, "mode: {switch: migration}}", "mode: {switch: migration}, unsupported: forward}", 1)
	for i := range s.proxies {
		s.restart(i, s.config)
	}
	s.begin("observe")
	db := harness.Open(t, s.shards[0].Config(s.shop), s.proxies[0].Addr("shard0"))
	const form = "INSERT INTO events (id, n) VALUES (NULLIF(1, 1), 1)"
	harness.MustExec(t, db, form)
	s.must("--run lift")
	out := s.must("--run enforce", "step enforce: done")
	if strings.Contains(out, "would be refused") {
		t.Error("what is forwarded would be refused")
	}
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
	t.Parallel()
	s := newSite(t, 10)
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE natural_ids (id INT PRIMARY KEY, n INT)")
	s.begin("observe", "lift", "enforce", "watch")
	s.must("--run drop")
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE fresh (id INT PRIMARY KEY, n INT)")
	harness.MustExec(t, s.direct(1, s.shop), "CREATE TABLE with_default (id INT NOT NULL DEFAULT 7, n INT)")
	s.ids("fresh").take(harness.Open(t, s.shards[0].Config(s.shop), s.proxies[0].Addr("shard0")), 1)
	s.must("--run drop --back")
	s.must("--run watch --back")
	s.refuses("--run enforce --back", "refused: shard shard0: "+s.shop+".fresh came later, and column id does not count", "step enforce: NOT done")
	harness.MustExec(t, s.direct(0, s.shop), "ALTER TABLE fresh MODIFY id INT AUTO_INCREMENT, AUTO_INCREMENT = 1000000000")
	s.refuses("--run enforce --back", "fresh came later, and its counter, at 1000000000, could meet ids", "step enforce: NOT done")
	s.must("--run lift")
	s.must("--run enforce --back", "step enforce: taken back")
}

// TestNoStart: a series that begins above the rows that are there then would give ids of rows that are gone.
func TestNoStart(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	whole := s.config
	for i := range s.proxies {
		s.restart(i, strings.Replace(whole, "start: 1000000, ", "", 1))
	}
	s.refuses("", "table "+s.shop+".events: source ids has no start", "set start: 600010, and reload all proxies")
	if _, err := os.Stat(s.plan); err == nil {
		t.Error("there is a plan")
	}
}

// TestListenersTurned: a plan knows its shards by each listener that leads to them.
func TestListenersTurned(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	_, port, _ := strings.Cut(s.shards[0].Addr, ":")
	other := fmt.Sprintf("  - {name: other, listen: 127.0.0.1:0, upstream: \"localhost:%s\", account: {user: app, password: app}}\n", port)
	const first = "  - {name: shard0,"
	for i := range s.proxies {
		s.restart(i, strings.Replace(s.config, first, other+first, 1))
	}
	s.begin("observe", "lift")
	for i := range s.proxies {
		s.restart(i, strings.Replace(s.config, "stores: ", other+"stores: ", 1))
	}
	s.begin("enforce", "watch", "drop")
	for i := range s.proxies {
		s.restart(i, s.config)
	}
	s.refuses("--run watch", "shard other at localhost:"+port+" is gone")
}

// TestOtherEngine: a table that came to another engine behind the plan is altered as that one does it.
func TestOtherEngine(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe")
	for i := range s.shards {
		harness.MustExec(t, s.direct(i, s.shop), "ALTER TABLE events ENGINE = MyISAM")
	}
	s.begin("lift", "enforce", "watch", "drop")
	for i := range s.shards {
		harness.MustExec(t, s.direct(i, s.shop), "ALTER TABLE events ENGINE = InnoDB")
	}
	s.must("--run drop --back")
	s.must("--run watch --back")
	s.must("--run enforce --back")
	s.must("--run lift --back")
}

// TestWrongStep: a step that there is not is an error of whoever asks, and makes no plan.
func TestWrongStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	for _, step := range []string{"leap", "9"} {
		if out, status := s.migrate("--run", step); status != 2 || !strings.Contains(out, "there is no step") {
			t.Errorf("--run %s: status %d: %s", step, status, out)
		}
	}
	if _, err := os.Stat(s.plan); err == nil {
		t.Error("there is a plan")
	}
}
