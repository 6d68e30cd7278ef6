package lifecycle

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// reloading asks a running idproxy to read another configuration, with the command.
func reloading(t *testing.T, p *harness.Proxy, config string) (said string, err error) {
	t.Helper()
	assert.Must(t, p.WriteConfig(config))
	return harness.Command(t, "reload", "--admin", "unix:"+filepath.Join(p.Dir, "admin"))
}

// TestReloadBusy reloads a busy idproxy again and again. Each time a listener comes, another one goes,
// a certificate is replaced, and something that sessions use changes. No connection is refused on the
// listener that stays, no statement fails, no row is lost and no id comes twice.
func TestReloadBusy(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	dir := t.TempDir()
	harness.WriteCertificate(t, dir, time.Hour)
	db, direct, base := withFourSources(t, server, fmt.Sprintf("limits: {id_wait: 30s}\nadmin: {socket: 'unix:%s'}\n", filepath.Join(dir, "admin")))
	base = strings.Replace(base, "upstream: ", "tls: {cert: server.pem, key: server.key}, upstream_tls: {mode: disabled}, upstream: ", 1)
	assert.MustTrue(t, strings.Contains(base, "server.pem"), "%v", base)
	p := harness.Start(t, harness.Spec{Dir: dir, Config: base})
	c := serveCustomers(t, server, db, p.Addr("a"), 64)
	waitCustomers(t, c, func() bool { return c.done() > 500 })
	_, port, err := net.SplitHostPort(server.Addr)
	assert.Must(t, err)
	config, source, reloads := base, "ids", width.Of(4, 20)
	for i := range reloads {
		before := c.done()
		var what string
		switch i % 4 {
		case 0: // two sources are others, of the same series
			config = strings.Replace(base, "step: 50", fmt.Sprintf("step: %d", 60+i), 1)
			config = strings.Replace(config, "worker: 7", fmt.Sprintf("worker: 7, max_ahead: %dms", 2000+i), 1)
			what = "sources.files.segment.step: "
		case 1: // a column gets its ids from another source
			fresh := fmt.Sprintf("ids%d", i)
			base = strings.Replace(base, "sources:", "sources:\n  "+fresh+": {segment: {store: main}}", 1)
			base = strings.Replace(base, "column: id, source: "+source+"}", "column: id, source: "+fresh+"}", 1)
			config, source = base, fresh
			what = fmt.Sprintf("sources.ids%d: added", i)
		case 2: // questions are asked with an account
			config = strings.Replace(base, "upstream: ", fmt.Sprintf("account: {user: %s, password: %s}, upstream: ", servers.AppUser, servers.AppPassword), 1)
			what = "listeners.a.account: added"
		case 3: // the server has another address
			config = strings.Replace(base, server.Addr, "localhost:"+port, 1)
			what = "listeners.a.upstream: "
		}
		harness.WriteCertificate(t, dir, time.Hour)
		at := harness.FreeAddr(t)
		more := fmt.Sprintf("listeners: [{name: more%d, listen: '%s', upstream: '%s'}, ", i, at, server.Addr)
		said, err := reloading(t, p, strings.Replace(config, "listeners: [", more, 1))
		assert.MustTrue(t, err == nil && strings.Contains(said, fmt.Sprintf("listeners.more%d: added", i)) && strings.Contains(said, what) && (i <= 0 || strings.Contains(said, fmt.Sprintf("listeners.more%d: removed", i-1))), "idproxy reload: %v\n%s", err, said)
		assert.NoError(t, serves(server, at), "the new listener")
		waitCustomers(t, c, func() bool { return c.done() > before+500 })
	}
	c.end()
	assert.True(t, c.count <= 0 && c.pinned <= 0, "%d failed in %d reloads, and %d in transactions: %v", c.count, reloads, c.pinned, c.failed)
	compareBooks(t, direct, c)
	n := strings.Count(p.Log(), `msg="certificates read again"`) // a listener that is made anew reads its own
	assert.True(t, n >= reloads/4, "certificates were read again %d times in %d reloads", n, reloads)
}

