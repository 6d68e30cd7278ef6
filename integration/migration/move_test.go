package migration

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// tables are those that move, of all types that have room, with what is easily lost in a definition.
var tables = map[string]string{
	"orders": "id INT NOT NULL AUTO_INCREMENT PRIMARY KEY COMMENT 'it''s no AUTO_INCREMENT', who VARCHAR(40), n INT, KEY (who, n)",
	"items":  "n INT, id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, who VARCHAR(40), PRIMARY KEY (id), KEY (who, n)",
	"events": "id INT UNSIGNED AUTO_INCREMENT, who VARCHAR(40), n INT, PRIMARY KEY (id), KEY (who, n)",
}

// site is two shards, and two proxies in front of both.
type site struct {
	t       *testing.T
	program string
	shop    string // the database, of the same name on both shards
	shards  []*servers.Server
	proxies []watched
	plan    string
	config  string
}

// startSite is newSite for a test beside others, with ten rows a table.
func startSite(t *testing.T) *site {
	t.Helper()
	t.Parallel()
	return newSite(t, 10)
}

// newSite makes shards with rows. Those of the second have other ids than those of the first: whatever
// comes twice later was given twice.
func newSite(t *testing.T, rows int) *site {
	t.Helper()
	s := &site{t: t, program: assert.Of(harness.Build()).Must(t), shards: harness.Servers(t), plan: filepath.Join(t.TempDir(), "plan.json")}
	s.shop = harness.Database(t, s.shards[0])
	ids := harness.Database(t, s.shards[1])
	for i := range s.shards {
		db := s.direct(i, "")
		if i > 0 {
			harness.MustExec(t, db, "CREATE DATABASE IF NOT EXISTS "+s.shop)
			t.Cleanup(func() { harness.MustExec(t, s.direct(i, ""), "DROP DATABASE "+s.shop) })
		}
		db = s.around(i)
		for name, columns := range tables {
			harness.MustExec(t, db, fmt.Sprintf("CREATE TABLE %s (%s) AUTO_INCREMENT = %d", name, columns, 1+i*500_000))
			for left := rows; left > 0; left -= 10_000 {
				harness.MustExec(t, db, "INSERT INTO "+name+" (who, n) VALUES "+strings.TrimSuffix(strings.Repeat("('before', 0),", min(left, 10_000)), ","))
			}
		}
	}
	for i := range s.shards {
		harness.MustExec(t, s.around(i), "ALTER TABLE items ADD COLUMN part_of INT, ADD CONSTRAINT part_of FOREIGN KEY (part_of) REFERENCES orders (id)")
	}
	account := func(i int) string {
		c := s.shards[i].Config("")
		return fmt.Sprintf("{user: %s, password: %s}", c.User, c.Passwd)
	}
	s.config = fmt.Sprintf(`listeners:
  - {name: shard0, listen: 127.0.0.1:0, upstream: %q, account: %s}
  - {name: shard1, listen: 127.0.0.1:0, upstream: %q, account: %s}
stores: {main: {mysql: {dsn: %q}}}
sources: {ids: {segment: {store: main, key: "{schema}.{table}", start: 1000000, last: 999999999}}}
rules: [{table: %s.*, column: id, source: ids, mode: {switch: migration}}]
`, s.shards[0].Addr, account(0), s.shards[1].Addr, account(1), harness.StoreDSN(s.shards[1], ids), s.shop)
	s.proxies = []watched{startProxy(t, s.config), startProxy(t, s.config)}
	return s
}

func (s *site) direct(shard int, db string) *sql.DB {
	return harness.Open(s.t, s.shards[shard].Config(db), "")
}

// around is the way to the shop on a shard that passes by the proxies.
func (s *site) around(shard int) *sql.DB { return s.direct(shard, s.shop) }

// command is idproxy migrate with some arguments.
func (s *site) command(args ...string) *exec.Cmd {
	args = append([]string{"migrate", "--config", s.proxies[0].ConfigPath, "--plan", s.plan}, args...)
	if _, err := os.Stat(s.plan); err != nil {
		for _, p := range s.proxies {
			args = append(args, "--proxy", p.socket)
		}
	}
	return exec.CommandContext(s.t.Context(), s.program, args...)
}

