package migrate

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/cmd/idproxy/switches"
	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// mainStore opens the store of a proxy.
func mainStore(t *testing.T, p watched) store.Store {
	t.Helper()
	cfg, err := config.Load(p.ConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	stores := store.Opened{}
	t.Cleanup(stores.Close)
	st, err := stores.Get(cfg.Store("main"))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// TestMoveUnlifted is what TestMove would find without step lift: counters of shards and ids of proxies meet.
func TestMoveUnlifted(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	a := s.run()
	a.more(60)
	st := mainStore(t, s.proxies[0])
	if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Enforce, "test", 0); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.proxies {
		p.stands(t, switches.Enforce)
	}
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		a.mu.Lock()
		n := len(a.wrong)
		a.mu.Unlock()
		if n > 0 {
			break
		}
	}
	close(a.stop)
	a.all.Wait()
	if len(a.wrong) == 0 {
		t.Error("no id was met, and no INSERT failed: TestMove finds nothing")
	} else {
		t.Logf("%d times wrong: %s", len(a.wrong), a.wrong[0])
	}
}

// begin makes the plan and runs steps of it.
func (s *site) begin(steps ...string) {
	s.t.Helper()
	s.must("")
	for _, step := range steps {
		s.must("--run " + step)
	}
}

// restart has another process in the place of a proxy, with the same admin socket.
func (s *site) restart(proxy int, config string) {
	s.t.Helper()
	was := s.proxies[proxy]
	if err := was.Stop(patience); err != nil {
		s.t.Fatal(err)
	}
	s.proxies[proxy] = watched{harness.Start(s.t, harness.Spec{Dir: s.t.TempDir(), Config: config + "admin: {socket: " + was.socket + "}\n"}), was.admin, was.socket}
}

// TestBackFromChange: what has changed since the plan was made is no obstacle to the way back.
func TestBackFromChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift", "enforce")
	harness.MustExec(t, s.direct(1, s.shop), "DROP TABLE events")
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY)")
	s.refuses("--run watch", "events is gone from shard shard1")
	s.must("--run enforce --back", "warning: not as the plan says: table "+s.shop+".events is gone from shard shard1", "step enforce: taken back")
	for _, p := range s.proxies {
		p.stands(t, switches.Observe)
	}
	s.refuses("--run lift --back", "refused: not as the plan says: table "+s.shop+".events is gone", "step lift: NOT done")
	if n := s.counter(0, "events"); n < 1_000_000_000 {
		t.Errorf("the counter is at %d", n)
	}
	s.must("--run lift --back --force", "step lift: taken back")
	if n := s.counter(0, "events"); n > 2000 {
		t.Errorf("the counter stays at %d", n)
	}
}

// TestBackFromHalf: a step that was killed half way is not passed over on the way back, and neither is a
// counter that somebody set back.
func TestBackFromHalf(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	// A counter above the bands, without a row there, comes into its own once that is forced.
	harness.MustExec(t, s.direct(0, s.shop), "ALTER TABLE orders AUTO_INCREMENT = 2000000000")
	s.begin("observe")
	s.refuses("--run lift", "the counter of "+s.shop+".orders is at 2000000000, above last of source ids and outside of the shard's band", "step lift: NOT done")
	s.must("--run lift --force")
	s.must("--run enforce")
	if n := s.counter(0, "orders"); n != 1_000_000_000 {
		t.Errorf("the counter is at %d", n)
	}
	tx, err := s.direct(1, s.shop).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("SELECT * FROM items"); err != nil {
		t.Fatal(err)
	}
	s.must("--run watch")
	c := s.command("--run", "drop")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	counts := func() (n int) {
		t.Helper()
		err := s.direct(0, s.shop).QueryRow("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('events', 'items') AND EXTRA LIKE '%auto_increment%'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for began := time.Now(); counts() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("nothing is dropped")
		}
	}
	s.refuses("--run watch", "another idproxy migrate runs a step in this folder")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.must("", "5 drop     pending")
	s.must("--run watch --back")
	s.refuses("--run enforce --back", "column id of "+s.shop+".events does not count", "step enforce: NOT done")
	for _, p := range s.proxies {
		p.stands(t, switches.Enforce)
	}
	s.must("--run drop --back", "step drop: taken back")
	if counts() != 2 {
		t.Error("it does not count again")
	}
	harness.MustExec(t, s.direct(0, s.shop), "TRUNCATE TABLE events")
	s.refuses("--run enforce --back", "the counter of "+s.shop+".events is at 1, not in its band", "run step lift first")
	s.must("--run lift", "1 of 6 counters were lifted")
	s.must("--run enforce --back", "step enforce: taken back")
	s.must("--run lift --back")
}

