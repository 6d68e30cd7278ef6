package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/cmd/idproxy/app"
	"idproxy/cmd/idproxy/upstream"
	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/statements"
	"idproxy/integration/width"
	"idproxy/rewriter"
)

// explainedProductions are what TestExplainCorpus draws statements of, in turn.
var explainedProductions = []string{"statement", "insert", "replace", "insert", "create_table", "statement", "insert", "dynamic", "load", "statement", "insert", "compound"}

const (
	explainedSeed   = 20261122
	explainedSchema = "world"
	explainedFresh  = 60 // statements between two new worlds
)

// explainedConfig has a listener for each kind of rules; its sql_mode is that of explainedModes.
const explainedConfig = `
limits: {sessions: 100, id_wait: 1m}
listeners:
  - {name: exact, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
  - {name: wild, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
  - {name: nowhere, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
  - {name: watched, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
  - {name: strict, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
  - {name: loose, listen: "127.0.0.1:0", upstream: ADDR, account: {user: app, password: app}}
sources: {ids: {segment: {start: 1000}}}
rules:
  - {listeners: [exact], table: world.t1, column: id, source: ids}
  - {listeners: [exact], table: world.t2, column: id, source: ids}
  - {listeners: [exact], table: world.t3, column: id, source: ids}
  - {listeners: [exact], table: world.v1, column: id, source: ids}
  - {listeners: [exact], table: world.n1, column: id, source: ids}
  - {listeners: [wild], table: "world.*", column: id, source: ids}
  - {listeners: [nowhere], table: world.t4, column: nope, source: ids}
  - {listeners: [nowhere], table: "world.*", column: nope, source: ids}
  - {listeners: [watched], table: "world.*", column: id, source: ids, mode: observe}
  - {listeners: [strict], table: "world.t?", column: id, source: ids, explicit: reject}
  - {listeners: [strict], table: world.v1, column: id, source: ids, explicit: advance}
  - {listeners: [loose], table: world.t3, column: a, source: ids, explicit: advance}
  - {listeners: [loose], table: "world.*", column: id, source: ids, unsupported: forward}
`

// explainedForms are sent to each listener before what is drawn.
var explainedForms = []string{
	"INSERT INTO t2 VALUES ROW(), ROW ()", "CREATE TABLE \"n3\" (id BIGINT) SELECT 1 a", "CREATE TABLE n4 (id BIGINT) SELECT 1 a",
	"FOR i IN 1..2 DO REPLACE INTO t4 SET a = i; END FOR", "PREPARE s FROM 'CREATE TABLE n5 (id BIGINT) SELECT 1 a'", "INSERT INTO gone (a) VALUES (1)",
	"INSERT INTO v1 (a) VALUES (1)", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t3 FIELDS TERMINATED BY ',' ESCAPED BY ',' (a)", "DROP PREPARE /*!50000 */ s",
	"INSERT INTO t1 (id, a) VALUES (@@server_id, 1), (FALSE, 2)", "PREPARE s FROM 'COMMIT'", "INSERT INTO t3 (id) SELECT d FROM t1",
	"INSERT INTO t1 (a) VALUES (1)", "INSERT INTO t1 (a) VALUES (1),(2),(3)", "INSERT INTO ruled VALUES (NULL,1)", "INSERT INTO t1 SET a=1", "REPLACE INTO t1 (a) VALUES (1)",
	"INSERT IGNORE INTO t1 (a) VALUES (1)", "INSERT INTO t1 (a) VALUES (1) ON DUPLICATE KEY UPDATE a=2", "INSERT INTO t1 () VALUES ()", "INSERT INTO world.t1 (a) VALUES (1)",
	"INSERT INTO t1 (id,a) VALUES (1000000,1)", "INSERT INTO t3 (id) VALUES (UUID_SHORT())", "INSERT INTO t1 (id,a) VALUES (RAND(),1)", "INSERT INTO t1 (a) SELECT 1", "INSERT INTO t1 (a) SELECT RAND()",
	"INSERT INTO t1 (a) SELECT SLEEP(0)", "INSERT INTO t1 (id,a) TABLE ruled", "INSERT INTO t1 (a,a) VALUES (1,2)", "INSERT INTO t1 (a VALUES (1)", "INSERT INTO ruled VALUES (1)",
	"INSERT INTO `t1` (a) VALUES (1)", "INSERT INTO t1 (id,a) VALUES (5,1)", "INSERT INTO t1 (id,a) SELECT 5,1", "LOAD DATA INFILE 'x' INTO TABLE t1", "LOAD XML INFILE 'x' INTO TABLE t1",
	"LOAD DATA INFILE 'x' INTO TABLE ruled", "CREATE TABLE n6 (id BIGINT PRIMARY KEY) SELECT 1 a", "CREATE TABLE n7 SELECT 1 id", "CREATE TEMPORARY TABLE tmp (id BIGINT) SELECT 1 a",
	"CREATE TABLE IF NOT EXISTS t1 (id BIGINT, a INT) SELECT 1 a", "PREPARE s FROM 'INSERT INTO t1 (a) VALUES (1)'", "PREPARE s FROM 'INSERT INTO t1 (a) SELECT 1'",
	"PREPARE s FROM 'INSERT INTO ruled VALUES (1)'", "PREPARE s FROM 'SELECT 1'", "SELECT 1", "UPDATE t1 SET a=1 WHERE id=1", "DELETE FROM t1 WHERE id=1", "DO 1", "SET @x = 1",
	"EXPLAIN INSERT INTO t1 (a) VALUES (1)", "WITH x AS (SELECT 1) SELECT * FROM x", "INSERT INTO t1 (a) WITH x AS (SELECT 1 b) SELECT b FROM x",
	"BEGIN NOT ATOMIC INSERT INTO t1 (a) VALUES (1); END", "BEGIN NOT ATOMIC INSERT INTO ruled VALUES (1); END", "EXECUTE IMMEDIATE 'INSERT INTO t1 (a) VALUES (1)'",
	"EXECUTE IMMEDIATE 'INSERT INTO ruled VALUES (1)'", "INSERT INTO t1 (id) VALUES (DEFAULT)", "INSERT INTO t1 (id) VALUES ('0')", "INSERT INTO t1 (a) VALUES (1) RETURNING id",
}

