package lifecycle

import (
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/process"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// private starts a server whose limits are low enough to be reached.
func private(t *testing.T, kind servers.Kind) *servers.Server {
	t.Helper()
	args := []string{"--max-connect-errors=5", "--max-connections=10", "--log-bin=binlog", "--server-id=1"}
	return harness.StartServer(t, kind, servers.Options{NoTLS: true, Args: args})
}

// resolving starts a private server that resolves names, for without that servers do not count an
// address's broken handshakes. As no later argument takes --skip-name-resolve back on MySQL, it is
// started again without it.
func resolving(t *testing.T, kind servers.Kind) *servers.Server {
	t.Helper()
	server := private(t, kind)
	pid := assert.Of(os.ReadFile(filepath.Join(server.Dir, "my.pid"))).Must(t)
	line := assert.Of(os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "cmdline"))).Must(t)
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	assert.Must(t, server.Kill())
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--skip-name-resolve" })
	again := assert.Of(process.Start(process.Spec{Path: args[0], Args: args[1:], Log: filepath.Join(server.Dir, "again.log")})).Must(t)
	t.Cleanup(func() { assert.NoError(t, again.Kill()) })
	assert.Until(t, "it serves again", func() bool { return serves(server, server.Addr) == nil }, again.Log)
	return server
}

// eachKind runs a subtest for each kind of server, beside others.
func eachKind(t *testing.T, test func(t *testing.T, kind servers.Kind)) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// serves logs in through the proxy and runs a statement.
func serves(server *servers.Server, addr string) error {
	cfg := replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword}
	if server.Kind == servers.MySQL {
		cfg.Caps = replay.DeprecateEOF
	}
	return replay.Do(func() {
		c := replay.Login(cfg)
		defer c.Close()
		c.Must("SELECT 'served'")
	})
}

// fromElsewhere is a relay whose connections come from 127.0.0.2: servers never block 127.0.0.1.
func fromElsewhere(t *testing.T, upstream string) string {
	return replay.NewTap(t, upstream, net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Addr()
}

// leave connects to addr and leaves in one of several rude ways.
func leave(addr string, way int) {
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second)) // no deadline, no harm
	if way%4 == 0 {
		return // as a health check does
	}
	_, _ = conn.Read(make([]byte, 200)) // the greeting, as far as it came
	switch way % 4 {
	case 1:
		return
	case 2:
		_, _ = conn.Write([]byte("\x40\x00\x00\x01\x05")) // the beginning of a response
	case 3:
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		_, _ = conn.Read(make([]byte, 200))
	}
}

// TestAddressIsNotBlocked: a server refuses an address for good after max_connect_errors of broken
// handshakes. Through the proxy there must be none, whatever clients do.
func TestAddressIsNotBlocked(t *testing.T) {
	eachKind(t, func(t *testing.T, kind servers.Kind) {
		server := resolving(t, kind)
		elsewhere := fromElsewhere(t, server.Addr)
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(elsewhere)})
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range 75 {
					leave(p.Addr("a"), worker+i)
				}
			})
		}
		wg.Wait()
		assert.NoError(t, serves(server, p.Addr("a")), "after 300 clients that left")
		for i := range 12 { // the same without the proxy, to see that the server does block
			leave(elsewhere, i)
		}
		err := serves(server, elsewhere)
		assert.True(t, replay.CodeOf(err) == mysql.ER_HOST_IS_BLOCKED, "after clients that left without a proxy: %v, want 1129", err)
		err = serves(server, p.Addr("a"))
		assert.True(t, replay.CodeOf(err) == mysql.ER_HOST_IS_BLOCKED, "once the server blocks, through the proxy: %v, want 1129", err)
	})
}

// TestServerDownFullAndBack: a server that is down, full, and back.
func TestServerDownFullAndBack(t *testing.T) {
	eachKind(t, func(t *testing.T, kind servers.Kind) {
		server := private(t, kind)
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		full(t, server, p.Addr("a"))
		open := openRaw(t, server, p.Addr("a"))
		assert.Must(t, server.Kill())
		assert.Fails(t, "a session survives its server", replay.Do(func() { open.Must("SELECT 1") }), "")
		for range 2 {
			err := serves(server, p.Addr("a"))
			assert.True(t, replay.CodeOf(err) == mysql.ER_BAD_HOST_ERROR && strings.Contains(err.Error(), "connection refused") && strings.Contains(err.Error(), server.Addr), "server down: %v, want 1042 with the cause", err)
		}
		assert.Must(t, server.Start(t.Context()))
		assert.NoError(t, serves(server, p.Addr("a")), "server is back")
	})
}