// TestStoreWentBack: proxies that were turned and a store that forgot it come together again, and no
// proxy leaves enforce for that.
func TestStoreWentBack(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift", "enforce")
	st := mainStore(t, s.proxies[0])
	if err := st.Notes.Write(t.Context(), "switch:migration", ""); err != nil {
		t.Fatal(err)
	}
	before := s.proxies[0].stands(t, switches.Enforce)
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if strings.Contains(s.proxies[0].stands(t, switches.Enforce).Problem, "went back") {
			break
		} else if time.Since(began) > patience {
			t.Fatal("nobody hears that the switch is gone")
		}
	}
	// One that starts now observes, and its INSERTs get ids of the band.
	s.restart(1, s.config)
	s.proxies[1].stands(t, switches.Observe)
	for i, least := range []int64{1_000_000, 1_000_000_000} {
		r := harness.MustExec(t, harness.Open(t, s.shards[0].Config(s.shop), s.proxies[i].Addr("shard0")), "INSERT INTO orders (n) VALUES (1)")
		if id, err := r.LastInsertId(); err != nil || id < least || i == 0 && id >= 1_000_000_000 {
			t.Errorf("proxy %d: id %d, %v", i, id, err)
		}
	}
	s.refuses("--run observe", "the switch is at enforce already")
	s.must("--run enforce", "step enforce: done")
	for _, p := range s.proxies {
		if at := p.stands(t, switches.Enforce); at.Version <= before.Version || at.Problem != "" {
			t.Errorf("the switch stands at %+v, and stood at %+v", at, before)
		}
	}
	events, err := s.proxies[0].admin.Events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	turned := 0
	for _, e := range events {
		if strings.Contains(e.Text, "switch turned") {
			turned++
		}
	}
	if turned > 4 { // observe, prepare, enforce, enforce
		t.Errorf("the proxy that was turned was turned back meanwhile: %v", events)
	}
}

// TestProxyIsCut: a proxy that does not hear the switch goes on with what it heard last. Its INSERTs get
// ids of the shards' bands, and those of the other proxy its ids: none comes twice.
func TestProxyIsCut(t *testing.T) {
	width.Wide(t, "it takes half a minute")
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift")
	// The second proxy reaches the store through what can be cut.
	cut := &cutter{}
	relay := harness.Between(t, s.shards[1].Addr, cut.cut, cut.join)
	before, after, _ := strings.Cut(s.config, "stores: ")
	s.restart(1, before+"stores: "+strings.Replace(after, s.shards[1].Addr, relay, 1))
	s.proxies[1].stands(t, switches.Observe)
	a := s.run()
	a.more(60)
	cut.cut()
	s.refuses("--run enforce", "step enforce: NOT done")
	a.more(30)
	// It is turned all the same.
	st := mainStore(t, s.proxies[0])
	if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Enforce, "test", 0); err != nil {
		t.Fatal(err)
	}
	s.proxies[0].stands(t, switches.Enforce)
	if at := s.proxies[1].stands(t, switches.Observe); at.Problem == "" {
		t.Errorf("it has no problem: %+v", at)
	}
	a.more(100)
	cut.heal()
	s.proxies[1].stands(t, switches.Enforce)
	a.more(60)
	s.must("--run enforce", "step enforce: done")
	a.end(10)
}

// TestFailedReload: a reload that fails leaves switches as they were, although the file named another
// store for one.
func TestFailedReload(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	shop := harness.Database(t, server)
	harness.MustExec(t, harness.Open(t, server.Config(shop), ""), "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 1000000")
	text := harness.OneListener(server.Addr) + fmt.Sprintf(`
stores: {main: {file: {dir: ids}}, other: {file: {dir: others}}}
sources: {ids: {segment: {store: main, start: 5000, last: 999999}}}
rules: [{table: %s.t, column: id, source: ids, mode: {switch: migration}}]
`, shop)
	p := startProxy(t, text)
	st := mainStore(t, p)
	if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Enforce, "test", 6); err != nil {
		t.Fatal(err)
	}
	p.stands(t, switches.Enforce)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	bad := strings.Replace(text, "segment: {store: main", "segment: {store: other", 1)
	bad = strings.Replace(bad, "listeners: [", fmt.Sprintf("listeners: [{name: more, listen: %q, upstream: %q}, ", taken.Addr(), server.Addr), 1)
	if err := p.WriteConfig(bad + adminIn(p.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.admin.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("the reload does not fail: %v", err)
	}
	s, err := p.admin.State(t.Context())
	if err != nil || len(s.Switches) != 1 || s.Switches[0].State != switches.Enforce || s.Switches[0].Store != "main" {
		t.Errorf("%+v, %v", s.Switches, err)
	}
	if id := insertOne(t, harness.Open(t, server.Config(shop), p.Addr("a"))); id != 5000 {
		t.Errorf("id %d", id)
	}
}