// migrate runs idproxy migrate, and returns what it prints and its exit status.
func (s *site) migrate(args ...string) (out string, status int) {
	s.t.Helper()
	c := s.command(args...)
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	if err := c.Run(); c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return text.String(), c.ProcessState.ExitCode()
}

// must runs it, and wants it to succeed and to say some words.
func (s *site) must(args string, words ...string) string {
	s.t.Helper()
	out, status := s.migrate(strings.Fields(args)...)
	s.t.Logf("idproxy migrate %s: status %d\n%s", args, status, out)
	assert.MustEqual(s.t, "migrate "+args+": status", status, 0)
	s.says(out, words...)
	return out
}

// refuses runs it, and wants it to fail and to say some words.
func (s *site) refuses(args string, words ...string) {
	s.t.Helper()
	out, status := s.migrate(strings.Fields(args)...)
	s.t.Logf("idproxy migrate %s: status %d\n%s", args, status, out)
	assert.Equal(s.t, "migrate "+args+": status", status, 1)
	s.says(out, words...)
}

func (s *site) says(out string, words ...string) {
	s.t.Helper()
	for _, w := range words {
		assert.True(s.t, strings.Contains(out, w), "it does not say %q", w)
	}
}

// application inserts through both proxies and around them, into all tables, until it is stopped.
type application struct {
	*site
	stop    chan struct{}
	all     sync.WaitGroup
	without atomic.Bool // AUTO_INCREMENT: INSERTs around the proxies may fail for that, as was announced
	done    atomic.Uint64
	refused atomic.Uint64

	mu    sync.Mutex
	given map[string]map[int64]string // by table and id: who got it
	wrong []string
}

func (s *site) run() *application {
	a := &application{site: s, stop: make(chan struct{}), given: map[string]map[int64]string{}}
	for name := range tables {
		a.given[name] = map[int64]string{}
	}
	for i, listener := range []string{"shard0", "shard1"} {
		for j, p := range s.proxies {
			a.insert(fmt.Sprintf("proxy%d %s", j, listener), harness.Open(s.t, s.shards[i].Config(s.shop), p.Addr(listener)), throughProxy)
		}
		a.insert("around "+listener, s.around(i), aroundProxies)
	}
	return a
}

// way is how INSERTs reach a shard.
type way int

const (
	throughProxy way = iota
	aroundProxies
)

// insert inserts as text and prepared, over one connection at a time.
func (a *application) insert(who string, db *sql.DB, how way) {
	db.SetMaxOpenConns(1)
	db.SetConnMaxLifetime(time.Second) // as pools do, which see nothing of an upgrade then
	prepared := map[string]*sql.Stmt{}
	for name := range tables {
		prepared[name] = assert.Of(db.Prepare("INSERT INTO " + name + " (who, n) VALUES (?, ?)")).Must(a.t)
	}
	a.all.Go(func() {
		for n := 0; ; n++ {
			for name := range tables {
				select {
				case <-a.stop:
					return
				case <-time.After(width.Of(20*time.Millisecond, 5*time.Millisecond)):
				}
				var r sql.Result
				var err error
				if n%2 == 0 {
					r, err = prepared[name].Exec(who, n)
				} else {
					r, err = db.Exec(fmt.Sprintf("INSERT INTO %s (who, n) VALUES ('%s', %d)", name, who, n))
				}
				a.take(who, name, how, r, err)
			}
		}
	})
}

func (a *application) take(who, table string, how way, r sql.Result, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1364 && how == aroundProxies && a.without.Load() {
		a.refused.Add(1)
		return
	}
	if err != nil {
		a.wrong = append(a.wrong, fmt.Sprintf("%v %s into %s: %v", time.Now(), who, table, err))
		return
	}
	id, err := r.LastInsertId()
	if before, twice := a.given[table][id]; twice || err != nil || id == 0 {
		a.wrong = append(a.wrong, fmt.Sprintf("id %d of %s for %s, and for %s before: %v", id, table, who, before, err))
	}
	a.given[table][id] = who
	a.done.Add(1)
}