// full fills the server up and compares what a client is told with what it is told directly.
func full(t *testing.T, server *servers.Server, addr string) {
	t.Helper()
	for range 13 {
		cfg := replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword}
		var c *replay.Conn
		if replay.Do(func() { c = replay.Login(cfg) }) == nil { // the last are refused
			defer c.Close()
		}
	}
	direct := replay.Run(replay.Config{Addr: server.Addr, User: "app", Password: "app"}, replay.Session{})
	proxied := replay.Run(replay.Config{Addr: addr, User: "app", Password: "app"}, replay.Session{})
	assert.True(t, replay.CodeOf(direct.Err) == mysql.ER_CON_COUNT_ERROR && fmt.Sprint(direct.Err) == fmt.Sprint(proxied.Err), "full server: direct %v, proxied %v", direct.Err, proxied.Err)
}

// openRaw logs in and leaves the session open until the end of the test.
func openRaw(t *testing.T, server *servers.Server, addr string) *replay.Conn {
	t.Helper()
	var c *replay.Conn
	cfg := replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword}
	assert.Until(t, server.Kind.String()+" has room", func() bool { // it may not have noticed yet that others left
		err := replay.Do(func() { c = replay.Login(cfg) })
		assert.MustTrue(t, err == nil || replay.CodeOf(err) == mysql.ER_CON_COUNT_ERROR, "%v", err)
		return err == nil
	})
	t.Cleanup(c.Close)
	return c
}

// TestKill ends statements by their connection id, as clients do at Ctrl-C.
func TestKill(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: harness.OneListener(server.Addr)})
		db := harness.Open(t, server.Config(""), p.Addr("a"))
		c := openRaw(t, server, p.Addr("a"))
		assert.Must(t, replay.Do(func() {
			c.Must("DO 1")
			c.SendQuery("SELECT CONNECTION_ID(), SLEEP(300)")
		}))
		runs(t, db, "SLEEP(300)")
		harness.MustExec(t, db, fmt.Sprintf("KILL QUERY %d", c.Greeting.Thread))
		start := time.Now()
		err := replay.Do(func() {
			_ = c.Result() // MySQL lets SLEEP return 1, MariaDB has it fail
			c.Must("SELECT 'alive'")
		})
		assert.True(t, err == nil && time.Since(start) <= time.Minute, "%s: after KILL QUERY of the greeting's thread id: %v in %v", server.Kind, err, time.Since(start))
		id := harness.Count(t, db, "SELECT CONNECTION_ID()")
		assert.True(t, id != 0 && id != int64(c.Greeting.Thread), "%s: CONNECTION_ID() = %d", server.Kind, id)
		interrupted(t, server, p.Addr("a"), db)
	}
}

// interrupted sends SIGINT to the command-line client while it waits for a statement.
func interrupted(t *testing.T, server *servers.Server, addr string, db *sql.DB) {
	t.Helper()
	args := []string{"-e", "SELECT SLEEP(31)"}
	if server.Kind == servers.MySQL {
		args = append(args, "--ssl-mode=DISABLED", "--get-server-public-key")
	}
	cmd := server.ClientTo(addr, args...)
	assert.Must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // Wait must come back
		_ = cmd.Wait()         // how it ends is its own affair
	}()
	runs(t, db, "SLEEP(31)")
	assert.NoError(t, cmd.Process.Signal(os.Interrupt))
	assert.Until(t, server.Kind.String()+" stops after Ctrl-C", func() bool { return running(t, db, "SLEEP(31)") == 0 })
}

// runs waits until a statement with part in its text runs.
func runs(t *testing.T, db *sql.DB, part string) {
	t.Helper()
	assert.Until(t, part+" runs", func() bool { return running(t, db, part) > 0 })
}

// running counts the statements with part in their texts that run.
func running(t *testing.T, db *sql.DB, part string) int64 {
	t.Helper()
	return harness.Count(t, db, fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%%%s%%' AND id <> CONNECTION_ID()", strings.ReplaceAll(part, "'", "''")))
}

func TestMain(m *testing.M) { harness.Main(m) }
