package lifecycle

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// mover moves a series from one place to another, in one process or in several, and no id may come twice. The table
// has no rows when ids are asked for: these would be another guard.
type mover struct {
	t      *testing.T
	server *servers.Server
	dir    string
	db     string   // of the table
	stores []string // places of series: two databases
	kept   []string // their names
	direct *sql.DB
	seen   map[int64]bool
}

func newMover(t *testing.T, server *servers.Server) *mover {
	m := &mover{t: t, server: server, dir: t.TempDir(), seen: map[int64]bool{}}
	m.db, m.direct = harness.Tables(t, server, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	for range 2 {
		m.kept = append(m.kept, harness.Database(t, server))
		m.stores = append(m.stores, fmt.Sprintf("{mysql: {dsn: %q}}", harness.StoreDSN(server, m.kept[len(m.kept)-1])))
	}
	return m
}

// folder is a file store, where one process has its series.
func (m *mover) folder(name string) string {
	return fmt.Sprintf("{file: {dir: '%s'}}", filepath.Join(m.dir, name))
}

// config has one source, named ids unless it says otherwise.
func (m *mover) config(store, segment string) string {
	return harness.OneListener(m.server.Addr) + fmt.Sprintf("stores: {main: %s}\nsources: {ids: {segment: {store: main, step: 10, step_policy: fixed%s}}}\nrules: [{table: %s.t, column: id, source: ids}]\n",
		store, segment, m.db)
}

// start starts a process with a configuration.
func (m *mover) start(config string) *harness.Proxy {
	m.t.Helper()
	dir := assert.Of(os.MkdirTemp(m.dir, "")).Must(m.t)
	return harness.Start(m.t, harness.Spec{Dir: dir, Config: config})
}

// restart starts a process in place of another one.
func (m *mover) restart(p *harness.Proxy, config string) *harness.Proxy {
	m.t.Helper()
	assert.Must(m.t, p.Stop(time.Minute))
	return m.start(config)
}

// startClosed is start with the series that there are; restartClosed is restart with them.
func (m *mover) startClosed(config string) *harness.Proxy {
	m.t.Helper()
	return harness.Start(m.t, harness.Spec{Dir: assert.Of(os.MkdirTemp(m.dir, "")).Must(m.t), Config: config, Closed: true})
}

func (m *mover) restartClosed(p *harness.Proxy, config string) *harness.Proxy {
	m.t.Helper()
	assert.Must(m.t, p.Stop(time.Minute))
	return m.startClosed(config)
}

// renamed is a configuration whose source has another name.
func (m *mover) renamed(config string) string {
	return strings.ReplaceAll(strings.ReplaceAll(config, "source: ids", "source: renamed"), "{ids:", "{renamed:")
}

// empty takes all that a store has.
func (m *mover) empty(store int) {
	m.t.Helper()
	harness.MustExec(m.t, m.direct, "DELETE FROM "+m.kept[store]+".idproxy_segment")
}

// takes asks for ids, and reports why there are no more.
func (m *mover) takes(p *harness.Proxy, n int) error {
	m.t.Helper()
	db := harness.Open(m.t, m.server.Config(m.db), p.Addr("a"))
	defer db.Close() //nolint:errcheck // nothing is pending
	defer harness.MustExec(m.t, m.direct, "DELETE FROM t")
	for range n {
		r, err := db.Exec("INSERT INTO t (a) VALUES (1)")
		if err != nil {
			return err
		}
		id := assert.Of(r.LastInsertId()).Must(m.t)
		assert.True(m.t, !m.seen[id], "id %d came twice", id)
		m.seen[id] = true
	}
	return nil
}

// gives asks for ids that must come.
func (m *mover) gives(p *harness.Proxy, n int) {
	m.t.Helper()
	assert.Must(m.t, m.takes(p, n))
}

// refuses asks for ids until none come, and what the error says.
func (m *mover) refuses(p *harness.Proxy, want string) {
	m.t.Helper()
	err := m.takes(p, 100)
	assert.MustTrue(m.t, err != nil && strings.Contains(err.Error(), "1467"), "ids go on: %v", err)
	assert.Until(m.t, "the log says why", func() bool { return strings.Contains(p.Log(), want) }, p.Log)
}

// shows looks at what idproxy source show prints, and idproxy source history.
func (m *mover) shows(p *harness.Proxy, want string) {
	m.t.Helper()
	for _, what := range []string{"show", "history"} {
		out, _ := harness.Command(m.t, "source", what, "ids", "--config", p.ConfigPath) // of a series that is sealed the status is 1
		assert.True(m.t, strings.Contains(out, want), "source %s: %s; want %q", what, out, want)
	}
}

func (m *mover) reload(p *harness.Proxy, config string) {
	m.t.Helper()
	from := len(p.Log())
	assert.Must(m.t, p.Reload(config))
	waitLog(m.t, p, from, `msg="configuration reloaded"`)
}

// TestMoves has series go on in another store, under another key or under another name, and back.
func TestMoves(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	const sealed = "the key is sealed at"
	for name, act := range map[string]func(m *mover){
		"to a store, and back by a restart": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ""))
			m.gives(p, 25)
			m.reload(p, m.config(m.stores[0], ""))
			m.gives(p, 25)
			m.shows(p, "moved   from key ids of file "+m.dir)
			p = m.restart(p, m.config(m.folder("a"), ""))
			m.refuses(p, sealed)
			m.shows(p, "moved   to key ids of mysql store ")
		},
		"to a store and to and fro": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ""))
			for _, store := range []string{m.stores[0], m.folder("a"), m.stores[1], m.stores[0], m.folder("a")} {
				m.gives(p, 25)
				m.reload(p, m.config(store, ""))
			}
			m.gives(p, 25)
		},
		"by a process that gave none": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ""))
			m.gives(p, 25)
			p = m.restart(p, m.config(m.folder("a"), ""))
			m.reload(p, m.config(m.stores[0], ""))
			m.gives(p, 25)
		},
		"beside a process that has the old one": func(m *mover) {
			p, other := m.start(m.config(m.stores[0], "")), m.start(m.config(m.stores[0], ""))
			m.gives(p, 25)
			m.gives(other, 25)
			m.reload(p, m.config(m.stores[1], ""))
			m.gives(p, 25)
			m.refuses(other, sealed)
			m.reload(other, m.config(m.stores[1], ""))
			m.gives(other, 25)
			m.gives(p, 25)
		},
		"to a series that was used": func(m *mover) {
			p := m.start(m.config(m.stores[0], ", key: other"))
			m.gives(p, 3)
			p = m.restart(p, m.config(m.stores[0], ", start: 100"))
			m.gives(p, 25)
			m.reload(p, m.config(m.stores[0], ", key: other"))
			m.gives(p, 25)
			m.refuses(m.restart(p, m.config(m.stores[0], "")), sealed)
		},
		"under another name": func(m *mover) {
			p := m.start(m.config(m.stores[0], ""))
			m.gives(p, 25)
			m.reload(p, m.renamed(m.config(m.stores[0], "")))
			m.gives(p, 25)
			m.refuses(m.restart(p, m.config(m.stores[0], "")), sealed)
		},
		"of each table": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ", key: '{schema}.{table}'"))
			m.gives(p, 25)
			p = m.restart(p, m.config(m.folder("a"), ", key: '{schema}.{table}'"))
			m.reload(p, m.config(m.stores[0], ", key: '{schema}.{table}'"))
			m.gives(p, 25)
			m.refuses(m.restart(p, m.config(m.folder("a"), ", key: '{schema}.{table}'")), sealed)
		},
		"of each table, and one that is new": func(m *mover) {
			of := func(store string) string {
				return strings.ReplaceAll(m.config(store, ", key: '{schema}.{table}'"), m.db+".t,", m.db+".*,")
			}
			p := m.start(of(m.folder("a")))
			m.gives(p, 5)
			m.reload(p, of(m.stores[0]))
			m.gives(p, 5)
			harness.MustExec(m.t, m.direct, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
			into := func(p *harness.Proxy) error {
				db := harness.Open(m.t, m.server.Config(m.db), p.Addr("a"))
				defer db.Close() //nolint:errcheck // nothing is pending
				_, err := db.Exec("INSERT INTO u (a) VALUES (1)")
				return err
			}
			assert.Must(m.t, into(p))
			p = m.restart(p, of(m.folder("a")))
			assert.Fails(m.t, "an INSERT into the new table", into(p), sealed)
		},
		"of one, then of each table": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ""))
			m.gives(p, 25)
			p = m.restart(p, m.config(m.folder("a"), ""))
			m.reload(p, m.config(m.stores[0], ", key: '{schema}.{table}'"))
			m.gives(p, 25)
		},
		"by a restart": func(m *mover) {
			p := m.start(m.config(m.folder("a"), ""))
			m.gives(p, 25)
			old := p.ConfigPath
			for _, config := range []string{m.config(m.stores[0], ""), m.config(m.folder("a"), ", key: other"), m.renamed(m.config(m.folder("a"), ""))} {
				p = m.restartClosed(p, config)
				m.refuses(p, "is not open in its store")
			}
			assert.Must(m.t, p.Stop(time.Minute))
			assert.Must(m.t, os.WriteFile(p.ConfigPath, []byte(m.config(m.stores[0], "")), 0o600))
			out, err := harness.Command(m.t, "source", "import", "--format", "idproxy", "--from", old, "--config", p.ConfigPath)
			assert.Must(m.t, err, out)
			m.gives(m.startClosed(m.config(m.stores[0], "")), 25)
		},
		"of a store that was emptied": func(m *mover) {
			p := m.start(m.config(m.stores[0], ""))
			m.gives(p, 25)
			m.empty(0)
			m.refuses(p, "the store went back")
			m.refuses(m.restartClosed(p, m.config(m.stores[0], "")), "is not open in its store")
		},
		"by a reload that is refused in the end": func(m *mover) {
			p := m.start(m.config(m.stores[0], ""))
			m.gives(p, 25)
			from := len(p.Log())
			bad := "sources: {flake: {snowflake: {worker: 3, max_ahead: 1h}}, "
			assert.Must(m.t, p.Reload(strings.Replace(m.config(m.stores[1], ""), "sources: {", bad, 1)))
			waitLog(m.t, p, from, `configuration not reloaded`)
			assert.Contains(m.t, "the log", p.Log(), "series moved")
			m.gives(p, 25)
			m.refuses(m.restart(p, m.config(m.stores[1], "")), sealed)
		},
	} {
		t.Run(name, func(t *testing.T) { act(newMover(t, server)) })
	}
}