var explainedModes = []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "", "STRICT_ALL_TABLES", "NO_AUTO_VALUE_ON_ZERO"}

// TestExplainCorpus draws statements from the grammar of both servers, asks explain, and sends each
// through the proxy in a session of its own: what the server and the client get is what explain
// said.
//
// IDPROXY_STATEMENTS and IDPROXY_SEED ask for more, or for others.
func TestExplainCorpus(t *testing.T) {
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			n, seed := setting(t, "IDPROXY_STATEMENTS", width.Of(360, 900)), setting(t, "IDPROXY_SEED", explainedSeed)
			c := newExplaining(t, kind, uint64(seed))
			seen := map[string]int{}
			c.reset(t)
			for _, text := range explainedForms {
				for i := range c.cfg.Listeners {
					seen[c.agree(t, i, text)]++
				}
			}
			for i := range n {
				if i%explainedFresh == 0 {
					c.reset(t)
				}
				listener, production := i%len(c.cfg.Listeners), i/len(c.cfg.Listeners)%len(explainedProductions)
				seen[c.agree(t, listener, c.draw.Statement(explainedProductions[production], explainedModes[listener]))]++
			}
			t.Logf("compared: %d statements, seed %d", n+len(explainedForms)*len(c.cfg.Listeners), seed)
			t.Logf("said by explain: %v", seen)
		})
	}
}

// setting is a number from the environment.
func setting(t *testing.T, name string, value int) int {
	t.Helper()
	if v := os.Getenv(name); v != "" {
		n := assert.Of(strconv.Atoi(v)).Must(t, fmt.Sprintf("%s=%q: want a number", name, v))
		return n
	}
	return value
}

// explaining is a server, a proxy in front of it whose words to the server are recorded, and what
// explains.
type explaining struct {
	server  *servers.Server
	draw    *statements.Generator
	path    string // of the configuration
	cfg     *config.Config
	proxy   *app.Program
	said    *recorder
	account *upstream.Server
	mode    rewriter.Mode
	dialect string
	addrs   map[string]string // of the listeners
}

func newExplaining(t *testing.T, kind servers.Kind, seed uint64) *explaining {
	t.Helper()
	limits := []string{"--lock-wait-timeout=1", "--innodb-lock-wait-timeout=1"}
	c := &explaining{dialect: statements.MySQL, addrs: map[string]string{}}
	if kind == servers.MariaDB {
		c.dialect, limits = statements.MariaDB, append(limits, "--max-statement-time=5")
	}
	c.server = harness.StartServer(t, kind, servers.Options{Args: limits})
	c.said = record(t, c.server.Addr)
	c.path = harness.WriteConfig(t, strings.ReplaceAll(explainedConfig, "ADDR", c.said.addr))
	var err error
	c.cfg, err = config.Load(c.path)
	assert.Must(t, err)
	c.serve(t)
	c.account, _, err = upstream.OpenUsed(t.Context(), c.cfg, &c.cfg.Listeners[0])
	assert.Must(t, err)
	t.Cleanup(func() { c.account.Close() })
	c.mode, err = c.account.Mode(t.Context())
	assert.Must(t, err)
	c.draw, err = statements.New(c.dialect, seed)
	assert.Must(t, err)
	return c
}