// TestReloadRefused: where one thing cannot be put in force, nothing is.
func TestReloadRefused(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	base := fmt.Sprintf("engine: loops\nadmin: {socket: 'unix:%s'}\nsources: {ids: {segment: {start: 5000}}}\nrules: [{table: %s.t, column: id, source: ids}]\n", filepath.Join(dir, "admin"), db)
	one := func(more string) string {
		return strings.Replace(harness.OneListener(server.Addr), "upstream: ", more+"upstream: ", 1) + base
	}
	p := harness.Start(t, harness.Spec{Dir: dir, Config: one("")})
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1)")
	free := harness.FreeAddr(t)
	taken := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer taken.Close()
	listen := func(at string) string { return fmt.Sprintf("listen: '%s', upstream: '%s'}", at, server.Addr) }
	for _, tt := range []struct{ name, config, want string }{
		{"an address that is taken", strings.Replace(one(""), "listeners: [", "listeners: [{name: b, "+listen(free)+", {name: c, "+listen(taken.Addr().String())+", ", 1), "listener c: listen tcp"},
		{"a certificate that is not there", one("tls: {cert: none.pem, key: none.key}, "), "none.pem"},
		{"a store that does not answer", strings.Replace(one(""), "sources: ", "stores: {s: {mysql: {dsn: 'u:p@tcp(127.0.0.1:1)/d'}}}\nsources: ", 1), "store s: "},
		{"a source that cannot be made", strings.Replace(one(""), "{start: 5000}}", "{start: 5000, step: 10}}, flake: {snowflake: {worker: 3, max_ahead: 1h}}", 1), `id source "flake": bad configuration`},
		{"the engine", strings.Replace(one(""), "engine: loops", "engine: goroutines", 1), "engine: loops, then goroutines needs a restart"},
		{"no configuration", "nonsense: 1\n", "nonsense"},
	} {
		said, err := reloading(t, p, tt.config)
		assert.True(t, err != nil && strings.Contains(said, tt.want), "%s: %v, it says %s; want %q", tt.name, err, said, tt.want)
		assert.Fails(t, tt.name+": a listener of a refused configuration serves", serves(server, free), "")
		harness.MustExec(t, pool, "INSERT INTO t (a) VALUES (1)")
	}
	n, last := harness.Count(t, pool, "SELECT COUNT(*) FROM t"), harness.Count(t, pool, "SELECT MAX(id) FROM t")
	assert.True(t, n == 7 && last == 5006, "%d rows up to id %d; want 7 up to 5006, from the source that was there", n, last)
}

// TestReloadMovedShard: what is known of a server says nothing of the one that takes its place, whose
// table holds greater ids. A session that is there stays at the old one.
func TestReloadMovedShard(t *testing.T) {
	both := harness.Servers(t)
	from, to := both[0], both[1]
	dir := t.TempDir()
	const name = "moved_shard"
	for i, server := range both {
		pool := harness.Open(t, server.Config(""), server.Addr)
		harness.MustExec(t, pool, "CREATE DATABASE "+name)
		t.Cleanup(func() { harness.MustExec(t, pool, "DROP DATABASE "+name) })
		harness.MustExec(t, pool, "CREATE TABLE "+name+".t (id BIGINT PRIMARY KEY, a INT)", fmt.Sprintf("INSERT INTO %s.t VALUES (%d, 0)", name, 10+1000*i))
	}
	base := fmt.Sprintf("admin: {socket: 'unix:%s'}\n", filepath.Join(dir, "admin")) + harness.OneRule(name+".t")
	p := harness.Start(t, harness.Spec{Dir: dir, Config: harness.OneListener(from.Addr) + base})
	stays := openRaw(t, from, p.Addr("a"))
	assert.Must(t, replay.Do(func() { stays.Must("INSERT INTO " + name + ".t (a) VALUES (1)") }))
	said, err := reloading(t, p, harness.OneListener(to.Addr)+base)
	assert.Must(t, err, said)
	fresh := openRaw(t, to, p.Addr("a"))
	err = replay.Do(func() { replay.WantCode(fresh.Query("INSERT INTO "+name+".t (a) VALUES (1)"), 1467) })
	assert.NoError(t, err, "the new server has greater ids than the source may give")
	assert.NoError(t, replay.Do(func() { stays.Must("INSERT INTO " + name + ".t (a) VALUES (2)") }))
}