// more waits until as many INSERTs again have succeeded.
func (a *application) more(n uint64) {
	a.t.Helper()
	from := a.done.Load()
	assert.Until(a.t, fmt.Sprintf("%d INSERTs more", n), func() bool { return a.done.Load() >= from+n }, func() string { return fmt.Sprint(a.done.Load()-from, " came") })
}

// end stops the application, and compares what it was told with all rows of both shards.
func (a *application) end(rows int) {
	a.t.Helper()
	close(a.stop)
	a.all.Wait()
	for _, w := range a.wrong {
		a.t.Error(w)
	}
	for name := range tables {
		all, twice, found := map[int64]bool{}, 0, 0
		for i := range a.shards {
			list := assert.Of(a.around(i).Query("SELECT id, who FROM " + name)).Must(a.t)
			for list.Next() {
				var id int64
				var who string
				assert.Must(a.t, list.Scan(&id, &who))
				if all[id] {
					twice++
				}
				if all[id] = true; who == a.given[name][id] {
					found++
				}
			}
			assert.Must(a.t, errors.Join(list.Err(), list.Close()))
		}
		given, want := len(a.given[name]), len(a.given[name])+2*rows
		assert.True(a.t, twice == 0 && found == given && len(all) == want, "%s: %d ids, want %d; %d twice; %d rows as the application was told, want %d", name, len(all), want, twice, found, given)
		a.t.Logf("%s: %d ids, none twice; %d were inserted meanwhile", name, len(all), given)
	}
	a.t.Logf("%d INSERTs, %d refused as announced", a.done.Load(), a.refused.Load())
}

// TestMove walks three tables on two shards all the way and back, while an application inserts through
// both proxies and around them.
func TestMove(t *testing.T) {
	t.Parallel()
	rows := width.Of(1000, 100_000)
	s := newSite(t, rows)
	a := s.run()
	a.more(60)
	s.must("", "3 tables on shard0, shard1", "pending", "AUTO_INCREMENT = 1500000000")
	s.refuses("--run enforce", "step observe comes first")
	s.must("--run observe", "step observe: done")
	a.more(60)
	s.must("--run lift", "6 of 6 counters were lifted", "step lift: done")
	a.more(60)
	s.must("--run lift", "0 of 6 counters were lifted")
	s.must("--run 3", "2 proxies turned within", "step enforce: done")
	a.more(60)
	s.must("--run watch", "INSERTs come around the proxies", "step watch: done")
	s.refuses("--run drop", "INSERTs come around the proxies", "step drop: NOT done")
	s.refuses("--run lift --back", "step watch is done, and is taken back first")
	a.without.Store(true)
	s.must("--run drop --force", "shard shard1: "+s.shop+".orders keeps AUTO_INCREMENT: foreign keys of "+s.shop+".items refer", "step drop: done")
	a.more(60)
	s.must("--run drop --back", "step drop: taken back")
	a.more(60)
	a.without.Store(false)
	s.must("--run watch --back")
	s.must("--run enforce --back", "step enforce: taken back")
	a.more(60)
	s.must("--run enforce", "step enforce: done") // and forth again
	a.more(60)
	s.must("--run enforce --back")
	s.must("--run lift --back", "the proxies have given ids, and its counters stay where they are")
	s.must("--run observe --back", "step observe: taken back")
	a.more(60)
	a.end(rows)
}