// serve runs the proxy in this process.
func (c *explaining) serve(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := harness.WatchFor("listener=loose")
	c.proxy = app.New(c.cfg, w)
	done := make(chan error, 1)
	go func() { done <- c.proxy.Serve(ctx) }()
	select {
	case <-w.Seen:
	case err := <-done:
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`msg=listening listen=(\S+) .*listener=(\w+)`).FindAllStringSubmatch(w.String(), -1) {
		c.addrs[m[2]] = m[1]
	}
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})
}

// reset makes the schema anew.
func (c *explaining) reset(t *testing.T) {
	t.Helper()
	db := harness.Open(t, c.server.Config(""), "")
	db.SetMaxOpenConns(1)
	for _, text := range append([]string{"DROP DATABASE IF EXISTS world", "DROP DATABASE IF EXISTS idproxy_none", "CREATE DATABASE world", "USE world"}, statements.World(c.dialect)...) {
		assert.Of(db.Exec(text)).Must(t, text)
	}
}

// agree asks both of a statement, and returns what became of it.
func (c *explaining) agree(t *testing.T, listener int, text string) string {
	t.Helper()
	mode, at := explainedModes[listener], &c.cfg.Listeners[listener]
	verdict, out := c.explain(t, at, mode, text)
	got, err := c.send(t, at, mode, text)
	assert.True(t, verdict.fits(got), "listener %s, sql_mode %q, %q\n explain: %s\n %s the proxy: %+v\n %v", at.Name, mode, text, verdict.what, out, got, err)
	return verdict.what
}

// explained is what explain says becomes of a statement.
type explained struct{ what, why string }

// explain asks explain.
func (c *explaining) explain(t *testing.T, listener *config.Listener, mode, text string) (explained, string) {
	t.Helper()
	e := newSession(t.Context(), c.cfg, listener, Options{Schema: explainedSchema})
	end := assert.Of(e.ask(c.account)).Must(t)
	defer end()
	e.settings.SQLMode = mode
	e.begin(e.mode().MariaDB, e.mode().Version)
	all, err := e.explain([]byte(text))
	said := "\n"
	for _, one := range all {
		said += one.String()
	}
	if err != nil {
		said += "\nfailed: " + err.Error()
	}
	if len(rewriter.Split(nil, []byte(text), e.mode())) > 1 {
		return explained{what: "several"}, said
	}
	return readExplained(said), said
}

// readExplained reads what explain prints.
func readExplained(said string) explained {
	has := func(part string) bool { return strings.Contains(said, part) }
	line, _, _ := strings.Cut(strings.TrimPrefix(said, "\n"), "\n")
	switch {
	case has("\nfailed: "):
		return explained{"error", said}
	case has("-- refused"):
		_, why, _ := strings.Cut(said[strings.Index(said, "-- refused"):], ": ")
		why, _, _ = strings.Cut(why, "\n")
		return explained{"refused", why}
	case has("-- the server is asked for the text first"), has("-- gets the ids of the statement"):
		return explained{what: "depends"}
	case has("the server counts the rows first"):
		return explained{"counted", said}
	case has("unless the server would store 0") && !has("under enforce"):
		return explained{what: "forwarded or stores 0"}
	case has("as the file passes"):
		return explained{what: "file"}
	case has("only observes"), has("under enforce"):
		return explained{"observed", line}
	case has("is a wildcard"):
		return explained{"left alone", line}
	case has("is moved past"):
		return explained{"moved", line}
	case has("what is worth"):
		return explained{"asked", line}
	case has("server refuses it") || has("and refuses it"):
		return explained{"invalid", line}
	case has("-- forwarded"):
		return explained{"forwarded", line}
	case strings.Trim(said, "; \n") == "":
		return explained{what: "nothing"}
	}
	return explained{"filled", line}
}

// became is what the proxy did with a statement.
type became struct {
	forwarded bool   // the server got the text as it came
	tried     bool   // ... to prepare
	inside    bool   // ... the text that it brings
	refused   string // the proxy's own error
	other     error  // an error of the server
	observed  bool
	left      bool
}

