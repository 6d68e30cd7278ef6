package lifecycle

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// TestDrain sends SIGTERM to a proxy with sessions of three kinds. They end one after the other: each end
// waits for what the test does after the one before.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + "shutdown_timeout: 10m\n"})
		addr := p.Addr("a")
		locking := openRaw(t, server, server.Addr)
		busy, idle, committing := openRaw(t, server, addr), openRaw(t, server, addr), openRaw(t, server, addr)
		assert.Must(t, replay.Do(func() {
			locking.Must("DO GET_LOCK('drain', 0)")
			committing.Must("BEGIN")
			busy.SendQuery("SELECT GET_LOCK('drain', 300), 'finished'")
		}))
		runs(t, harness.Open(t, server.Config(""), server.Addr), "'drain', 300")
		assert.Must(t, p.Signal(syscall.SIGTERM))
		assert.NoError(t, replay.Do(func() {
			idle.Drain()
			committing.Must("SELECT 'still there'", "COMMIT")
			committing.Drain()
			assert.Fails(t, "a new session while draining", serves(server, addr), "connection refused")
			locking.Must("DO RELEASE_LOCK('drain')")
			replay.Check(busy.Result())
			busy.Drain()
		}), server.Kind)
		assert.NoError(t, p.Wait(t.Context()), server.Kind, "idproxy ended")
	}
}

// TestShutdownTimeout: a transaction that does not end is cut when shutdown_timeout is over.
func TestShutdownTimeout(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + "shutdown_timeout: 1s\n"})
		stuck := openRaw(t, server, p.Addr("a"))
		assert.Must(t, replay.Do(func() { stuck.Must("BEGIN") }))
		start := time.Now()
		assert.Must(t, p.Signal(syscall.SIGTERM))
		err := replay.Do(func() { stuck.Drain() })
		took := time.Since(start) // its last tenth may cut, too
		assert.True(t, err == nil && took >= 800*time.Millisecond, "%s: it ended after %v, %v, want a second", server.Kind, took, err)
		assert.NoError(t, p.Wait(t.Context()), server.Kind, "idproxy ended")
	}
}

// TestSignalsWhileItEnds: a signal that comes while idproxy ends, until its last moment, does not end it.
func TestSignalsWhileItEnds(t *testing.T) {
	t.Parallel()
	for range 10 {
		p := harness.Start(t, harness.Spec{Config: harness.OneListener("127.0.0.1:1"), Plain: true})
		var all sync.WaitGroup
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
			assert.Must(t, p.Signal(syscall.SIGTERM))
			all.Go(func() {
				for {
					select {
					case <-p.Done():
						return
					default:
						_ = p.Signal(sig) // what it cannot be sent to has ended
					}
				}
			})
		}
		assert.NoError(t, p.Wait(t.Context()), "idproxy ended")
		all.Wait()
	}
}

// TestHangupWhileItComesUp: a SIGHUP that comes before idproxy serves does not end it. The file is read
// again once it serves.
func TestHangupWhileItComesUp(t *testing.T) {
	t.Parallel()
	program, dir := assert.Of(harness.BuildPlain()).Must(t), t.TempDir()
	store := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t) // it takes the question about a switch, and says nothing
	path := harness.WriteConfig(t, harness.OneListener("127.0.0.1:1")+fmt.Sprintf(`
stores: {s: {mysql: {dsn: 'u:p@tcp(%s)/d'}}}
sources: {ids: {segment: {store: s}}}
rules: [{table: d.t, column: id, source: ids, mode: {switch: w}}]
`, store.Addr()))
	p := assert.Of(process.Start(process.Spec{Path: program, Args: []string{"serve", "--config", path}, Dir: dir, Log: filepath.Join(dir, "log")})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Stop(time.Minute)) })
	asking := assert.Of(store.Accept()).Must(t)
	assert.Must(t, errors.Join(p.Signal(syscall.SIGHUP), store.Close(), asking.Close()))
	assert.Until(t, "it has reloaded", func() bool { return strings.Contains(p.Log(), `msg="configuration reloaded"`) }, p.Log)
}

