package clients

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestLost loses the server behind an INSERT, after it has stored the row. Each client shows the
// text with the id, its pool does not use the connection again, and the text says why the client of
// a server that is down cannot log in.
func TestLost(t *testing.T) {
	need(t, "gcc", "mariadb_config", "perl", "php", "java", "javac", connector, "sh", python)
	dir := t.TempDir()
	program := filepath.Join(dir, "lost")
	compile := func(name string, args ...string) {
		out, err := exec.Command(name, args...).CombinedOutput()
		assert.Must(t, err, fmt.Sprintf("%s %q", name, args), string(out))
	}
	compile("sh", "-c", "gcc -std=gnu11 -Wall -O1 -o "+program+" c/lost.c $(mariadb_config --cflags --libs)")
	compile("javac", "-encoding", "UTF-8", "-cp", connector, "-d", dir, "java/Lost.java")
	clients := []client{
		{name: "mariadb", command: lostShell(harness.MariaDB(t))},
		{name: "mysql", command: lostShell(harness.MySQL(t), "--plugin-dir=../../.tools/mysql97/usr/lib/mysql/plugin")},
		{name: "libmariadb", command: script(program)},
		{name: "DBD::mysql", command: script("perl", "perl/lost.pl", "mysql")},
		{name: "DBD::MariaDB", command: script("perl", "perl/lost.pl", "MariaDB")},
		{name: "mysqli", command: script("php", "php/lost.php", "mysqli")},
		{name: "PDO", command: script("php", "php/lost.php", "pdo")},
		{name: "Connector-J", command: script("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", dir+":"+connector, "Lost")},
		{name: "go-sql-driver", command: script(gorm(t), "lost", "")},
		{name: "mysql2", command: node(t, "node/lost.js")},
		{name: "SQLAlchemy, PyMySQL", command: script(python, "python/lost.py", "pymysql")},
		{name: "SQLAlchemy, mysqlclient", command: script(python, "python/lost.py", "mysqldb")},
	}
	for _, server := range harness.Servers(t) {
		for _, c := range clients {
			t.Run(server.Kind.String()+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				testLost(t, server, c)
			})
		}
	}
}

// lostShell runs a server's command-line client. In a batch it does not connect again, natively
// either.
func lostShell(s *servers.Server, args ...string) func(addr, db string) *exec.Cmd {
	const text = `"$@" -e "INSERT INTO orders (g) VALUES ('lose me')" 2>&1
"$@" -e "INSERT INTO orders (g) VALUES ('again'); SELECT CONCAT('again key=', LAST_INSERT_ID())" 2>&1
"$@" --port=$CLIENT_PORT_DOWN 2>&1 </dev/null | sed 's/^/connect /'`
	return func(addr, db string) *exec.Cmd {
		args := append(args[:len(args):len(args)], "--batch", "--skip-column-names", "--user="+db, "--database="+db)
		return exec.Command("sh", append([]string{"-c", text, "sh"}, s.ClientTo(addr, args...).Args...)...)
	}
}

var assigned = regexp.MustCompile(`(?m)^.*; ids (\d+) to (\d+) were assigned in DB\.orders: look them up before you retry`)

func testLost(t *testing.T, server *servers.Server, c client) {
	s, down := lostSite(t, server)
	_, port, err := net.SplitHostPort(s.proxy.Addr("down"))
	assert.Must(t, err)
	command := c.command
	c.command = func(addr, db string) *exec.Cmd {
		cmd := command(addr, db)
		cmd.Env = append(cmd.Environ(), "CLIENT_PORT_DOWN="+port)
		return cmd
	}
	output := s.run(t, c)
	m := assigned.FindStringSubmatch(output)
	assert.MustTrue(t, m != nil && m[1] == m[2] && strings.Contains(m[0], "1158") && strings.Contains(m[0], "Lost connection to MySQL server during query"), "the text does not arrive:\n%s", output)
	assert.True(t, strings.Contains(m[0], "08S01") || strings.HasPrefix(c.name, "SQLAlchemy"), "no state 08S01 in %q", m[0]) // which knows no states
	assert.True(t, strings.Contains(output, "\ntable orders "+m[1]+" lose me "), "the row is not found by the id in %q:\n%s", m[0], output)
	key := regexp.MustCompile(`(?m)^again key=(\d+)`).FindStringSubmatch(output)
	assert.True(t, key != nil && strings.Contains(output, "\ntable orders "+key[1]+" again "), "the connection is not made anew:\n%s", output)
	// PyMySQL takes the first letters for the state, which no server sends in place of a greeting.
	unreachable := regexp.MustCompile(`(?m)^connect .*1042.* connect to MySQL server on '` + regexp.QuoteMeta(down) + `' through idproxy: .*connection refused`)
	if !unreachable.MatchString(output) && !strings.Contains(c.name, "Connector-J") { // which shows -1 for all it is told in place of a greeting
		t.Errorf("a login without a server does not say why:\n%s", output)
	}
}

// lostSite is a proxied one whose server gets lost behind INSERTs that say so. Listener down leads
// to address down, where nobody listens.
func lostSite(t *testing.T, server *servers.Server) (s site, down string) {
	t.Helper()
	s = plainSite(t, server)
	down = losing(t, nil)
	s.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %q}
  - {name: down, listen: "127.0.0.1:0", upstream: %q}
sources: {orders: {segment: {start: %d}}}
rules: [{table: %s.orders, column: id, source: orders}]
`, losing(t, server), down, proxiedOrders, s.db))
	s.addr = s.proxy.Addr("a")
	return s, down
}

// losing is an address that leads to a server and closes a connection in place of the reply to a
// statement that says lose me; without a server nobody listens there.
func losing(t *testing.T, server *servers.Server) (addr string) {
	t.Helper()
	if server == nil {
		return harness.FreeAddr(t)
	}
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { relayUntilLost(client, server.Addr) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func relayUntilLost(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	var mu sync.Mutex
	lose := false
	copyTo := func(to, from net.Conn, look func(b []byte) (lost bool)) {
		defer to.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			if err != nil || look(b[:n]) {
				return
			}
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
	var both sync.WaitGroup
	both.Go(func() {
		copyTo(server, client, func(b []byte) bool {
			mu.Lock()
			defer mu.Unlock()
			lose = lose || bytes.Contains(b, []byte("lose me"))
			return false
		})
	})
	copyTo(client, server, func([]byte) bool {
		mu.Lock()
		defer mu.Unlock()
		return lose
	})
	both.Wait()
}
