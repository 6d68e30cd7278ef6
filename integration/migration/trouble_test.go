package migration

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"idproxy/cmd/idproxy/store"
	"idproxy/cmd/idproxy/switches"
	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// mainStore opens the store of a proxy.
func mainStore(t *testing.T, p watched) store.Store {
	t.Helper()
	cfg := assert.Of(config.Load(p.ConfigPath)).Must(t)
	stores := store.Opened{}
	t.Cleanup(stores.Close)
	return assert.Of(stores.Get(cfg.Store("main"))).Must(t)
}

// TestMoveUnlifted is what TestMove would find without step lift: counters of shards and ids of proxies meet.
func TestMoveUnlifted(t *testing.T) {
	s := startSite(t)
	a := s.run()
	a.more(60)
	st := mainStore(t, s.proxies[0])
	setSwitch(t, st.Notes, switches.Enforce)
	s.stand(switches.Enforce)
	assert.Until(t, "an id is met, or an INSERT fails: else TestMove finds nothing", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.wrong) > 0
	})
	close(a.stop)
	a.all.Wait()
	t.Logf("%d times wrong: %s", len(a.wrong), a.wrong[0])
}

// begin makes the plan and runs steps of it.
func (s *site) begin(steps ...string) {
	s.t.Helper()
	s.must("")
	s.steps(steps...)
}

func (s *site) steps(steps ...string) {
	s.t.Helper()
	for _, step := range steps {
		s.must("--run " + step)
	}
}

// back takes steps back.
func (s *site) back(steps ...string) {
	s.t.Helper()
	for _, step := range steps {
		s.must("--run " + step + " --back")
	}
}

func (s *site) restartAll(config string) {
	s.t.Helper()
	for i := range s.proxies {
		s.restart(i, config)
	}
}

// stand waits until all proxies have the switch in some state.
func (s *site) stand(state string) {
	s.t.Helper()
	for _, p := range s.proxies {
		p.stands(s.t, state)
	}
}

// restart has another process in the place of a proxy, with the same admin socket.
func (s *site) restart(proxy int, config string) {
	s.t.Helper()
	was := s.proxies[proxy]
	assert.Must(s.t, was.Stop(patience))
	s.proxies[proxy] = watched{harness.Start(s.t, harness.Spec{Dir: s.t.TempDir(), Config: config + "admin: {socket: " + was.socket + "}\n"}), was.admin, was.socket}
}

// TestBackFromChange: what has changed since the plan was made is no obstacle to the way back.
func TestBackFromChange(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift", "enforce")
	harness.MustExec(t, s.around(1), "DROP TABLE events")
	harness.MustExec(t, s.around(0), "CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY)")
	s.refuses("--run watch", "events is gone from shard shard1")
	s.must("--run enforce --back", "warning: not as the plan says: table "+s.shop+".events is gone from shard shard1", "step enforce: taken back")
	s.stand(switches.Observe)
	s.refuses("--run lift --back", "refused: not as the plan says: table "+s.shop+".events is gone", "step lift: NOT done")
	assert.GreaterOrEqual(t, "the counter is at", s.counter(0, "events"), 1_000_000_000)
	s.must("--run lift --back --force", "step lift: taken back")
	assert.LessOrEqual(t, "the counter stays at", s.counter(0, "events"), 2000)
}