// waitLog waits until the proxy has logged something new that matches.
func waitLog(t *testing.T, p *harness.Proxy, from int, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	assert.Until(t, pattern+" in the log", func() bool { return re.MatchString(p.Log()[from:]) }, p.Log)
}

// TestReload sends SIGHUP after each change of the configuration, while a session is open.
func TestReload(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	base := harness.OneListener(server.Addr) + "sources: {ids: {segment: {start: 5000}}}\n"
	rule := func(table string) string {
		return fmt.Sprintf("rules:\n  - {table: %s.%s, column: id, source: ids}\n", db, table)
	}
	p := replay.StartProxy(t, harness.Spec{Config: base + "rules: []\n"})
	c := openRaw(t, server, p.Addr("a"))
	reload := func(config, want string) {
		t.Helper()
		from := len(p.Log())
		assert.Must(t, p.Reload(config))
		waitLog(t, p, from, want)
	}
	insert := func(table string, check func(error)) {
		t.Helper()
		assert.NoError(t, replay.Do(func() { check(c.Query("INSERT INTO " + table + " (a) VALUES (1)")) }), "table", table)
	}
	fills := func(table string) { insert(table, replay.Check) }
	relays := func(table string) {
		insert(table, func(err error) { replay.WantCode(err, mysql.ER_NO_DEFAULT_FOR_FIELD) })
	}
	assert.Must(t, replay.Do(func() {
		c.Must("USE "+db, "SET sql_mode = 'STRICT_ALL_TABLES'", "CREATE TABLE one (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE two (id BIGINT PRIMARY KEY, a INT)")
	}))
	relays("one")
	reload(base+rule("one"), `msg="configuration reloaded"`)
	fills("one")
	relays("two")
	reload(base+rule("two")+"    nonsense: 1\n", `not reloaded.*idproxy\.yaml:\d+:\d+: `)
	fills("one")
	relays("two")
	reload(base+rule("two")+"ids: {http: {listen: '127.0.0.1:0'}}\n", `not reloaded.*ids: added needs a restart`)
	fills("one")
	relays("two")
	assert.Must(t, os.Remove(p.ConfigPath))
	from := len(p.Log())
	assert.Must(t, p.Signal(syscall.SIGHUP))
	waitLog(t, p, from, `not reloaded.*no such file`)
	fills("one")
	reload(base+rule("two"), `msg="configuration reloaded"`)
	relays("one")
	fills("two")
}

// TestLimits reaches limits.sessions and limits.handshake.
func TestLimits(t *testing.T) {
	t.Parallel()
	server := harness.MySQL(t)
	p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + "limits: {sessions: 2, handshake: 2s}\n"})
	addr := p.Addr("a")
	first, second := openRaw(t, server, addr), openRaw(t, server, addr)
	err := serves(server, addr)
	assert.True(t, replay.CodeOf(err) == mysql.ER_CON_COUNT_ERROR && strings.Contains(err.Error(), "limits.sessions"), "third session: %v, want 1040 that names limits.sessions", err)
	first.Close()
	third := openRaw(t, server, addr)
	second.Close()
	start := time.Now()
	err = replay.Do(func() {
		silent := openSilent(addr)
		defer silent.Close()
		silent.Drain()
	})
	took := time.Since(start)
	assert.True(t, err == nil && took >= 1900*time.Millisecond && took <= time.Minute, "a client that does not answer the greeting was cut after %v, %v; limits.handshake is 2s", took, err)
	assert.NoError(t, replay.Do(func() { third.Must("SELECT 'the limit is for logins alone'") }))
}