// TestMoveHindered: a step that was killed is run again, a table that somebody uses is waited for, and
// nothing is run where something else is there than the plan says.
func TestMoveHindered(t *testing.T) {
	s := startSite(t)
	s.must("")
	s.must("--run observe")
	// Killed in the middle: the last table is in use.
	tx := assert.Of(s.around(1).Begin()).Must(t)
	assert.Of(tx.Exec("SELECT * FROM orders")).Must(t)
	for i := range s.shards {
		harness.MustExec(t, s.direct(i, ""), "CREATE USER weak"+s.shop+" IDENTIFIED BY 'weak'", "GRANT SELECT ON *.* TO weak"+s.shop)
	}
	password := filepath.Join(t.TempDir(), "password")
	assert.Must(t, os.WriteFile(password, []byte("weak\n"), 0o600))
	s.refuses("--run lift --account weak"+s.shop+" --password-file "+password, "needs ALTER, CREATE and INSERT")
	c := s.command("--run", "lift")
	assert.Must(t, c.Start())
	s.waiting(1, "orders")
	assert.Must(t, c.Process.Kill())
	assert.MustTrue(t, c.Wait() != nil, "it was not killed in the step")
	s.must("", "2 lift     pending")
	n := s.counter(0, "orders")
	assert.MustTrue(t, n >= 1_000_000_000, "no counter is lifted, that of orders is at %d", n)
	s.untilWaiting(1, "orders", 0)
	assert.Must(t, tx.Rollback())
	s.must("--run lift", "1 of 6 counters were lifted")
	assert.Equal(t, "the counter is at", s.counter(1, "orders"), 1_500_000_000)
	// A counter that somebody set back, and a row where the proxies will give ids.
	harness.MustExec(t, s.around(0), "ALTER TABLE orders AUTO_INCREMENT = 1")
	harness.MustExec(t, s.around(1), "INSERT INTO events (id) VALUES (1000005)")
	s.refuses("--run enforce", "the counter of "+s.shop+".orders is at 11", "events holds id 1000005", "step enforce: NOT done")
	harness.MustExec(t, s.around(1), "DELETE FROM events WHERE id = 1000005")
	s.must("--run lift", "1 of 6")
	// Another table, another column, another configuration.
	db := s.around(0)
	harness.MustExec(t, db, "CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY)")
	s.must("", "note: new in the plan: "+s.shop+".late", "2 lift     pending")
	s.refuses("--run enforce", "tables that are new are in the plan now, "+s.shop+".late: run step lift again first")
	s.must("--run lift", "1 of 7 counters were lifted")
	harness.MustExec(t, db, "DROP TABLE late")
	s.refuses("--run enforce", "table "+s.shop+".late is gone")
	harness.MustExec(t, db, "CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY)")
	s.must("--run lift", "1 of 7 counters were lifted")
	harness.MustExec(t, db, "ALTER TABLE events MODIFY id BIGINT AUTO_INCREMENT")
	s.refuses("", "column id of table "+s.shop+".events on shard shard0 was int(10) unsigned")
	harness.MustExec(t, db, "ALTER TABLE events MODIFY id INT UNSIGNED AUTO_INCREMENT")
	assert.Must(t, s.proxies[0].WriteConfig(strings.Replace(s.config, "last: 999999999", "last: 999999998", 1)))
	s.refuses("--run enforce", "from 1000000 to 999999999")
	assert.Must(t, s.proxies[0].WriteConfig(s.config))
	// A proxy whose series end elsewhere.
	s.reload(1, strings.Replace(s.config, "last: 999999999", "last: 999999998", 1))
	s.refuses("--run enforce", "are others than those of", "step enforce: NOT done")
	s.reload(1, s.config)
	// A statement that would be refused, and a proxy that is away.
	harness.MustExec(t, s.through(0, 0), "INSERT INTO orders (id) VALUES ((SELECT 777))")
	s.must("--run observe", "warning: would be refused", "(SELECT ?)")
	s.refuses("--run enforce", "refused: would be refused", "step enforce: NOT done")
	data := assert.Of(os.ReadFile(s.plan)).Must(t)
	assert.True(t, !strings.Contains(string(data), servers.AppPassword+`"`), "the plan has a password: %s", data)
	assert.Must(t, s.proxies[1].Stop(patience))
	s.refuses("--run enforce", "is idproxy running", "step enforce: NOT done")
	assert.Equal(t, "the switch stands at version", s.proxies[0].stands(t, "observe").Version, 1)
	assert.Must(t, os.WriteFile(s.plan, data[:len(data)/2], 0o600))
	s.refuses("", "cannot be read")
	assert.Must(t, os.WriteFile(s.plan, data, 0o600))
	// A proxy that watches another store does not hear the switch: no proxy gives ids.
	t.Run("another store", func(t *testing.T) {
		width.Wide(t, "a proxy has a quarter of a minute to hear the switch")
		other := harness.StoreDSN(s.shards[1], harness.Database(t, s.shards[1]))
		startProxyIn(t, s.proxies[1].Dir, regexp.MustCompile(`dsn: "[^"]*"`).ReplaceAllString(s.config, fmt.Sprintf("dsn: %q", other)))
		s.refuses("--run enforce --force", "has the switch at observe, not at prepare", "the switch is at observe again", "step enforce: NOT done")
		assert.Equal(t, "the switch stands at version", s.proxies[0].stands(t, "observe").Version, 3)
	})
}