// TestBackFromHalf: a step that was killed half way is not passed over on the way back, and neither is a
// counter that somebody set back.
func TestBackFromHalf(t *testing.T) {
	s := startSite(t)
	// A counter above the bands, without a row there, comes into its own once that is forced.
	harness.MustExec(t, s.around(0), "ALTER TABLE orders AUTO_INCREMENT = 2000000000")
	s.begin("observe")
	s.refuses("--run lift", "the counter of "+s.shop+".orders is at 2000000000, above last of source ids and outside of the shard's band", "step lift: NOT done")
	s.must("--run lift --force")
	s.must("--run enforce")
	assert.Equal(t, "the counter is at", s.counter(0, "orders"), 1_000_000_000)
	tx := assert.Of(s.around(1).Begin()).Must(t)
	assert.Of(tx.Exec("SELECT * FROM items")).Must(t)
	s.must("--run watch")
	c := s.command("--run", "drop")
	assert.Must(t, c.Start())
	counts := func() int64 {
		t.Helper()
		return harness.Count(t, s.around(0), "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('events', 'items') AND EXTRA LIKE '%auto_increment%'")
	}
	assert.Until(t, "the columns of one shard count no more", func() bool { return counts() == 0 })
	s.refuses("--run watch", "another idproxy migrate runs a step in this folder")
	assert.Must(t, c.Process.Kill())
	_ = c.Wait()
	assert.Must(t, tx.Rollback())
	s.must("", "5 drop     pending")
	s.must("--run watch --back")
	s.refuses("--run enforce --back", "column id of "+s.shop+".events does not count", "step enforce: NOT done")
	s.stand(switches.Enforce)
	s.must("--run drop --back", "step drop: taken back")
	assert.True(t, counts() == 2, "it does not count again")
	harness.MustExec(t, s.around(0), "TRUNCATE TABLE events")
	s.refuses("--run enforce --back", "the counter of "+s.shop+".events is at 1, not in its band", "run step lift first")
	s.must("--run lift", "1 of 6 counters were lifted")
	s.must("--run enforce --back", "step enforce: taken back")
	s.must("--run lift --back")
}

// TestStoreWentBack: proxies that were turned and a store that forgot it come together again, and no
// proxy leaves enforce for that.
func TestStoreWentBack(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift", "enforce")
	st := mainStore(t, s.proxies[0])
	assert.Must(t, st.Notes.Write(t.Context(), "switch:migration", ""))
	before := s.proxies[0].stands(t, switches.Enforce)
	assert.Until(t, "a proxy hears that the switch is gone", func() bool { return strings.Contains(s.proxies[0].stands(t, switches.Enforce).Problem, "went back") })
	// One that starts now observes, and its INSERTs get ids of the band.
	s.restart(1, s.config)
	s.proxies[1].stands(t, switches.Observe)
	for i, least := range []int64{1_000_000, 1_000_000_000} {
		r := harness.MustExec(t, harness.Open(t, s.shards[0].Config(s.shop), s.proxies[i].Addr("shard0")), "INSERT INTO orders (n) VALUES (1)")
		id, err := r.LastInsertId()
		assert.True(t, err == nil && id >= least && (i != 0 || id < 1_000_000_000), "proxy %d: id %d, %v", i, id, err)
	}
	s.refuses("--run observe", "the switch is at enforce already")
	s.must("--run enforce", "step enforce: done")
	for _, p := range s.proxies {
		at := p.stands(t, switches.Enforce)
		assert.True(t, at.Version > before.Version && at.Problem == "", "the switch stands at %+v, and stood at %+v", at, before)
	}
	events := assert.Of(s.proxies[0].admin.Events(t.Context())).Must(t)
	turned := 0
	for _, e := range events {
		if strings.Contains(e.Text, "switch turned") {
			turned++
		}
	}
	assert.True(t, turned <= 4, "the proxy that was turned was turned back meanwhile: %v", events) // observe, prepare, enforce, enforce
}