// openSilent connects as soon as there is room, and reads the greeting.
func openSilent(addr string) *replay.Conn {
	for {
		var c *replay.Conn
		err := replay.Do(func() { c = replay.Dial(replay.Config{Addr: addr}) })
		if err == nil {
			return c
		}
		if replay.CodeOf(err) != mysql.ER_CON_COUNT_ERROR {
			replay.Fail("%w", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestNoLeaks opens and ends sessions in every way there is. What the proxy holds afterwards
// is what it held before, in files, and in goroutines, which it prints when it is ended by SIGQUIT.
func TestNoLeaks(t *testing.T) {
	for _, engine := range []string{config.EngineLoops, config.EngineGoroutines} {
		t.Run(engine, func(t *testing.T) { testNoLeaks(t, engine) })
	}
}

func testNoLeaks(t *testing.T, engine string) {
	server := harness.MariaDB(t)
	count := func(sessions, held int) (opened, goroutines int) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr) + "\nengine: " + engine + "\n", MayFail: true})
		addr := p.Addr("a")
		assert.Must(t, serves(server, addr))
		before := files(t, p)
		for i := range sessions {
			someSession(t, server, addr, i)
		}
		ended := func() int { return strings.Count(p.Log(), `msg="session ended"`) }
		assert.Until(t, fmt.Sprintf("%d sessions ended, and %d files are open", sessions+1, before), func() bool {
			return files(t, p) <= before && ended() >= sessions+1
		}, func() string { return fmt.Sprintf("%d sessions ended, %d files are open", ended(), files(t, p)) })
		assert.Equal(t, "sessions ended", ended(), sessions+1)
		for range held {
			openRaw(t, server, addr)
		}
		opened = files(t, p) - before
		from := len(p.Log())
		assert.Must(t, p.Signal(syscall.SIGQUIT))
		<-p.Done()
		return opened, strings.Count(p.Log()[from:], "\ngoroutine ")
	}
	_, few := count(1, 0)
	sessions := width.Of(100, 500)
	_, many := count(sessions, 0)
	opened, held := count(1, 10)
	assert.True(t, few != 0 && many <= few+5, "%d goroutines after %d sessions, %d after one", many, sessions, few) // the runtime's own come and go
	assert.True(t, opened >= 10 && (engine != config.EngineGoroutines || held >= few+10), "10 sessions hold %d files and %d goroutines: leaks would not be seen", opened, held-few)
}

// someSession is a session that ends in a way chosen by i.
func someSession(t *testing.T, server *servers.Server, addr string, i int) {
	t.Helper()
	cfg := replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword}
	switch i % 5 {
	case 0:
		leave(addr, i/5)
		return
	case 1:
		cfg.Password = replay.WrongPassword
		err := replay.Do(func() { replay.Login(cfg).Close() })
		assert.True(t, replay.CodeOf(err) == 1045, "session %d: %v", i, err)
		return
	}
	err := replay.Do(func() {
		c := replay.Login(cfg)
		defer c.Close()
		c.Must("SELECT " + fmt.Sprint(i))
		switch i % 5 {
		case 2:
			c.Command(mysql.COM_QUIT)
		case 3:
			c.SendQuery("SELECT 'nobody waits for this'")
		}
	})
	assert.NoError(t, err, "session", i)
}

// files counts the proxy's open files.
func files(t *testing.T, p *harness.Proxy) int {
	t.Helper()
	return len(assert.Of(os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))).Must(t))
}

// TestSilence: a transaction whose client says nothing is rolled back by the server, its connection is
// closed, and a pool goes on with another one without an error.
func TestSilence(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	p := harness.Start(t, harness.Spec{Config: harness.OneListener(server.Addr) + "limits: {transaction_timeout: 3s, idle_timeout: 4s}\n"})
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	pool.SetMaxOpenConns(1)
	harness.MustExec(t, pool, "CREATE TABLE t (a INT)")
	tx := assert.Of(pool.Begin()).Must(t)
	assert.Of(tx.Exec("INSERT INTO t VALUES (1)")).Must(t)
	waitLog(t, p, 0, `msg="limit reached".*limit=transaction_timeout.*ERROR 1927`)
	assert.Of(tx.Exec("INSERT INTO t VALUES (2)")).Fails(t, "the transaction goes on", "")
	_ = tx.Rollback() // its connection is gone
	harness.Count(t, pool, "SELECT COUNT(*) FROM t")
	waitLog(t, p, 0, `limit=idle_timeout`)
	assert.Equal(t, "rows are there", harness.Count(t, pool, "SELECT COUNT(*) FROM t"), 0)
}