// TestRenamedShardByShard: the series of a table begins above that of a table which a server with the new name does not have: it
// may be that one, renamed there before other shards, whose rows come under the new name later. In a schema of its own nothing
// is above.
func TestRenamedShardByShard(t *testing.T) {
	t.Parallel()
	a, b := harness.MariaDB(t), harness.MySQL(t)
	const db = "shard_by_shard"
	other := harness.Database(t, a)
	direct := []*sql.DB{harness.Open(t, a.Config(""), ""), harness.Open(t, b.Config(""), "")}
	for _, d := range direct {
		harness.MustExec(t, d, "CREATE DATABASE "+db)
		t.Cleanup(func() { harness.MustExec(t, d, "DROP DATABASE "+db) })
		harness.MustExec(t, d, "CREATE TABLE "+db+".orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE "+db+".items (id BIGINT PRIMARY KEY, a INT)")
	}
	harness.MustExec(t, direct[0], "CREATE TABLE "+other+".orders2 (id BIGINT PRIMARY KEY, a INT)")
	p := harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}
  - {name: b, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}
sources: {ids: {segment: {step: 10, step_policy: fixed, key: "{schema}.{table}"}}}
rules: [{table: "%s.*", column: id, source: ids}, {table: "%s.*", column: id, source: ids}]
`, a.Addr, b.Addr, db, other))
	shards := []*sql.DB{harness.Open(t, a.Config(db), p.Addr("a")), harness.Open(t, b.Config(db), p.Addr("b"))}
	insert := func(shard int, table string) {
		t.Helper()
		harness.MustExec(t, shards[shard], "INSERT INTO "+table+" (a) VALUES (1), (1), (1)")
	}
	insert(0, "orders")
	insert(1, "orders")
	insert(0, "items")
	rename := "RENAME TABLE " + db + ".orders TO " + db + ".orders2"
	harness.MustExec(t, direct[0], rename)
	insert(0, "orders2")
	harness.MustExec(t, direct[1], rename)
	insert(1, "orders2")
	seen := map[string]bool{}
	for _, d := range direct {
		var ids string
		assert.Must(t, d.QueryRow("SELECT GROUP_CONCAT(id) FROM "+db+".orders2").Scan(&ids))
		for id := range strings.SplitSeq(ids, ",") {
			assert.True(t, !seen[id], "id %s is on both shards", id)
			seen[id] = true
		}
	}
	assert.Equal(t, "ids", len(seen), 12)
	insert(0, other+".orders2")
	assert.Equal(t, "the first id in another schema", harness.Count(t, direct[0], "SELECT MIN(id) FROM "+other+".orders2"), 1)
}

// TestReloadDryRun: what a reload would do to series is said, or why it would be refused, and nothing is done.
func TestReloadDryRun(t *testing.T) {
	t.Parallel()
	m, dir := newMover(t, harness.MariaDB(t)), t.TempDir()
	admin := fmt.Sprintf("admin: {socket: 'unix:%s'}\n", filepath.Join(dir, "admin"))
	here, there := admin+m.config(m.folder("a"), ""), admin+m.config(m.stores[0], "")
	p := harness.Start(t, harness.Spec{Dir: dir, Config: here})
	dry := func(config string) (string, error) {
		assert.Must(t, p.WriteConfig(config))
		return harness.Command(t, "reload", "--dry-run", "--admin", "unix:"+filepath.Join(dir, "admin"))
	}
	m.gives(p, 25)
	for _, tt := range []struct{ config, says string }{
		{there, "and would be sealed; would go on in mysql"},
		{admin + m.config(m.folder("b"), ""), "would go on in file " + filepath.Join(m.dir, "b") + " under ids"},
		{strings.Replace(here, "{ids:", "{more: {segment: {store: main}}, ids:", 1), "series more: would be opened in file " + filepath.Join(m.dir, "a")},
		{here, "nothing has changed"},
	} {
		assert.Contains(t, "a dry run", assert.Of(dry(tt.config)).Must(t), tt.says)
		m.gives(p, 25)
	}
	_, err := os.Stat(filepath.Join(m.dir, "b"))
	assert.ErrorIs(t, "the folder that was not made", err, os.ErrNotExist)
	away := strings.Replace(there, m.server.Addr, "127.0.0.1:1", 2)
	would, err1 := dry(away)
	does, err2 := reloading(t, p, away)
	assert.True(t, err1 != nil && err2 != nil && would == does, "a store that is away: a dry run says %q, %v; a reload %q, %v", would, err1, does, err2)
	assert.Of(reloading(t, p, there)).Must(t)
	m.gives(p, 25)
	assert.Contains(t, "a dry run behind the reload", assert.Of(dry(there)).Must(t), "nothing has changed")
}

// TestReloadWhileASeriesBegins: the first INSERT waits for what another table of its series holds, which is locked, and a reload
// takes the source away meanwhile. The INSERT gets its id from the source in its place.
func TestReloadWhileASeriesBegins(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	db, direct := harness.Tables(t, server, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO u VALUES (41, 1)")
	config := func(source string) string {
		return fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, account: {user: app, password: app}}]
limits: {id_wait: 1m}
sources: {%s: {segment: {key: ids, step: 10, step_policy: fixed}}}
rules: [{table: "%s.*", column: id, source: %[2]s}]
`, server.Addr, source, db)
	}
	p := harness.StartProxy(t, config("ids"))
	locking := assert.Of(direct.Conn(t.Context())).Must(t)
	_, err := locking.ExecContext(t.Context(), "LOCK TABLES u WRITE")
	assert.Must(t, err)
	done := make(chan error, 1)
	client := harness.Open(t, server.Config(db), p.Addr("a"))
	go func() {
		_, err := client.Exec("INSERT INTO t (a) VALUES (1)")
		done <- err
	}()
	assert.Until(t, "the census waits for the lock", func() bool {
		var n int
		assert.Must(t, locking.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock'").Scan(&n))
		return n > 0
	}, p.Log)
	from := len(p.Log())
	assert.Must(t, p.Reload(config("numbers")))
	waitLog(t, p, from, `msg="configuration reloaded"`)
	_, err = locking.ExecContext(t.Context(), "UNLOCK TABLES")
	assert.Must(t, err)
	assert.Must(t, <-done, p.Log())
	var id int
	assert.Must(t, direct.QueryRow("SELECT id FROM t").Scan(&id))
	assert.Equal(t, "the id", id, 42)
	assert.Must(t, locking.Close())
}
