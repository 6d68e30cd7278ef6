package clients

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// client is a client library, or one of its modes, and the script that uses it.
type client struct {
	name    string
	command func(addr, db string) *exec.Cmd // the environment is added
	servers []servers.Kind                  // default: both
	// scenarios are the first words of lines that a run must print, so that a script that does less
	// does not pass.
	scenarios string
	zlib      bool // its connections are compressed
}

// script is the command of a script in this package's folder.
func script(program string, args ...string) func(addr, db string) *exec.Cmd {
	return func(string, string) *exec.Cmd { return exec.Command(program, args...) }
}

// scriptTimeout bounds a run of one script. The slowest take some seconds.
const scriptTimeout = 3 * time.Minute

// tables has the places for what an id column and a table have natively.
const tables = `
CREATE TABLE orders (id BIGINT NOT NULL %[1]s PRIMARY KEY, g VARCHAR(40) NOT NULL, n INT NULL, s VARCHAR(60) NULL, u VARCHAR(40) NULL UNIQUE) %[2]s;
CREATE TABLE items (id BIGINT NOT NULL %[1]s PRIMARY KEY, order_id BIGINT NULL, s VARCHAR(60) NULL) %[3]s;
CREATE TABLE plain (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id BIGINT NULL, s VARCHAR(60) NULL) AUTO_INCREMENT=300`

// site is where a script runs: a database with the tables, and the address that leads to it.
type site struct {
	server *servers.Server
	addr   string
	db     string  // also the name of an account that is used by the script alone
	pool   *sql.DB // on the server itself
	proxy  *harness.Proxy
}

// nativeSite has tables with AUTO_INCREMENT.
func nativeSite(t *testing.T, server *servers.Server) site {
	return newSite(t, server, fmt.Sprintf(tables, "AUTO_INCREMENT",
		fmt.Sprintf("AUTO_INCREMENT=%d", nativeOrders), fmt.Sprintf("AUTO_INCREMENT=%d", nativeItems)))
}

// plainSite has tables whose ids nobody gives.
func plainSite(t *testing.T, server *servers.Server) site {
	return newSite(t, server, fmt.Sprintf(tables, "", "", ""))
}

// proxiedSite is a plain one behind idproxy.
func proxiedSite(t *testing.T, server *servers.Server) site {
	s := plainSite(t, server)
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q, compression: on}] # for those that ask for it
sources:
  orders: {segment: {start: %d}}
  items:  {segment: {start: %d}}
rules:
  - {table: %[4]s.orders, column: id, source: orders}
  - {table: %[4]s.items, column: id, source: items}
