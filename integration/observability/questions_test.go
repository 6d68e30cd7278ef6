package observability

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// counter is a relay to a server that counts the commands it passes on.
type counter struct {
	addr     string
	commands atomic.Int64
}

// countCommands returns one that ends with the test.
func countCommands(t *testing.T, server string) *counter {
	t.Helper()
	c := &counter{}
	c.addr = harness.Between(t, server, func() {}, func(client, up net.Conn) [2]func() {
		return [2]func(){func() { harness.Copy(client, up) }, func() { c.pass(up, client) }}
	})
	return c
}

// pass passes on packets, and counts those that begin a command: their number is 0.
func (c *counter) pass(to io.WriteCloser, from io.Reader) {
	defer to.Close()
	header := make([]byte, 4)
	for {
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		if header[3] == 0 {
			c.commands.Add(1)
		}
		length := int64(binary.LittleEndian.Uint32(header) & 0xffffff)
		if _, err := to.Write(header); err != nil {
			return
		}
		if _, err := io.CopyN(to, from, length); err != nil {
			return
		}
	}
}

// TestHiddenQuestions counts the commands that a server gets: they are those of the client, but for
// the refused ones, and the hidden questions that the metrics count.
func TestHiddenQuestions(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		wire := countCommands(t, server.Addr)
		through := *server
		through.Addr = wire.addr
		w := start(t, &through, db, fmt.Sprintf(
			"sources: {ids: {segment: {}}}\nrules: [{table: %[1]s.t, column: id, source: ids}, {table: %[1]s.kept, column: id, source: ids, explicit: reject}]\n", db))
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE)", "CREATE TABLE kept (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE)")
		asked := func() (n float64) { // of the kinds that ask something
			return w.metric(t, "hidden_questions_total") - w.zero(t, "hidden_questions_total", `kind="quiet"`)
		}
		s := wireclient.Open(t, w.Addr("a"), db)
		query := func(text string) { assert.Of(s.Query(text)).Must(t, text) }
		for _, text := range []string{
			"SELECT 1", "INSERT INTO t (a) VALUES (1),(2)", "INSERT INTO t (a) VALUES (1)", "SELECT LAST_INSERT_ID()", "INSERT IGNORE INTO t (a) VALUES (1),(3)", "SELECT LAST_INSERT_ID()",
			"INSERT INTO t (a) SELECT a + 10 FROM t", "INSERT INTO t (id, a) VALUES (1+1000000, 7)", "INSERT INTO t (a) VALUES (3) ON DUPLICATE KEY UPDATE a=30", "SET sql_mode=''",
			"INSERT INTO t (a) VALUES (40)", "INSERT INTO kept (id, a) VALUES (7, 1)", "INSERT INTO nothing (a) VALUES (1)", "INSERT INTO t (nothing) VALUES (1)",
			"PREPARE p FROM 'INSERT INTO t (a) VALUES (?)'", "SET @a=50", "EXECUTE p USING @a", "EXECUTE p USING @a", "ALTER TABLE t ADD b INT", "SET @a=51", "EXECUTE p USING @a",
			"DEALLOCATE PREPARE p", "INSERT INTO t (a) VALUES (1)", "SELECT LAST_INSERT_ID()", "SET last_insert_id=9", "INSERT INTO t (a) VALUES (1)", "SELECT @@last_insert_id", "BEGIN",
			"REPLACE INTO t (a) SELECT a FROM t x", "ROLLBACK", "SELECT LAST_INSERT_ID()",
			"SET insert_id=2000000", "INSERT INTO t (a) VALUES (60)", "SET insert_id=2000001", "SELECT @@insert_id", "INSERT INTO t (a) VALUES (61)",
		} {
			query(text)
		}
		for k, sql := range []string{"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (a) SELECT ?"} {
			assert.Of(s.Prepare("st", sql)).Must(t)
			for i := range 3 {
				assert.Of(s.Execute("st", wireclient.Execution{Args: []wireclient.Argument{wireclient.Integer(8, int64(1000*k+i))}})).Must(t)
				if i == 1 {
					query(fmt.Sprintf("ALTER TABLE t ADD c%d INT", k))
				}
			}
			assert.Of(s.CloseStatement("st")).Must(t)
		}
		var want, got float64
		assert.Until(t, "as many commands are counted as the server gets", func() bool {
			got = float64(wire.commands.Load())
			want = w.metric(t, "statements_total") - w.metric(t, "statements_total", `kind="refused"`) + asked()
			return got == want
		}, func() string { return fmt.Sprintf("%v and %v, %v of them hidden", want, got, asked()) })
		assert.GreaterOrEqual(t, "hidden questions", asked(), 20)
		for line := range strings.Lines(w.answer(t, "/metrics")) {
			if strings.HasPrefix(line, "idproxy_hidden_questions_total") || strings.HasPrefix(line, "idproxy_statements_total") {
				t.Log(strings.TrimSpace(line))
			}
		}
		assert.True(t, server.Kind != servers.MySQL || w.zero(t, "hidden_questions_total", `kind="variables"`) != 0, "no variable was set") // MariaDB takes values in EXECUTE
		for _, kind := range []string{"settings", "columns", "greatest", "payment", "last_insert_id", "settlement", "count", "objection", "numbering", "release", "insert_id"} {
			assert.True(t, w.zero(t, "hidden_questions_total", `kind="`+kind+`"`) != 0, "none was of kind %s", kind)
		}
	})
}