// TestPlanByHand: a plan that was changed by hand so that it is none is refused.
func TestPlanByHand(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift")
	good, err := os.ReadFile(s.plan)
	if err != nil {
		t.Fatal(err)
	}
	socket := func(i int) string { return `"` + s.proxies[i].socket + `"` }
	for old, fresh := range map[string][2]string{
		socket(0) + ",\n    " + socket(1): {"", "names no proxy"},
		`"band": 1500000000`:              {`"band": 1499999999`, "meet"},
		`"band": 1000000000`:              {`"band": 999999999`, "not above last"},
		`"last": 999999999`:               {`"last": 999999998`, "from 1000000 to 999999998"},
		`"shard": "shard1"`:               {`"shard": "shard2"`, "shard shard2 at"},
		`"column": "id"`:                  {`"column": "n"`, "is gone"},
	} {
		text := strings.Replace(string(good), old, fresh[0], 1)
		if text == string(good) {
			t.Fatalf("the plan has no %s:\n%s", old, good)
		}
		if err := os.WriteFile(s.plan, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.refuses("--run enforce", fresh[1])
	}
	if err := os.WriteFile(s.plan, good, 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("--run enforce", "step enforce: done")
}

// TestMoveUpgrades: processes that take the place of others while a step runs, and a migrate that was
// killed between the two turns, lose no INSERT and give no id twice. Watching finds nothing wrong in ids
// that come while it looks.
func TestMoveUpgrades(t *testing.T) {
	width.Wide(t, "it takes half a minute")
	t.Parallel()
	s := newSite(t, 10)
	s.config = strings.Replace(s.config, "last: 999999999", "last: 999999999, step: 1, max_step: 1", 1) + "drain: {delay: 10s}\n"
	s.reload(0, s.config)
	s.reload(1, s.config)
	st := mainStore(t, s.proxies[0])
	a := s.run()
	upgrade := func() {
		for _, p := range s.proxies {
			if err := p.admin.Upgrade(t.Context()); err != nil {
				t.Error(err)
			}
		}
		a.more(30)
	}
	s.begin("observe")
	upgrade()
	s.must("--run lift")
	if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Prepare, "test", 0); err != nil {
		t.Fatal(err)
	}
	upgrade()
	s.proxies[1].stands(t, switches.Prepare)
	done := make(chan struct{})
	go func() {
		defer close(done)
		upgrade()
	}()
	s.migrate("--run", "enforce") // a process may be on its way
	<-done
	s.must("--run enforce", "step enforce: done")
	for range 3 {
		s.must("--run watch", "step watch: done")
	}
	upgrade()
	s.must("--run watch --back")
	s.must("--run enforce --back")
	upgrade()
	a.end(10)
}

// TestHiddenTable: a table that the account cannot see on a shard is not left out without a word.
func TestHiddenTable(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	for i := range s.shards {
		root := s.direct(i, "")
		harness.MustExec(t, root, "CREATE USER mover@'%' IDENTIFIED BY 'secret'")
		t.Cleanup(func() { harness.MustExec(t, root, "DROP USER mover@'%'") })
		for name := range tables {
			if i == 0 || name != "items" {
				harness.MustExec(t, root, "GRANT SELECT, ALTER, CREATE, INSERT ON "+s.shop+"."+name+" TO mover@'%'")
			}
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	as := " --account mover --password-file " + secret
	s.must(as)
	s.must("--run observe" + as)
	s.refuses("--run lift"+as, "refused: shard shard1: account 'mover'@'%' has no SELECT on schema "+s.shop, "step lift: NOT done")
	if n := s.counter(0, "orders"); n > 1000 {
		t.Errorf("the counter was lifted to %d", n)
	}
	for i := range s.shards {
		harness.MustExec(t, s.direct(i, ""), "GRANT SELECT, ALTER, CREATE, INSERT ON "+s.shop+".* TO mover@'%'")
	}
	// What it sees now is in the plan, in a band of its own.
	s.must("--run lift"+as, "6 of 6 counters were lifted", "step lift: done")
	s.must("--run enforce" + as)
	a := s.run()
	a.more(60)
	s.must("--run watch" + as)
	a.end(10)
}

// TestSecondListener: tables that rules name for another listener of a server are in the plan, by whatever
// name the listener reaches it.
func TestSecondListener(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	before, after, _ := strings.Cut(s.config, "stores: ")
	_, port, _ := strings.Cut(s.shards[0].Addr, ":")
	more := fmt.Sprintf("  - {name: billing, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}\n"+
		"  - {name: support, listen: 127.0.0.1:0, upstream: \"localhost:%s\", account: {user: app, password: app}}\n", s.shards[0].Addr, port)
	rules := "rules:\n"
	for _, r := range [][2]string{{"orders", "shard0, shard1, support"}, {"items", "billing"}, {"events", "support"}} {
		rules += fmt.Sprintf("  - {table: %s.%s, column: id, source: ids, mode: {switch: migration}, listeners: [%s]}\n", s.shop, r[0], r[1])
	}
	after, _, _ = strings.Cut(after, "rules: ")
	for i := range s.proxies {
		s.restart(i, before+more+"stores: "+after+rules)
	}
	s.must("", "3 tables on shard0, shard1")
	s.must("--run observe")
	s.must("--run lift", "4 of 4 counters were lifted")
	for _, table := range []string{"items", "events"} {
		if n := s.counter(0, table); n < 1_000_000_000 {
			t.Errorf("the counter of another listener's table %s stays at %d", table, n)
		}
	}
}

// TestGoneIDs: ids of rows that are gone are given to no other.
func TestGoneIDs(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	db := s.direct(0, s.shop)
	seen := map[int64]bool{}
	lost := func(when string) {
		t.Helper()
		id, err := harness.MustExec(t, db, "INSERT INTO events (n) VALUES (1)").LastInsertId()
		if err != nil || seen[id] {
			t.Errorf("%s: id %d was given before, %v", when, id, err)
		}
		seen[id] = true
		harness.MustExec(t, db, fmt.Sprintf("DELETE FROM events WHERE id = %d", id))
	}
	s.must("")
	lost("behind the plan")
	s.begin("observe", "lift")
	lost("lifted")
	s.must("--run lift --back")
	lost("back")
	s.must("--run lift")
	lost("lifted again")
	s.must("--run enforce")
	lost("enforced")
	s.must("--run watch")
	s.must("--run drop")
	s.must("--run drop --back")
	lost("counting again")
	s.must("--run watch --back")
	s.must("--run enforce --back")
	s.must("--run lift --back")
	lost("at the end")

	// A source that begins where a shard has counted.
	s = newSite(t, 10)
	db = s.direct(0, s.shop)
	harness.MustExec(t, db, "INSERT INTO events (id, n) VALUES (1500000, 1)")
	harness.MustExec(t, db, "DELETE FROM events WHERE id = 1500000")
	s.begin("observe")
	s.refuses("--run lift", "events has been at 1500001, and source ids goes on at 1000000", "step lift: NOT done")
}

// TestGroups: a counter of each group of a key cannot be lifted, and is refused before anything is done.
func TestGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE grouped (g INT, id INT AUTO_INCREMENT, PRIMARY KEY (g, id)) ENGINE=MyISAM")
	s.refuses("", "on shard shard0 column id counts within the groups of its key")
	harness.MustExec(t, s.direct(0, s.shop), "ALTER TABLE grouped ADD KEY (id)")
	s.begin("observe", "lift")
	if n := s.counter(0, "grouped"); n < 1_000_000_000 {
		t.Errorf("the counter is at %d", n)
	}
	// Nor can a column of MariaDB's lose its counter that nobody sees.
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE unseen (id INT AUTO_INCREMENT PRIMARY KEY INVISIBLE, n INT)")
	s.refuses("--run enforce", "run step lift again first")
	s.begin("lift", "enforce", "watch")
	s.must("--run drop", "unseen keeps AUTO_INCREMENT: the column is INVISIBLE", "step drop: done")
}

// TestEnforceAgain: the step is run again behind a kill, before the proxies have heard of the turn.
func TestEnforceAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift")
	st := mainStore(t, s.proxies[0])
	if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Prepare, "test", 0); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.proxies {
		p.stands(t, switches.Prepare)
	}
	for range 3 {
		if _, err := switches.Set(t.Context(), st.Notes, "migration", switches.Enforce, "test", 0); err != nil {
			t.Fatal(err)
		}
		s.must("--run enforce", "step enforce: done")
		s.must("--run enforce --back")
	}
}