limits: {id_wait: 1m} # disks are busy here
`, server.Addr, proxiedOrders, proxiedItems, s.db)
	// By default a program with the race detector sleeps for a second at its end.
	s.proxy = harness.Start(t, harness.Spec{Config: config, Env: []string{"GORACE=atexit_sleep_ms=10"}})
	s.addr = s.proxy.Addr("a")
	return s
}

func newSite(t *testing.T, server *servers.Server, ddl string) site {
	t.Helper()
	s := site{server: server, addr: server.Addr, db: harness.Database(t, server)}
	s.pool = harness.Open(t, server.Config(s.db), "")
	account := fmt.Sprintf("'%s'@'%%'", s.db)
	ddl += fmt.Sprintf(";\nCREATE USER %s IDENTIFIED BY '%s';\nGRANT ALL ON %s.* TO %[1]s", account, servers.AppPassword, s.db)
	for _, statement := range strings.Split(ddl, ";\n") {
		assert.Of(s.pool.Exec(statement)).Must(t)
	}
	t.Cleanup(func() { assert.Of(s.pool.Exec("DROP USER " + account)).NoError(t) })
	// MySQL asks for more at an account's first login, which not every client can give without TLS.
	config := server.Config(s.db)
	config.User = s.db
	first := harness.Open(t, config, "")
	assert.Must(t, errors.Join(first.Ping(), first.Close()))
	return s
}

// run runs a client's script and returns what it printed and what the tables hold then.
func (s site) run(t *testing.T, c client) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(s.addr)
	assert.Must(t, err)
	made := c.command(s.addr, s.db)
	cmd := exec.CommandContext(ctx, made.Path, made.Args[1:]...)
	cmd.Stdin, cmd.Env, cmd.WaitDelay = made.Stdin, made.Environ(), 5*time.Second
	cmd.Env = append(cmd.Env, "CLIENT_HOST="+host, "CLIENT_PORT="+port, "CLIENT_USER="+s.db,
		"CLIENT_PASSWORD="+servers.AppPassword, "CLIENT_DATABASE="+s.db, "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s\nif a library is missing, run: scripts/install-servers.sh clients", c.name, err, stdout.String(), stderr.String())
	}
	if stderr.Len() > 0 {
		t.Logf("%s also says:\n%s", c.name, stderr.String())
	}
	return strings.ReplaceAll(stdout.String(), s.db, "DB") + s.commands(t) + s.rows(t)
}

// commands are the executions of prepared statements that the server has seen of the script. A
// driver that quietly sends text instead would have fewer.
func (s site) commands(t *testing.T) string {
	t.Helper()
	// A server counts an execution a moment after it answers, and all of a session's when that is
	// gone.
	assert.Until(t, "the script's sessions are gone", func() bool {
		var sessions int
		assert.Must(t, s.pool.QueryRow("SELECT COUNT(*) FROM performance_schema.threads WHERE processlist_user=?", s.db).Scan(&sessions))
		return sessions == 0
	})
	var text string
	err := s.pool.QueryRow(`SELECT GROUP_CONCAT(event_name, '=', count_star ORDER BY event_name SEPARATOR ' ')
		FROM performance_schema.events_statements_summary_by_user_by_event_name
		WHERE user=? AND event_name IN ('statement/com/Execute', 'statement/com/Bulk_execute')`, s.db).Scan(&text)
	assert.Must(t, err)
	return "commands " + text + "\n"
}

// rows are the rows of all tables, read on the server itself, and the ids of each scenario in one
// list, which shows gaps. Upserts leave others than natively, see docs/semantics/deviations.md.
func (s site) rows(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, query := range []string{
		"SELECT CONCAT_WS(' ','orders',id,g,IFNULL(n,'NULL'),IFNULL(s,'NULL'),IFNULL(u,'NULL')) FROM orders ORDER BY id",
		"SELECT CONCAT('group ',g,' ids=',GROUP_CONCAT(id ORDER BY id)) FROM orders WHERE g NOT LIKE 'upsert%' AND g NOT LIKE 'ignore%' GROUP BY g ORDER BY g",
		"SELECT CONCAT_WS(' ','items',id,IFNULL(order_id,'NULL'),IFNULL(s,'NULL')) FROM items ORDER BY id",
		"SELECT CONCAT_WS(' ','plain',id,IFNULL(order_id,'NULL'),IFNULL(s,'NULL')) FROM plain ORDER BY id",
	} {
		rows := assert.Of(s.pool.Query(query)).Must(t)
		for rows.Next() {
			var row string
			assert.Must(t, rows.Scan(&row))
			fmt.Fprintln(&text, "table", row)
		}
		assert.Must(t, errors.Join(rows.Err(), rows.Close()))
	}
	return text.String()
}

// explicitBelow bounds the ids that scripts write themselves.
const explicitBelow = 10_000

// fromSource counts the rows whose id idproxy's sources gave, and those whose id nobody should have
// given.
func (s site) fromSource(t *testing.T) (generated, strange int) {
	t.Helper()
	for table, first := range map[string]int{"orders": proxiedOrders, "items": proxiedItems} {
		var all, own, ours int
		err := s.pool.QueryRow("SELECT COUNT(*), COUNT(CASE WHEN id BETWEEN 1 AND ? THEN 1 END), COUNT(CASE WHEN id BETWEEN ? AND ? THEN 1 END) FROM "+
			table, explicitBelow, first, first+seriesLength).Scan(&all, &own, &ours)
		assert.Must(t, err)
		generated, strange = generated+ours, strange+all-own-ours
	}
	return generated, strange
}

// incomplete says what is wrong with a native run: scenarios that printed nothing, errors nobody
// expected.
func (c client) incomplete(output string) (wrong []string) {
	for _, name := range strings.Fields(c.scenarios) {
		if !strings.Contains("\n"+output, "\n"+name+" ") {
			wrong = append(wrong, "no line of scenario "+name)
		}
	}
	for line := range strings.Lines(output) {
		if strings.Contains(line, " error=") {
			wrong = append(wrong, strings.TrimSpace(line))
		}
	}
	return wrong
}

// minGenerated is how many rows with generated ids a script must leave at least.
const minGenerated = 3

// testClients runs each client on each server, itself and through idproxy; in a narrow run on one
// server, in turn.
func testClients(t *testing.T, clients ...client) {
	t.Helper()
	for name, server := range harness.AllServers(t) {
		for i, c := range clients {
			onMariaDB := (len(t.Name())+i)%2 == 0
			switch {
			case c.servers != nil && !slices.Contains(c.servers, server.Kind),
				c.servers == nil && !width.Matrix() && onMariaDB != (server.Kind == servers.MariaDB):
				continue
			}
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				native := testClient(t, server, c)
				if i == 0 {
					testWithoutProxy(t, server, c, native)
				}
			})
		}
	}
}

// testClient returns what the script prints on the server itself.
func testClient(t *testing.T, server *servers.Server, c client) string {
	t.Helper()
	native := nativeNames().replace(nativeSite(t, server).run(t, c))
	wrong := c.incomplete(native)
	assert.MustTrue(t, wrong == nil, "on the server itself: %q\n%s", wrong, native)
	behind := proxiedSite(t, server)
	proxied := proxiedNames().replace(behind.run(t, c))
	assert.NoDiff(t, "through idproxy, which gives\n"+proxied, cmp.Diff(strings.Split(native, "\n"), strings.Split(proxied, "\n")))
	generated, strange := behind.fromSource(t)
	assert.True(t, generated >= minGenerated && strange <= 0, "%d rows with ids of the source, %d with strange ids", generated, strange)
	assert.NoError(t, behind.refusals())
	assert.Equal(t, "compressed connections", strings.Contains(behind.proxy.Log(), " compression=zlib"), c.zlib)
	t.Logf("%s:\n%s", c.name, native)
	return native
}

// refusals stops idproxy and is an error when it refused a statement: some drivers try another way
// then and say nothing.
func (s site) refusals() error {
	if err := s.proxy.Stop(2 * time.Minute); err != nil {
		return err
	}
	m := regexp.MustCompile(`msg=stopped .*`).FindString(s.proxy.Log())
	if !strings.Contains(m+" ", " refused=0 ") {
		return fmt.Errorf("idproxy refused statements: %q", m)
	}
	return nil
}

// testWithoutProxy shows that a script that went past idproxy would not pass.
func testWithoutProxy(t *testing.T, server *servers.Server, c client, native string) {
	t.Helper()
	plain := proxiedNames().replace(plainSite(t, server).run(t, c))
	assert.True(t, native != plain, "plain tables without idproxy pass as well:\n%s", plain)
}

// need fails a test that lacks one of these programs or files.
func need(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := os.Stat(path)
		if !strings.Contains(path, "/") {
			_, err = exec.LookPath(path)
		}
		assert.MustTrue(t, err == nil, "%v\nrun: scripts/install-servers.sh clients", err)
	}
}

// tool is a path in the folder that scripts/install-servers.sh installs into.
func tool(t *testing.T, name string) string {
	t.Helper()
	return assert.Of(filepath.Abs(filepath.Join("../../.tools/clients", name))).Must(t)
}

func TestMain(m *testing.M) { harness.Main(m, "--performance-schema=ON") }
