package lifecycle

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// line is an idproxy and its successors.
type line struct {
	*harness.Proxy
	t *testing.T
}

// lives reports whether a process has not ended.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// signal sends a signal to the one that serves.
func (l *line) signal(sig syscall.Signal) (pid int) {
	l.t.Helper()
	pids := l.PIDs()
	pid = pids[len(pids)-1]
	assert.Must(l.t, syscall.Kill(pid, sig))
	return pid
}

// upgrade waits until a successor serves.
func (l *line) upgrade() {
	l.t.Helper()
	before := len(l.PIDs())
	l.signal(syscall.SIGUSR2)
	assert.Until(l.t, "a successor serves", func() bool { return len(l.PIDs()) > before }, l.Log)
}

// ended waits until a process has.
func ended(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); lives(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("process %d does not end", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is the test's
			return
		}
	}
}

// customers are clients whose pools recycle connections, and clients who stay in transactions.
type customers struct {
	mu       sync.Mutex
	acked    []string
	failed   map[string]int // by their texts, without numbers
	doubtful []string       // of transactions whose COMMIT had no answer
	pinned   int            // errors that clients in transactions saw
	count    int            // of failed
	stop     context.CancelFunc
	all      sync.WaitGroup
}

func (c *customers) fail(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed[what+": "+regexp.MustCompile(`[0-9]+`).ReplaceAllString(err.Error(), "?")]++
	c.count++
}

func (c *customers) done() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked)
}

func (c *customers) failures() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// saw reports whether something failed with an error that has this text.
func (c *customers) saw(what, text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for failed := range c.failed {
		if strings.HasPrefix(failed, what) && strings.Contains(failed, text) {
			return true
		}
	}
	return false
}

func (c *customers) end() {
	c.stop()
	c.all.Wait()
}

// serveCustomers lets n clients come and go, and four stay.
func serveCustomers(t *testing.T, server *servers.Server, db, addr string, n int) *customers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &customers{failed: map[string]int{}, stop: cancel}
	pool := harness.Open(t, server.Config(db), addr)
	pool.SetMaxOpenConns(n)
	for client := range n {
		c.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.visit(pool, fmt.Sprintf("%d.%d", client, i))
			}
		})
	}
	for client := range 4 {
		c.all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				c.stay(ctx, server, db, addr, fmt.Sprintf("stays %d.%d", client, i))
			}
		})
	}
	t.Cleanup(c.end)
	return c
}

// visit connects for ten statements.
func (c *customers) visit(pool *sql.DB, name string) {
	conn, err := pool.Conn(context.Background())
	if err != nil {
		c.fail("connect", err)
		time.Sleep(10 * time.Millisecond)
		return
	}
	defer conn.Close()
	for i := range 10 {
		row := fmt.Sprintf("%s.%d", name, i)
		if _, err := conn.ExecContext(context.Background(), "INSERT INTO t (a) VALUES ('"+row+"')"); err != nil {
			c.fail("INSERT", err)
			break
		}
		c.mu.Lock()
		c.acked = append(c.acked, row)
		c.mu.Unlock()
		time.Sleep(30 * time.Millisecond) // what else runs needs the processors
	}
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // it closes the connection
}

// stay has one transaction after the other, each a second long, until the connection is closed.
func (c *customers) stay(ctx context.Context, server *servers.Server, db, addr, name string) {
	committing := ""
	err := replay.Do(func() {
		conn := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword})
		defer conn.Close()
		conn.Must("USE " + db)
		for i := 0; ctx.Err() == nil; i++ {
			row := fmt.Sprintf("%s.%d", name, i)
			conn.Must("BEGIN", "INSERT INTO t (a) VALUES ('"+row+"')")
			time.Sleep(time.Second)
			committing = row
			conn.Must("COMMIT")
			committing = ""
			c.mu.Lock()
			c.acked = append(c.acked, row)
			c.mu.Unlock()
		}
	})
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pinned++
	if committing != "" {
		c.doubtful = append(c.doubtful, committing)
	}
	if replay.CodeOf(err) != 0 {
		c.failed["stays: "+err.Error()]++
		c.count++
	}
}