// zero is metric where there may be none.
func (w *watched) zero(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	body := w.answer(t, "/metrics")
	if slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(body, label) }) {
		return 0
	}
	return w.metric(t, name, labels...)
}

// TestTrace reads what the log says of the sessions that log.trace chooses: each hidden question
// and each decision, and no value of a statement; and nothing of other sessions.
func TestTrace(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		config := harness.OneListener(server.Addr) + "sources: {ids: {segment: {}}}\nrules:\n" +
			"  - {table: " + db + ".orders, column: id, source: ids}\n" +
			"  - {table: " + db + ".strict, column: id, source: ids, explicit: reject}\n" +
			"  - {table: " + db + ".watched, column: id, source: ids, mode: observe}\n"
		p := harness.StartProxy(t, config+"log: {trace: {user: app, address: 127.0.0.0/8}}\n")
		c := server.Config(db)
		c.InterpolateParams = false
		pool := harness.Open(t, c, p.Addr("a"))
		pool.SetMaxOpenConns(1)
		for _, table := range []string{"orders", "strict", "watched"} {
			harness.MustExec(t, pool, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, a VARCHAR(60))")
		}
		// wants waits for lines behind those of the last call, and returns all of these.
		seen := 0
		wants := func(what string, lines ...string) string {
			t.Helper()
			for _, l := range lines {
				line := regexp.MustCompile(`(?m)^time=\S+ level=DEBUG ` + l)
				assert.Until(t, what+": line "+l, func() bool { return line.MatchString(p.Log()[seen:]) }, func() string { return p.Log()[seen:] })
			}
			news := p.Log()[seen:]
			seen += len(news)
			return news
		}
		const of = `session\.id=\d+ listener=a client\.address=127\.0\.0\.1:\d+ thread=\d+ user\.name=app `
		const took = ` duration=\S+`
		rule := "rule=" + db + `\.`
		wants("a table that is made",
			`msg="hidden question" `+of+`db\.query\.text="SELECT ?@@.*"`+took, `msg="need met" `+of+`need=settings`+took,
			`msg="command decided" `+of+`outcome=forwarded form=query db\.query\.text="CREATE TABLE orders\(.*"`+took)

		harness.MustExec(t, pool, "DO LAST_INSERT_ID(987654321)")
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-1'),('secret-1b') /* secret-2 */")
		wants("filled",
			`msg="hidden question" `+of+`db\.query\.text="prepare: SELECT.*orders`+"`"+`"`+took,
			`msg="need met" `+of+`need=columns`+took, `msg="need met" `+of+`need=greatest`+took,
			`msg="ids drawn" `+of+rule+`orders\.id source=ids ids=2 instance=`,
			`msg="hidden question sent in front" `+of+`db\.query\.text="SELECT.*"`,
			`msg="command decided" `+of+`outcome=filled form=query db\.query\.text="INSERT INTO orders\(a\) VALUES\(\?\),\.\."`+took)
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-3')")
		again := wants("the second", `msg="ids drawn" `+of+rule+`orders\.id source=ids ids=1 instance=`, `msg="command decided"`)
		assert.True(t, !strings.Contains(again, "hidden question"), "the second asks:\n%s", again)
		assert.Of(pool.ExecContext(t.Context(), "INSERT INTO orders (a) VALUES (?)", "secret-4")).Must(t)
		wants("prepared",
			`msg="command decided" `+of+`outcome=forwarded form=prepare db\.query\.text="INSERT INTO orders\(a\) VALUES\(\?\)"`+took,
			`msg="ids drawn" `+of+rule+`orders\.id source=ids ids=1 instance=`,
			`msg="command decided" `+of+`outcome=filled form=execute db\.query\.text=".*"`+took)
		_, err := pool.ExecContext(t.Context(), "INSERT INTO strict (id, a) VALUES (987654321, 'secret-5')")
		harness.WantError(t, err, 1235, "reject")
		wants("refused",
			`msg=refusal `+of+rule+`strict\.id reason=explicit_id db\.response\.status_code=1235 error\.message="idproxy rule .*reject.*"`,
			`msg="command decided" `+of+`outcome=refused form=query db\.query\.text="INSERT INTO strict\(id,a\) VALUES\(\?,\?\)"`+took)
		_, err = pool.ExecContext(t.Context(), "INSERT INTO strict (id, gone) VALUES (987654321, 'secret-6')")
		harness.WantError(t, err, 1054, "gone")
		wants("refused by the server", `msg="refusal left to the server" `+of+`db\.response\.status_code=1054 instance=`)
		assert.Of(pool.ExecContext(t.Context(), "INSERT INTO watched (id, a) VALUES (987654321, 'secret-7')")).Must(t)
		harness.MustExec(t, pool, "INSERT INTO orders (a) SELECT a FROM orders WHERE a <> 'secret-8' AND a LIKE \"secret-9%\"")
		wants("of a query",
			`msg="rule observes" `+of+rule+`watched\.id db\.collection\.name=\S+ what=.*`,
			`msg="need met" `+of+`need=count`+took, `msg="command decided" `+of+`outcome=\w+ form=query db\.query\.text="INSERT INTO orders\(a\) SELECT a FROM orders WHERE a<>\? AND a LIKE \?"`+took)
		harness.MustExec(t, pool, "INSERT INTO orders (id, a) VALUES ('987654321'+1, 'secret-11')")
		wants("of an expression", `msg="hidden question" `+of+`db\.query\.text="SELECT \?\+\?.*"`+took,
			`msg="command decided" `+of+`outcome=forwarded form=query db\.query\.text="INSERT INTO orders\(id,a\) VALUES\(\?\+\?,\?\)"`+took)

		text := assert.Of(os.ReadFile(p.ConfigPath)).Must(t)
		reload := func(trace string) {
			t.Helper()
			changed := strings.Replace(string(text), "log: {trace: {user: app, address: 127.0.0.0/8}}", trace, 1)
			assert.MustTrue(t, changed != string(text), "nothing changes")
			done := strings.Count(p.Log(), "configuration reloaded") + 1
			assert.Must(t, p.Reload(changed))
			assert.Until(t, "it has reloaded", func() bool { return strings.Count(p.Log(), "configuration reloaded") >= done })
			seen = len(p.Log())
		}
		for _, other := range []string{"log: {trace: {user: cron}}", "log: {trace: {address: 10.0.0.0/8}}", "log: {level: info}"} {
			reload(other)
			harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-12')")
			harness.MustExec(t, pool, "DO 1") // what was decided before is written by now
			log := p.Log()[seen:]
			assert.True(t, !strings.Contains(log, "DEBUG"), "under %s:\n%s", other, log)
		}
		reload("log: {trace: {address: 127.0.0.1}}") // of a session that is open
		harness.MustExec(t, pool, "INSERT INTO orders (a) VALUES ('secret-13')")
		wants("traced again", `msg="ids drawn" `+of+rule)
		assert.Equal(t, "a value is in the log", regexp.MustCompile(`.*(secret-|987654321).*`).FindString(p.Log()), "")
		assert.GreaterOrEqual(t, "rows went in", harness.Count(t, pool, fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE a LIKE '%s'", "secret-%")), 8)
	})
}
