package lifecycle

import (
	"context"
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
		assert.Must(t, running(t, harness.Open(t, server.Config(""), server.Addr), "'drain', 300"))
		assert.Must(t, p.Signal(syscall.SIGTERM))
		if err := replay.Do(func() {
			idle.Drain()
			committing.Must("SELECT 'still there'", "COMMIT")
			committing.Drain()
			if err := serves(server, addr); err == nil || !strings.Contains(err.Error(), "connection refused") {
				replay.Fail("a new session while draining: %w", err)
			}
			locking.Must("DO RELEASE_LOCK('drain')")
			replay.Check(busy.Result())
			busy.Drain()
		}); err != nil {
			t.Errorf("%s: %v", server.Kind, err)
		}
		if err := p.Wait(t.Context()); err != nil {
			t.Errorf("%s: idproxy ended with %v, want 0", server.Kind, err)
		}
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
		if err := replay.Do(func() { stuck.Drain() }); err != nil || time.Since(start) < 800*time.Millisecond { // its last tenth may cut, too
			t.Errorf("%s: it ended after %v, %v, want a second", server.Kind, time.Since(start), err)
		}
		if err := p.Wait(t.Context()); err != nil {
			t.Errorf("%s: idproxy ended with %v, want 0", server.Kind, err)
		}
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
		if err := p.Wait(t.Context()); err != nil {
			t.Errorf("idproxy ended with %v, want 0", err)
		}
		all.Wait()
	}
}

// TestHangupWhileItComesUp: a SIGHUP that comes before idproxy serves does not end it. The file is read
// again once it serves.
func TestHangupWhileItComesUp(t *testing.T) {
	t.Parallel()
	program, err := harness.BuildPlain()
	assert.Must(t, err)
	store, err := net.Listen("tcp", "127.0.0.1:0") // it takes the question about a switch, and says nothing
	assert.Must(t, err)
	dir := t.TempDir()
	path := harness.WriteConfig(t, harness.OneListener("127.0.0.1:1")+fmt.Sprintf(`
stores: {s: {mysql: {dsn: 'u:p@tcp(%s)/d'}}}
sources: {ids: {segment: {store: s}}}
rules: [{table: d.t, column: id, source: ids, mode: {switch: w}}]
`, store.Addr()))
	p := assert.Of(process.Start(process.Spec{Path: program, Args: []string{"serve", "--config", path}, Dir: dir, Log: filepath.Join(dir, "log")})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Stop(time.Minute)) })
	asking, err := store.Accept()
	if err == nil {
		err = errors.Join(p.Signal(syscall.SIGHUP), store.Close(), asking.Close())
	}
	assert.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.NoError(t, p.Poll(ctx, func() bool { return strings.Contains(p.Log(), `msg="configuration reloaded"`) }))
}

// waitLog waits until the proxy has logged something new that matches.
func waitLog(t *testing.T, p *harness.Proxy, from int, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for range 9000 {
		if m := re.FindString(p.Log()[from:]); m != "" {
			return m
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no %q in the log:\n%s", pattern, p.Log()[from:])
	return ""
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
	reload := func(config, want string) string {
		t.Helper()
		from := len(p.Log())
		assert.Must(t, p.Reload(config))
		return waitLog(t, p, from, want)
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
		c.Must("USE "+db, "SET sql_mode = 'STRICT_ALL_TABLES'",
			"CREATE TABLE one (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE two (id BIGINT PRIMARY KEY, a INT)")
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
	if err := replay.Do(func() {
		silent := openSilent(addr)
		defer silent.Close()
		silent.Drain()
	}); err != nil || time.Since(start) < 1900*time.Millisecond || time.Since(start) > time.Minute {
		t.Errorf("a client that does not answer the greeting was cut after %v, %v; limits.handshake is 2s", time.Since(start), err)
	}
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
		for i := 0; (files(t, p) > before || ended() < sessions+1) && i < 9000; i++ {
			time.Sleep(20 * time.Millisecond)
		}
		after := files(t, p)
		assert.True(t, after <= before, "%d files open after %d sessions, %d before", after, sessions, before)
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
	entries := assert.Of(os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID()))).Must(t)
	return len(entries)
}