// fourSources fills four columns of a table: from a store on a server and from a folder, with a worker
// number from a pool and with a fixed one.
const fourSources = `
stores: {main: {mysql: {dsn: %q}}}
sources:
  ids: {segment: {store: main}}
  files: {segment: {step: 50, max_step: 500}}
  pooled: {snowflake: {workers: main}}
  fixed: {snowflake: {worker: 7}}
rules:
  - {table: %s.t, column: id, source: ids}
  - {table: %[2]s.t, column: file, source: files}
  - {table: %[2]s.t, column: pooled, source: pooled}
  - {table: %[2]s.t, column: fixed, source: fixed}
`

var fourColumns = []string{"id", "file", "pooled", "fixed"}

// withFourSources makes the table, and the configuration of a proxy that fills it.
func withFourSources(t *testing.T, server *servers.Server, more string) (db string, direct *sql.DB, config string) {
	t.Helper()
	db, kept := harness.Database(t, server), harness.Database(t, server)
	direct = harness.Open(t, server.Config(db), server.Addr)
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT NOT NULL, file BIGINT NOT NULL, pooled BIGINT NOT NULL, fixed BIGINT NOT NULL, a VARCHAR(40) UNIQUE, KEY (id), KEY (file), KEY (pooled), KEY (fixed))")
	config = harness.OneListener(server.Addr) + more + fmt.Sprintf(fourSources, harness.StoreDSN(server, kept), db)
	out, err := harness.Command(t, "worker", "--config", harness.WriteConfig(t, config), "add", "64", "--new-pool") // else INSERTs would wait for it
	assert.Must(t, err, "idproxy worker add", out)
	return db, direct, config
}

// compareBooks compares what clients were told with the table.
func compareBooks(t *testing.T, direct *sql.DB, c *customers) {
	t.Helper()
	rows := map[string]bool{}
	found := assert.Of(direct.QueryContext(t.Context(), "SELECT a FROM t")).Must(t)
	defer found.Close()
	for found.Next() {
		var a string
		assert.Must(t, found.Scan(&a))
		rows[a] = true
	}
	assert.Must(t, found.Err())
	for _, a := range c.acked {
		assert.True(t, rows[a], "row %s was acknowledged, and is lost", a)
	}
	for _, a := range c.doubtful {
		assert.True(t, !rows[a], "row %s was committed, and its client does not know", a)
	}
	for _, column := range fourColumns {
		assert.LessOrEqual(t, "ids of column "+column+" are there twice", harness.Count(t, direct, "SELECT COUNT(*) - COUNT(DISTINCT "+column+") FROM t"), 0)
	}
	t.Logf("compared: %d rows", len(rows))
	t.Logf("%d errors of sessions in transactions", c.pinned)
}

// TestUpgrade replaces a busy idproxy again and again. No connection is refused, no statement fails but
// those of sessions that stay, no row is lost and no id comes twice, whatever it comes from.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	db, direct, config := withFourSources(t, server, "drain: {delay: 2s, spread: 1s}\nshutdown_timeout: 30s\nlimits: {id_wait: 30s}\n")
	dir := t.TempDir()
	socket := func(name string) string { return filepath.Join(dir, name) }
	config = strings.Replace(config, "listeners: [", fmt.Sprintf("listeners: [{name: u, listen: 'unix:%s', upstream: %q}, ", socket("u"), server.Addr), 1) +
		fmt.Sprintf("admin: {socket: 'unix:%s'}\nids: {redis: {listen: 'unix:%s'}, http: {listen: 'unix:%s'}}\n", socket("admin"), socket("redis"), socket("http"))
	l := &line{harness.Start(t, harness.Spec{Dir: dir, Config: config}), t}
	c := serveCustomers(t, server, db, l.Addr("a"), 64)
	upgrades := width.Of(3, 20)
	for i := range upgrades {
		before := c.done()
		if i == 0 { // by the command
			out, err := harness.Command(t, "upgrade", "--admin", "unix:"+socket("admin"))
			assert.Must(t, err, "idproxy upgrade", out)
		} else {
			l.upgrade()
		}
		waitCustomers(t, c, func() bool { return c.done() >= before+500 })
		asksAll(t, server, socket)
	}
	for _, pid := range l.PIDs()[:upgrades] {
		ended(t, pid) // the last one serves alone
	}
	before := c.done()
	waitCustomers(t, c, func() bool { return c.done() >= before+500 })
	asksAll(t, server, socket)
	c.end()
	assert.True(t, c.count <= 0, "%d failed in %d upgrades: %v", c.count, upgrades, c.failed)
	most := 4 * upgrades
	assert.True(t, c.pinned <= most, "sessions that stay saw %d errors in %d upgrades, want %d at most", c.pinned, upgrades, most)
	compareBooks(t, direct, c)
	l.signal(syscall.SIGTERM)
	for _, pid := range l.PIDs() {
		ended(t, pid)
	}
	for _, name := range []string{"u", "admin", "redis", "http"} {
		assert.Of(os.Lstat(socket(name))).Fails(t, "the last one leaves socket "+name+" behind", "")
	}
}