// TestUpgradeBehindReload: a successor has the sockets of the listeners that a reload added, and none of
// one that a reload removed.
func TestUpgradeBehindReload(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	dir := t.TempDir()
	added := harness.FreeAddr(t)
	base := harness.OneListener(server.Addr) + fmt.Sprintf("admin: {socket: 'unix:%s'}\n", filepath.Join(dir, "admin"))
	more := strings.Replace(base, "listeners: [", fmt.Sprintf("listeners: [{name: more, listen: '%s', upstream: '%s'}, ", added, server.Addr), 1)
	p := harness.Start(t, harness.Spec{Dir: dir, Config: base})
	l := &line{p, t}
	for _, tt := range []struct {
		config string
		served bool
	}{{more, true}, {base, false}} {
		said, err := reloading(t, p, tt.config)
		assert.Must(t, err, said)
		pids := l.PIDs()
		l.upgrade()
		ended(t, pids[len(pids)-1]) // what answers is the successor
		assert.NoError(t, serves(server, p.Addr("a")), "the listener that stays")
		err = serves(server, added)
		assert.True(t, (err == nil) == tt.served, "the other listener, want it served %v: %v", tt.served, err)
	}
}

// TestReloadMovedColumn: a column that gets its ids from another source, or from another store, gets
// none that it was given before, though MAX(id) does not show rows that are not committed.
func TestReloadMovedColumn(t *testing.T) {
	server := harness.MariaDB(t)
	store := server.Config(harness.Database(t, server)).FormatDSN()
	two := "sources: {one: {segment: {}}, other: {segment: {}}}"
	for name, tt := range map[string]struct {
		before, after, source string // stores and sources, and the source of the rule afterwards
	}{
		"source":                 {two, two, "other"},
		"snowflake":              {"sources: {one: {snowflake: {worker: 7}}, other: {segment: {}}}", "sources: {one: {snowflake: {worker: 7}}, other: {segment: {}}}", "other"},
		"store":                  {oneIn("file: {dir: a}", "ids"), oneIn("file: {dir: b}", "ids"), "one"},
		"store, each table":      {oneIn("file: {dir: a}", "'ids.{table}'"), oneIn("file: {dir: b}", "'ids.{table}'"), "one"},
		"store, now each table":  {oneIn("file: {dir: a}", "ids"), oneIn("file: {dir: b}", "'ids.{table}'"), "one"},
		"store, once each table": {oneIn("file: {dir: a}", "'ids.{table}'"), oneIn("file: {dir: b}", "ids"), "one"},
		"the same store, reached otherwise": {
			oneIn("mysql: {dsn: '"+store+"'}", "'ids.{table}'"), oneIn("mysql: {dsn: '"+store+"?timeout=9s'}", "'ids.{table}'"), "one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := harness.Database(t, server)
			dir := t.TempDir()
			config := func(sources, source string) string {
				return harness.OneListener(server.Addr) + fmt.Sprintf("admin: {socket: 'unix:%s'}\n%s\n"+
					"rules: [{table: %s.t, column: id, source: %s}]\n", filepath.Join(dir, "admin"), sources, db, source)
			}
			p := harness.Start(t, harness.Spec{Dir: dir, Config: config(tt.before, "one")})
			pool := harness.Open(t, server.Config(db), p.Addr("a"))
			harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			open := assert.Of(pool.Begin()).Must(t)
			given, err := assert.Of(open.Exec("INSERT INTO t (a) VALUES (1), (1), (1)")).Must(t).LastInsertId()
			assert.Must(t, err)
			said, err := reloading(t, p, config(tt.after, tt.source))
			assert.Must(t, err, said)
			result := assert.Of(pool.Exec("INSERT INTO t (a) VALUES (2)")).Must(t, "an id of a row that is not committed came again")
			id, err := result.LastInsertId()
			assert.True(t, err == nil && id >= given+3, "id %d, %v; want one above those of three rows from %d on", id, err, given)
			assert.NoError(t, open.Commit())
		})
	}
}

// oneIn is a source in a store.
func oneIn(store, key string) string {
	return fmt.Sprintf("stores: {main: {%s}}\nsources: {one: {segment: {store: main, key: %s}}}", store, key)
}