// TestProxyIsCut: a proxy that does not hear the switch goes on with what it heard last. Its INSERTs get
// ids of the shards' bands, and those of the other proxy its ids: none comes twice.
func TestProxyIsCut(t *testing.T) {
	width.Wide(t, "it takes half a minute")
	s := startSite(t)
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
	setSwitch(t, st.Notes, switches.Enforce)
	s.proxies[0].stands(t, switches.Enforce)
	at := s.proxies[1].stands(t, switches.Observe)
	assert.True(t, at.Problem != "", "it has no problem: %+v", at)
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
	assert.Of(switches.Set(t.Context(), st.Notes, "migration", switches.Enforce, "test", 6)).Must(t)
	p.stands(t, switches.Enforce)
	taken := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer taken.Close()
	bad := strings.Replace(text, "segment: {store: main", "segment: {store: other", 1)
	bad = strings.Replace(bad, "listeners: [", fmt.Sprintf("listeners: [{name: more, listen: %q, upstream: %q}, ", taken.Addr(), server.Addr), 1)
	assert.Must(t, p.WriteConfig(bad+adminIn(p.Dir)))
	assert.Of(p.admin.Reload(t.Context())).Fails(t, "the reload", "in use")
	s, err := p.admin.State(t.Context())
	assert.True(t, err == nil && len(s.Switches) == 1 && s.Switches[0].State == switches.Enforce && s.Switches[0].Store == "main", "%+v, %v", s.Switches, err)
	assert.Equal(t, "id", insertOne(t, harness.Open(t, server.Config(shop), p.Addr("a"))), 5000)
}

// TestPlanByHand: a plan that was changed by hand so that it is none is refused.
func TestPlanByHand(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift")
	good := assert.Of(os.ReadFile(s.plan)).Must(t)
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
		assert.MustTrue(t, text != string(good), "the plan has no %s:\n%s", old, good)
		assert.Must(t, os.WriteFile(s.plan, []byte(text), 0o600))
		s.refuses("--run enforce", fresh[1])
	}
	assert.Must(t, os.WriteFile(s.plan, good, 0o600))
	s.must("--run enforce", "step enforce: done")
}

// TestMoveUpgrades: processes that take the place of others while a step runs, and a migrate that was
// killed between the two turns, lose no INSERT and give no id twice. Watching finds nothing wrong in ids
// that come while it looks.
func TestMoveUpgrades(t *testing.T) {
	width.Wide(t, "it takes half a minute")
	s := startSite(t)
	s.config = strings.Replace(s.config, "last: 999999999", "last: 999999999, step: 1, max_step: 1", 1) + "drain: {delay: 10s}\n"
	s.reload(0, s.config)
	s.reload(1, s.config)
	st := mainStore(t, s.proxies[0])
	a := s.run()
	upgrade := func() {
		for _, p := range s.proxies {
			assert.NoError(t, p.admin.Upgrade(t.Context()))
		}
		a.more(30)
	}
	s.begin("observe")
	upgrade()
	s.must("--run lift")
	setSwitch(t, st.Notes, switches.Prepare)
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
	s.back("watch", "enforce")
	upgrade()
	a.end(10)
}

// TestHiddenTable: a table that the account cannot see on a shard is not left out without a word.
func TestHiddenTable(t *testing.T) {
	s := startSite(t)
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
	assert.Must(t, os.WriteFile(secret, []byte("secret"), 0o600))
	as := " --account mover --password-file " + secret
	s.must(as)
	s.must("--run observe" + as)
	s.refuses("--run lift"+as, "refused: shard shard1: account 'mover'@'%' has no SELECT on schema "+s.shop, "step lift: NOT done")
	assert.LessOrEqual(t, "the counter was lifted to", s.counter(0, "orders"), 1000)
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
	s := startSite(t)
	before, after, _ := strings.Cut(s.config, "stores: ")
	_, port, _ := strings.Cut(s.shards[0].Addr, ":")
	more := fmt.Sprintf("  - {name: billing, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}\n"+
		"  - {name: support, listen: 127.0.0.1:0, upstream: \"localhost:%s\", account: {user: app, password: app}}\n", s.shards[0].Addr, port)
	rules := "rules:\n"
	for _, r := range [][2]string{{"orders", "shard0, shard1, support"}, {"items", "billing"}, {"events", "support"}} {
		rules += fmt.Sprintf("  - {table: %s.%s, column: id, source: ids, mode: {switch: migration}, listeners: [%s]}\n", s.shop, r[0], r[1])
	}
	after, _, _ = strings.Cut(after, "rules: ")
	s.restartAll(before + more + "stores: " + after + rules)
	s.must("", "3 tables on shard0, shard1")
	s.must("--run observe")
	s.must("--run lift", "4 of 4 counters were lifted")
	for _, table := range []string{"items", "events"} {
		assert.GreaterOrEqual(t, "the counter of another listener's table "+table+" stays at", s.counter(0, table), 1_000_000_000)
	}
}