// asksAll asks at all unix sockets.
func asksAll(t *testing.T, server *servers.Server, socket func(string) string) {
	t.Helper()
	cfg := server.Config("")
	cfg.Net, cfg.Addr = "unix", socket("u")
	pool := harness.Open(t, cfg, "")
	harness.MustExec(t, pool, "DO 1")
	assert.NoError(t, pool.Close()) // before idproxy closes its connection
	for name, talk := range map[string][2]string{
		"admin": {"GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.0 200"},
		"http":  {"GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 "},
		"redis": {"PING\r\n", "+PONG"},
	} {
		conn, err := net.Dial("unix", socket(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := make([]byte, len(talk[1]))
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a socket has deadlines
		if _, err = conn.Write([]byte(talk[0])); err == nil {
			_, err = conn.Read(got)
		}
		assert.True(t, err == nil && string(got) == talk[1], "%s: %q, %v; want %q", name, got, err, talk[1])
		_ = conn.Close() // it was read from
	}
}

// TestUpgradeIDs: a successor serves other programs once it has ids for them, its predecessor until then.
func TestUpgradeIDs(t *testing.T) {
	t.Parallel()
	server, socket := harness.MariaDB(t), filepath.Join(t.TempDir(), "redis")
	config := harness.OneListener(server.Addr) + fmt.Sprintf("limits: {id_wait: 1s}\nids: {redis: {listen: 'unix:%s'}}\nstores: {main: {mysql: {dsn: %q}}}\n", socket, harness.StoreDSN(server, harness.Database(t, server))) +
		"sources: {pooled: {snowflake: {workers: main}}}\n" // a number rests for three seconds
	out, err := harness.Command(t, "worker", "--config", harness.WriteConfig(t, config), "add", "8", "--new-pool")
	assert.Must(t, err, "idproxy worker add", out)
	l := &line{harness.Start(t, harness.Spec{Dir: t.TempDir(), Config: config, Plain: true}), t}
	asks := func() (string, error) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(time.Minute)) // a socket has deadlines
		if _, err = conn.Write([]byte("INCR pooled\r\n")); err != nil {
			return "", err
		}
		return bufio.NewReader(conn).ReadString('\n')
	}
	given := map[string]bool{}
	assert.Until(t, "there are ids", func() bool { id, err := asks(); return err == nil && id[0] == ':' }, l.Log)
	old := l.signal(syscall.SIGUSR2)
	for more := 100; lives(old) || more > 0; time.Sleep(10 * time.Millisecond) {
		id, err := asks()
		assert.MustTrue(t, err == nil && id[0] == ':' && !given[id], "INCR: %q, %v", id, err)
		given[id] = true
		if !lives(old) {
			more--
		}
	}
	t.Logf("compared: %d ids", len(given))
}