// TestReloadMovedTables: what a source gave to each table is not known to another one that has a
// series for each, so the reload is refused.
func TestReloadMovedTables(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	config := func(key, source string) string {
		return harness.OneListener(server.Addr) + fmt.Sprintf("admin: {socket: 'unix:%s'}\n"+
			"sources: {one: {segment: {key: %s}}, other: {segment: {key: 'other.{table}'}}}\n"+
			"rules: [{table: %s.t, column: id, source: %s}]\n", filepath.Join(dir, "admin"), key, db, source)
	}
	p := harness.Start(t, harness.Spec{Dir: dir, Config: config("'a.{table}'", "one")})
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1)")
	for _, next := range []string{config("'b.{table}'", "one"), config("'a.{table}'", "other")} {
		said, err := reloading(t, p, next)
		assert.True(t, err != nil && strings.Contains(said, "is not known to it: restart"), "the reload says %s", said)
		harness.MustExec(t, pool, "INSERT INTO t (a) VALUES (1)")
	}
}

// TestReloadPrepared: an INSERT that was prepared before a reload brought a rule for its table gets
// ids from then on, and none from when another has taken it.
func TestReloadPrepared(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	base := harness.OneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
	kept := fmt.Sprintf("%srules:\n  - {table: %s.kept, column: id, source: ids}\n", base, db)
	enforced := fmt.Sprintf("  - {table: %s.late, column: id, source: ids}\n", db)
	p := replay.StartProxy(t, harness.Spec{Config: kept})
	conn := assert.Of(harness.Open(t, server.Config(db), p.Addr("a")).Conn(t.Context())).Must(t)
	defer conn.Close()
	for _, text := range []string{
		"CREATE TABLE kept (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
		"CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",
	} {
		assert.Of(conn.ExecContext(t.Context(), text)).Must(t)
	}
	insert := map[string]func() (int64, error){}
	for _, table := range []string{"kept", "late", "free"} {
		st := assert.Of(conn.PrepareContext(t.Context(), "INSERT INTO "+table+" (a) VALUES (?)")).Must(t)
		defer st.Close()
		insert[table] = func() (int64, error) { return assert.Of(st.ExecContext(t.Context(), 1)).Must(t, table).LastInsertId() }
	}
	want := func(table string, id int64) {
		t.Helper()
		assert.Of(insert[table]()).Equal(t, table+": id", id)
	}
	want("kept", 5000)
	want("late", 1)
	want("free", 1)
	reload := func(more string) {
		t.Helper()
		from := len(p.Log())
		assert.Must(t, p.Reload(kept+more))
		waitLog(t, p, from, `msg="configuration reloaded"`)
	}
	reload(enforced)
	want("kept", 5001)
	want("free", 2)
	want("late", 5002)
	want("late", 5003)
	reload(strings.Replace(enforced, "source: ids", "source: ids, mode: observe", 1))
	want("late", 5004) // of the server's own counter
	assert.Of(conn.ExecContext(t.Context(), "DELETE FROM late")).Must(t)
	reload(enforced)
	want("late", 5004)
	want("kept", 5005)
}

// TestReloadPreparedInSQL is the same for names, prepared while no table had a rule: from a literal
// and from a variable.
func TestReloadPreparedInSQL(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		base := harness.OneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
		p := replay.StartProxy(t, harness.Spec{Config: base})
		conn := assert.Of(harness.Open(t, server.Config(db), p.Addr("a")).Conn(t.Context())).Must(t)
		defer conn.Close()
		execute := func(texts ...string) (id int64) {
			t.Helper()
			for _, text := range texts {
				result := assert.Of(conn.ExecContext(t.Context(), text)).Must(t, text)
				id, _ = result.LastInsertId()
			}
			return id
		}
		execute("CREATE TABLE late (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "SET @q = 'INSERT INTO late (a) VALUES (2)'",
			"PREPARE l FROM 'INSERT INTO "+db+".late (a) VALUES (1)'", "PREPARE v FROM @q", "EXECUTE l", "EXECUTE v", `PREPARE q FROM 'DO "x"'`)
		from := len(p.Log())
		rules := fmt.Sprintf("%srules: [{table: %s.late, column: id, source: ids}]\n", base, db)
		assert.Must(t, p.Reload(rules))
		waitLog(t, p, from, `msg="configuration reloaded"`)
		execute("EXECUTE q") // unread, for what "x" is was not known: it cannot name the table
		assert.Equal(t, "prepared from a literal: id", execute("EXECUTE l"), 5000)
		_, err := conn.ExecContext(t.Context(), "EXECUTE v") // whose text was not read
		harness.WantError(t, err, mysql.ER_NOT_SUPPORTED_YET)
		assert.Equal(t, "prepared anew from a variable: id", execute("PREPARE v FROM @q", "EXECUTE v"), 5001)
	})
}