// TestLaterOnShard: a table that comes to one shard after the other needs no other plan.
func TestLaterOnShard(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	s.begin("observe", "lift", "enforce")
	for i := range s.shards {
		harness.MustExec(t, s.direct(i, s.shop), "CREATE TABLE fresh (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
		s.refuses("--run watch", "run step lift again first")
		s.must("--run lift")
		if n := s.counter(i, "fresh"); n != 1_000_000_000+int64(i)*500_000_000 {
			t.Errorf("the counter is at %d", n)
		}
	}
	s.must("--run enforce")
	s.must("--run watch")
	s.must("--run watch --back")
	// One that is not in the plan, and whose counter is where ids of proxies are.
	harness.MustExec(t, s.direct(0, s.shop), "CREATE TABLE fresher (id INT AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 1000007")
	s.refuses("--run enforce --back", "fresher came later, and its counter, at 1000007, could meet ids")
	harness.MustExec(t, s.direct(0, s.shop), "TRUNCATE fresher")
	s.must("--run lift")
	harness.MustExec(t, s.direct(1, s.shop), "CREATE TABLE fresher (id INT AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 1000008")
	s.refuses("--run enforce --back", "shard shard1: "+s.shop+".fresher came later, and its counter, at 1000008, could meet ids")
}

// TestBackWithoutShard: a shard that is away is no obstacle to the way back, once that is forced. A column
// that was changed by hand and does not count is named.
func TestBackWithoutShard(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	cut := &cutter{}
	relay := harness.Between(t, s.shards[0].Addr, cut.cut, cut.join)
	for i := range s.proxies {
		s.restart(i, strings.Replace(s.config, s.shards[0].Addr, relay, 1))
	}
	s.begin("observe", "lift", "enforce", "watch", "drop")
	harness.MustExec(t, s.direct(0, s.shop), "ALTER TABLE events MODIFY id INT UNSIGNED NOT NULL COMMENT 'changed'")
	s.must("--run drop --back --force", "warning: shard shard0: "+s.shop+".events is left as it is")
	s.must("--run watch --back")
	s.refuses("--run enforce --back", "column id of "+s.shop+".events does not count", "step enforce: NOT done")
	cut.cut()
	s.refuses("--run enforce --back", "shard shard0 cannot be asked", "refused: shard shard0 is not there to be asked", "step enforce: NOT done")
	s.must("--run enforce --back --force", "step enforce: taken back")
	for _, p := range s.proxies {
		p.stands(t, switches.Observe)
	}
	s.refuses("", "shard shard0")
}

// TestStoreFailsBehindStep: what a step has done and found is said, also where the store does not say how the
// switch stands. A plan by a link stays in its place.
func TestStoreFailsBehindStep(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	cut := &cutter{}
	relay := harness.Between(t, s.shards[1].Addr, cut.cut, cut.join)
	before, after, _ := strings.Cut(s.config, "stores: ")
	for i := range s.proxies {
		s.restart(i, before+"stores: "+strings.Replace(after, s.shards[1].Addr, relay, 1))
	}
	s.begin("observe", "lift", "enforce", "watch", "drop")
	real := s.plan
	s.plan = filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(real, s.plan); err != nil {
		t.Fatal(err)
	}
	cut.cut()
	s.must("--run drop --back", "step drop: taken back", "warning: where the switch stands is not known: store main: ")
	out, status := s.migrate("--run", "4", "--back", "--json")
	if !strings.HasPrefix(out, "{") || !strings.Contains(out, `"state": "unknown"`) || status != 0 {
		t.Errorf("--json: status %d: %s", status, out)
	}
	if out, status = s.migrate("--run", "enforce", "--json"); !strings.HasPrefix(out, "{") || !strings.Contains(out, `"failed": true`) || status != 1 {
		t.Errorf("--json of a step that fails: status %d: %s", status, out)
	}
	if at, err := os.Readlink(s.plan); err != nil || at != real {
		t.Errorf("the link is %q, %v", at, err)
	}
	if text, err := os.ReadFile(real); err != nil || strings.Count(string(text), `"pending"`) != 2 {
		t.Errorf("the plan has %s, %v", text, err)
	}
}