// TestUpgradeControls: where sockets are not handed over, connections are refused; where a folder is not
// shared, INSERTs fail. TestUpgrade would see both.
func TestUpgradeControls(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	t.Run("sockets", func(t *testing.T) {
		db, _, config := withFourSources(t, server, "")
		addr := harness.FreeAddr(t)
		spec := harness.Spec{Dir: t.TempDir(), Config: strings.Replace(config, "127.0.0.1:0", addr, 1), Plain: true}
		p := harness.Start(t, spec)
		c := serveCustomers(t, server, db, addr, 8)
		waitCustomers(t, c, func() bool { return c.done() > 100 })
		assert.Must(t, p.Signal(syscall.SIGTERM))
		waitCustomers(t, c, func() bool { return c.saw("connect: ", "refused") })
		assert.Must(t, p.Wait(t.Context()))
		harness.Start(t, spec)
		before := c.done()
		waitCustomers(t, c, func() bool { return c.done() > before })
	})
	t.Run("sharing", func(t *testing.T) {
		width.Wide(t, "that a stale reading gives ids twice is tested in idsource/file")
		db, _, config := withFourSources(t, server, "drain: {delay: 6s}\nshutdown_timeout: 12s\nlimits: {id_wait: 4s}\n") // a number of the pool rests for three seconds
		program := assert.Of(harness.BuildFaults()).Must(t)
		dir := t.TempDir()
		faults := harness.NewFaults(t, filepath.Join(dir, "faults"))
		faults.NoShare()
		p := assert.Of(harness.Launch(t.Context(), program, harness.Spec{Dir: dir, Config: config, Env: []string{faults.Env()}})).Must(t)
		t.Cleanup(func() { assert.NoError(t, p.Stop(time.Minute)) })
		l := &line{p, t}
		c := serveCustomers(t, server, db, p.Addr("a"), 8)
		waitCustomers(t, c, func() bool { return c.done() > 100 })
		if n := c.failures(); n > 0 {
			t.Errorf("%d failed before: %v", n, c.failed)
		}
		l.upgrade()
		waitCustomers(t, c, func() bool { return c.saw("INSERT: ", "Failed to read auto-increment value") })
	})
}

func waitCustomers(t *testing.T, c *customers, ok func() bool) {
	t.Helper()
	assert.Until(t, "customers go on", ok, func() string { return fmt.Sprintf("%d rows, %d failed", c.done(), c.failures()) })
}

// TestUpgradeFails: a successor that does not come up leaves all as it was, and says why.
func TestUpgradeFails(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	built := assert.Of(harness.BuildPlain()).Must(t)
	binary := assert.Of(os.ReadFile(built)).Must(t)
	dir := t.TempDir()
	program, admin := filepath.Join(dir, "idproxy"), "unix:"+filepath.Join(dir, "admin")
	install := func(text []byte) { // as package managers do: the old file goes on running
		t.Helper()
		assert.Must(t, os.WriteFile(program+".new", text, 0o700))
		assert.Must(t, os.Rename(program+".new", program))
	}
	install(binary)
	taken := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer taken.Close()
	config := harness.OneListener(server.Addr) + "admin: {socket: '" + admin + "'}\nsources: {ids: {segment: {step: 50}}}\n"
	p := assert.Of(harness.Launch(t.Context(), program, harness.Spec{Dir: dir, Config: config})).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Stop(time.Minute)) })
	l := &line{p, t}
	for _, tt := range []struct {
		name, config, want string
		program            []byte
	}{
		{"a source that moved", strings.Replace(config, "step: 50", "step: 50, key: other", 1), "a change of sources.ids.segment.key (changed) needs a restart without an upgrade", binary},
		{"a file that is wrong", config + "nonsense: 1\n", `idproxy.yaml:4:1: unknown key`, binary},
		{"an address that is taken", strings.Replace(config, "listeners: [", fmt.Sprintf("listeners: [{name: b, listen: %q, upstream: %q}, ", taken.Addr(), server.Addr), 1), "address already in use", binary},
		{"a program that ends", config, "it ended without a word (exit status 3)", []byte("#!/bin/sh\nexit 3\n")},
		{"no program", config, "exec format error", []byte("\x7fELF")},
	} {
		install(tt.program)
		assert.Must(t, os.WriteFile(p.ConfigPath, []byte(tt.config), 0o600))
		out, err := exec.Command(built, "upgrade", "--admin", admin).CombinedOutput()
		assert.True(t, err != nil && strings.Contains(string(out), tt.want), "%s: %v, %s; want %q", tt.name, err, out, tt.want)
		assert.True(t, strings.Contains(p.Log(), `msg="not upgraded, this process goes on"`), "%s: the log does not say so", tt.name)
		assert.NoError(t, serves(server, p.Addr("a")), tt.name+": the old one does not go on")
	}
	install(binary)
	assert.Must(t, os.WriteFile(p.ConfigPath, []byte(config), 0o600))
	l.upgrade()
	ended(t, p.PID())
	assert.NoError(t, serves(server, p.Addr("a")), "the successor does not serve")
	out, err := exec.Command(built, "status", "--admin", admin).CombinedOutput()
	assert.NoError(t, err, "idproxy status", string(out))
}