// reload gives a proxy another configuration, and waits until it is in force.
func (s *site) reload(proxy int, config string) {
	s.t.Helper()
	p := s.proxies[proxy]
	assert.Must(s.t, p.WriteConfig(config+adminIn(p.Dir)))
	assert.Of(p.admin.Reload(s.t.Context())).Must(s.t)
}

// counter is the next id that a shard gives itself.
func (s *site) counter(shard int, table string) (n int64) {
	s.t.Helper()
	var name, text string
	assert.Must(s.t, s.around(shard).QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &text))
	_, after, _ := strings.Cut(text, "AUTO_INCREMENT=")
	assert.Of(fmt.Sscan(after, &n)).Must(s.t, text)
	return n
}

// TestManyTables: init and migrate of 300 tables on two shards. How long that takes is logged.
func TestManyTables(t *testing.T) {
	n := width.Of(6, 300)
	all := harness.Servers(t)
	shop := harness.Database(t, all[0])
	args := []string{"init", "--account", servers.AppUser, "--password-env", "PASSWORD", "--switch", "migration"}
	for i, server := range all {
		root := harness.Open(t, server.Config(""), "")
		harness.MustExec(t, root, "CREATE DATABASE IF NOT EXISTS "+shop)
		if i > 0 {
			t.Cleanup(func() { harness.MustExec(t, root, "DROP DATABASE "+shop) })
		}
		db := harness.Open(t, server.Config(shop), "")
		for j := range n {
			kind := []string{"INT", "BIGINT", "INT UNSIGNED"}[j%3]
			harness.MustExec(t, db, fmt.Sprintf("CREATE TABLE t%d (id %s AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = %d", j, kind, 1+j*1000),
				fmt.Sprintf("INSERT INTO t%d (a) VALUES (1), (2)", j))
		}
		args = append(args, "--server", fmt.Sprintf("shard%d=%s", i, server.Addr))
	}
	program := assert.Of(harness.BuildPlain()).Must(t)
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "PASSWORD="+servers.AppPassword)
		out, err := c.CombinedOutput()
		assert.Must(t, err, fmt.Sprintf("%q", args), string(out))
		return string(out)
	}
	began := time.Now()
	run(append(args, "idproxy.yaml")...)
	written := time.Now()
	data := assert.Of(os.ReadFile(filepath.Join(dir, "idproxy.yaml"))).Must(t)
	// Other tests have tables on these servers, too.
	only := regexp.MustCompile(`(?m)^  - \{table: (\S+)\..*\n`).ReplaceAllStringFunc(string(data), func(line string) string {
		if strings.Contains(line, shop+".") {
			return line
		}
		return ""
	})
	admin := filepath.Join(dir, "admin.sock")
	only = strings.Replace(regexp.MustCompile(`127\.0\.0\.1:330[78]`).ReplaceAllString(only, "127.0.0.1:0"), "unix:./admin.sock", "unix:"+admin, 1)
	harness.Start(t, harness.Spec{Dir: dir, Config: only, Plain: true, Env: []string{"PASSWORD=" + servers.AppPassword}})
	for _, step := range []string{"", "observe", "lift", "enforce", "watch", "drop", "drop --back", "watch --back", "enforce --back", "lift --back"} {
		began := time.Now()
		out := run(append([]string{"migrate", "--plan", "plan.json", "--run"}, strings.Split(step, " ")...)...)
		took := time.Since(began)
		t.Logf("%d tables on two shards: migrate %s %v", n, step, took.Round(time.Millisecond))
		assert.True(t, took <= time.Minute, "%s took %v", step, took)
		assert.True(t, step != "lift" || strings.Contains(out, fmt.Sprintf("%d of %[1]d counters were lifted", 2*n)), "lift: %s", out)
	}
	t.Logf("%d tables on two shards: init %v", n, written.Sub(began).Round(time.Millisecond))
}

func TestMain(m *testing.M) { harness.Main(m) }