// TestGoneIDs: ids of rows that are gone are given to no other.
func TestGoneIDs(t *testing.T) {
	s := startSite(t)
	db := s.around(0)
	seen := map[int64]bool{}
	lost := func(when string) {
		t.Helper()
		id, err := harness.MustExec(t, db, "INSERT INTO events (n) VALUES (1)").LastInsertId()
		assert.True(t, err == nil && !seen[id], "%s: id %d was given before, %v", when, id, err)
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
	s.steps("watch", "drop")
	s.must("--run drop --back")
	lost("counting again")
	s.back("watch", "enforce", "lift")
	lost("at the end")

	// A source that begins where a shard has counted.
	s = newSite(t, 10)
	db = s.around(0)
	harness.MustExec(t, db, "INSERT INTO events (id, n) VALUES (1500000, 1)")
	harness.MustExec(t, db, "DELETE FROM events WHERE id = 1500000")
	s.begin("observe")
	s.refuses("--run lift", "events has been at 1500001, and source ids goes on at 1000000", "step lift: NOT done")
}

// TestGroups: a counter of each group of a key cannot be lifted, and is refused before anything is done.
func TestGroups(t *testing.T) {
	s := startSite(t)
	harness.MustExec(t, s.around(0), "CREATE TABLE grouped (g INT, id INT AUTO_INCREMENT, PRIMARY KEY (g, id)) ENGINE=MyISAM")
	s.refuses("", "on shard shard0 column id counts within the groups of its key")
	harness.MustExec(t, s.around(0), "ALTER TABLE grouped ADD KEY (id)")
	s.begin("observe", "lift")
	assert.GreaterOrEqual(t, "the counter is at", s.counter(0, "grouped"), 1_000_000_000)
	// Nor can a column of MariaDB's lose its counter that nobody sees.
	harness.MustExec(t, s.around(0), "CREATE TABLE unseen (id INT AUTO_INCREMENT PRIMARY KEY INVISIBLE, n INT)")
	s.refuses("--run enforce", "run step lift again first")
	s.begin("lift", "enforce", "watch")
	s.must("--run drop", "unseen keeps AUTO_INCREMENT: the column is INVISIBLE", "step drop: done")
}

// TestEnforceAgain: the step is run again behind a kill, before the proxies have heard of the turn.
func TestEnforceAgain(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift")
	st := mainStore(t, s.proxies[0])
	setSwitch(t, st.Notes, switches.Prepare)
	s.stand(switches.Prepare)
	for range 3 {
		setSwitch(t, st.Notes, switches.Enforce)
		s.must("--run enforce", "step enforce: done")
		s.must("--run enforce --back")
	}
}

// TestLaterOnShard: a table that comes to one shard after the other needs no other plan.
func TestLaterOnShard(t *testing.T) {
	s := startSite(t)
	s.begin("observe", "lift", "enforce")
	for i := range s.shards {
		harness.MustExec(t, s.around(i), "CREATE TABLE fresh (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
		s.refuses("--run watch", "run step lift again first")
		s.must("--run lift")
		assert.Equal(t, "the counter is at", s.counter(i, "fresh"), 1_000_000_000+int64(i)*500_000_000)
	}
	s.steps("enforce", "watch")
	s.must("--run watch --back")
	// One that is not in the plan, and whose counter is where ids of proxies are.
	harness.MustExec(t, s.around(0), "CREATE TABLE fresher (id INT AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 1000007")
	s.refuses("--run enforce --back", "fresher came later, and its counter, at 1000007, could meet ids")
	harness.MustExec(t, s.around(0), "TRUNCATE fresher")
	s.must("--run lift")
	harness.MustExec(t, s.around(1), "CREATE TABLE fresher (id INT AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 1000008")
	s.refuses("--run enforce --back", "shard shard1: "+s.shop+".fresher came later, and its counter, at 1000008, could meet ids")
}

// TestBackWithoutShard: a shard that is away is no obstacle to the way back, once that is forced. A column
// that was changed by hand and does not count is named.
func TestBackWithoutShard(t *testing.T) {
	s := startSite(t)
	cut := &cutter{}
	relay := harness.Between(t, s.shards[0].Addr, cut.cut, cut.join)
	s.restartAll(strings.Replace(s.config, s.shards[0].Addr, relay, 1))
	s.begin("observe", "lift", "enforce", "watch", "drop")
	harness.MustExec(t, s.around(0), "ALTER TABLE events MODIFY id INT UNSIGNED NOT NULL COMMENT 'changed'")
	s.must("--run drop --back --force", "warning: shard shard0: "+s.shop+".events is left as it is")
	s.must("--run watch --back")
	s.refuses("--run enforce --back", "column id of "+s.shop+".events does not count", "step enforce: NOT done")
	cut.cut()
	s.refuses("--run enforce --back", "shard shard0 cannot be asked", "refused: shard shard0 is not there to be asked", "step enforce: NOT done")
	s.must("--run enforce --back --force", "step enforce: taken back")
	s.stand(switches.Observe)
	s.refuses("", "shard shard0")
}

// TestStoreFailsBehindStep: what a step has done and found is said, also where the store does not say how the
// switch stands. A plan by a link stays in its place.
func TestStoreFailsBehindStep(t *testing.T) {
	s := startSite(t)
	cut := &cutter{}
	relay := harness.Between(t, s.shards[1].Addr, cut.cut, cut.join)
	before, after, _ := strings.Cut(s.config, "stores: ")
	s.restartAll(before + "stores: " + strings.Replace(after, s.shards[1].Addr, relay, 1))
	s.begin("observe", "lift", "enforce", "watch", "drop")
	real := s.plan
	s.plan = filepath.Join(t.TempDir(), "link.json")
	assert.Must(t, os.Symlink(real, s.plan))
	cut.cut()
	s.must("--run drop --back", "step drop: taken back", "warning: where the switch stands is not known: store main: ")
	out, status := s.migrate("--run", "4", "--back", "--json")
	assert.True(t, strings.HasPrefix(out, "{") && strings.Contains(out, `"state": "unknown"`) && status == 0, "--json: status %d: %s", status, out)
	out, status = s.migrate("--run", "enforce", "--json")
	assert.True(t, strings.HasPrefix(out, "{") && strings.Contains(out, `"failed": true`) && status == 1, "--json of a step that fails: status %d: %s", status, out)
	assert.Of(os.Readlink(s.plan)).Equal(t, "the link", real)
	text, err := os.ReadFile(real)
	assert.True(t, err == nil && strings.Count(string(text), `"pending"`) == 2, "the plan has %s, %v", text, err)
}

// cutter relays connections until it cuts them; then it takes no others, until it is healed.
type cutter struct {
	mu   sync.Mutex
	down bool
	open []net.Conn
}

// join is for harness.Between.
func (c *cutter) join(client, server net.Conn) [2]func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open = append(c.open, client, server); c.down {
		client.Close()
		server.Close()
	}
	return [2]func(){func() { harness.Copy(server, client) }, func() { harness.Copy(client, server) }}
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
	}
	c.down, c.open = true, nil
}

func (c *cutter) heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = false
}