// TestSystemd starts idproxy as systemd does, with sockets that are open, on which a client waits
// already, and reads what systemd is told.
func TestSystemd(t *testing.T) {
	t.Parallel()
	server := harness.MariaDB(t)
	dir := t.TempDir()
	told := assert.Of(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})).Must(t)
	defer told.Close()
	hears := func(want string) {
		t.Helper()
		b := make([]byte, 4096)
		_ = told.SetReadDeadline(time.Now().Add(time.Minute)) // a socket has deadlines
		n, err := told.Read(b)
		assert.MustTrue(t, err == nil && regexp.MustCompile("^("+want+")$").Match(b[:n]), "systemd is told %q, %v; want %q", b[:n], err, want)
	}
	tcp := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	local := assert.Of(net.Listen("unix", filepath.Join(dir, "u"))).Must(t)
	local.(*net.UnixListener).SetUnlinkOnClose(false)
	spare := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	program := assert.Of(harness.Build()).Must(t)
	path, log := filepath.Join(dir, "idproxy.yaml"), filepath.Join(dir, "log")
	config := fmt.Sprintf("listeners: [{name: a, listen: %q, upstream: %q}, {name: u, listen: 'unix:%s', upstream: %q}]\n", tcp.Addr(), server.Addr, local.Addr(), server.Addr)
	assert.Must(t, os.WriteFile(path, []byte(config), 0o600))
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh", program, "serve", "--config", path)
	cmd.Env = append(os.Environ(), "LISTEN_FDS=3", "NOTIFY_SOCKET="+told.LocalAddr().String())
	for _, l := range []interface{ File() (*os.File, error) }{tcp.(*net.TCPListener), local.(*net.UnixListener), spare.(*net.TCPListener)} {
		f := assert.Of(l.File()).Must(t)
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	out := assert.Of(os.Create(log)).Must(t)
	defer out.Close()
	cmd.Stderr = out
	waiting := make(chan error, 1)
	go func() { waiting <- serves(server, tcp.Addr().String()) }() // before there is an idproxy
	assert.Must(t, cmd.Start())
	serving := cmd.Process.Pid
	t.Cleanup(func() {
		_ = syscall.Kill(serving, syscall.SIGKILL) // it has ended, unless the test failed
		_ = cmd.Wait()
	})
	hears("READY=1")
	for _, l := range []net.Listener{tcp, local, spare} {
		assert.NoError(t, l.Close())
	}
	assert.NoError(t, <-waiting, "who waited")
	assert.Must(t, syscall.Kill(serving, syscall.SIGHUP))
	hears(`RELOADING=1\nMONOTONIC_USEC=\d+`)
	hears("READY=1")
	assert.Must(t, syscall.Kill(serving, syscall.SIGUSR2))
	hears(`READY=1|MAINPID=\d+`) // two processes say that
	hears(`READY=1|MAINPID=\d+`)
	text := assert.Of(os.ReadFile(log)).Must(t)
	found := regexp.MustCompile(`msg="a successor serves" process\.pid=(\d+)`).FindStringSubmatch(string(text))
	assert.MustTrue(t, found != nil && strings.Contains(string(text), `msg="a socket of systemd is of no listener" listen=`+spare.Addr().String()), "the log:\n%s", text)
	ended(t, serving)
	serving = assert.Of(strconv.Atoi(found[1])).Must(t)
	assert.NoError(t, serves(server, tcp.Addr().String()))
	assert.Must(t, syscall.Kill(serving, syscall.SIGTERM))
	hears("STOPPING=1")
	ended(t, serving)
	assert.Of(os.Lstat(filepath.Join(dir, "u"))).NoError(t, "systemd's socket is gone")
}