// fits reports whether that is what explain said.
func (x explained) fits(b became) bool {
	// Of what is refused a server may have an error of its own, of the text or of that which the text
	// brings.
	refused := b.refused != "" || b.other != nil && (b.tried || b.inside)
	switch x.what {
	case "depends", "nothing", "several":
		return true
	case "invalid":
		return b.other != nil && b.refused == ""
	case "refused":
		return refused
	case "forwarded or stores 0":
		return b.forwarded && b.refused == "" || strings.Contains(b.refused, "does not forward") || refused && b.refused == ""
	case "observed":
		return b.forwarded && b.observed && b.refused == ""
	case "left alone":
		return b.forwarded && b.left && b.refused == ""
	case "forwarded":
		return (b.forwarded || refused) && !b.observed && b.refused == "" && !b.left
	case "filled":
		return !b.forwarded && b.refused == "" || b.gaveNone()
	case "counted": // what it may be refused for stands there
		return !b.forwarded && (b.refused == "" || b.gaveNone() || strings.Contains(x.why, "it is refused") && b.refusedForRows())
	case "moved":
		return b.refused == "" || b.gaveNone()
	case "asked":
		return b.refused == "" || b.gaveNone() || strings.Contains(b.refused, "says explicit: ") || strings.Contains(b.refused, "variable for column")
	case "file":
		return b.refused == ""
	case "error": // it could not ask
		return b.refused != "" || b.observed
	}
	return false
}

// gaveNone reports whether the source gave no id, of which explain knows nothing: other rules of
// the same tables let the servers count for themselves.
func (b became) gaveNone() bool {
	return strings.HasPrefix(b.refused, "Failed to read auto-increment value") && (strings.Contains(b.refused, "behind: ") || strings.Contains(b.refused, "the column holds at most"))
}

// refusedForRows reports whether the proxy refused an INSERT ... SELECT for what its query gives.
func (b became) refusedForRows() bool {
	return slices.ContainsFunc([]string{"says explicit: reject", "texts or times", "would round", "engine cannot take rows back"},
		func(why string) bool { return strings.Contains(b.refused, why) })
}

// send sends a statement through the proxy.
func (c *explaining) send(t *testing.T, listener *config.Listener, mode, text string) (b became, err error) {
	t.Helper()
	config := c.server.Config(explainedSchema)
	config.MultiStatements = true
	config.Params = map[string]string{"sql_mode": "'" + mode + "'"}
	db := harness.Open(t, config, c.addrs[listener.Name])
	defer db.Close()
	db.SetMaxOpenConns(1)
	stats := c.proxy.Stats()
	_, observed := c.proxy.Counts().Sum()
	left := stats.LeftAlone.Load()
	assert.Must(t, db.Ping())
	assert.Of(c.proxy.Reload()).Must(t) // the world was made anew, or changed through another listener
	c.said.clear()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = db.ExecContext(ctx, text)
	packet := func(command byte) string {
		n := len(text) + 1
		return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), 0, command}) + text
	}
	b.forwarded, b.tried = c.said.has(packet(3)), c.said.has(packet(22))
	b.inside = b.forwarded && c.said.has("\x00\x16") && c.dynamic(text)
	_, now := c.proxy.Counts().Sum()
	b.observed, b.left = now > observed, stats.LeftAlone.Load() > left
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && (e.Number == 1467 || strings.Contains(e.Message, "idproxy ") || strings.Contains(e.Message, "idproxy's")) {
		b.refused = e.Message
	} else {
		b.other = err
	}
	return b, err
}

// dynamic reports whether a statement brings the text of another.
func (c *explaining) dynamic(text string) bool {
	head, _ := rewriter.ReadHead([]byte(text), c.mode)
	return head.Kind == rewriter.Prepare || head.Kind == rewriter.Execute
}

// recorder passes connections on to a server and keeps what it gets.
type recorder struct {
	addr string

	mu  sync.Mutex
	got bytes.Buffer
}

func record(t *testing.T, server string) *recorder {
	t.Helper()
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	r := &recorder{addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			wg.Go(func() { io.Copy(io.MultiWriter(r, to), client); to.Close() }) //nolint:errcheck // the end of either ends both
			wg.Go(func() { io.Copy(client, to); client.Close() })                //nolint:errcheck // likewise
		}
	})
	t.Cleanup(func() { l.Close() })
	return r
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(b)
}

func (r *recorder) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got.Reset()
}

func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.got.Bytes(), []byte(text))
}
