package migrate

import (
	"fmt"
	"net"
	"os"
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
	if n := s.counter(0, "events"); n > 1000 {
		t.Errorf("the counter stays at %d", n)
	}
}

// TestBackFromHalf: a step that was killed half way is not passed over on the way back, and neither is a
// counter that somebody set back.
func TestBackFromHalf(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
	// A counter above the bands, without a row there, comes into its own.
	harness.MustExec(t, s.direct(0, s.shop), "ALTER TABLE orders AUTO_INCREMENT = 2000000000")
	s.begin("observe", "lift", "enforce")
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
	if !width.Matrix() {
		return // it takes half a minute
	}
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
	if !width.Matrix() {
		return // it takes half a minute
	}
	t.Parallel()
	s := newSite(t, 10)
	s.config = strings.Replace(s.config, "last: 999999999", "last: 999999999, step: 1, max_step: 1", 1) + "drain: {delay: 4s}\n"
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
