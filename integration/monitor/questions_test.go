package monitor

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	c := &counter{addr: l.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			all.Go(func() {
				_, _ = io.Copy(client, up) // it ends when either side does
				client.Close()
			})
			all.Go(func() {
				c.pass(up, client)
				up.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return c
}

// pass passes on packets, and counts those that begin a command: their number is 0.
func (c *counter) pass(to io.Writer, from io.Reader) {
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
		want, got := 0.0, 0.0
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			got = float64(wire.commands.Load())
			want = w.metric(t, "statements_total") - w.metric(t, "statements_total", `kind="refused"`) + asked()
			if got == want || time.Now().After(deadline) {
				break
			}
		}
		assert.True(t, got == want && asked() >= 20, "the server got %v commands, %v were counted, %v of them hidden", got, want, asked())
		_, body := w.get(t, "/metrics")
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "idproxy_hidden_questions_total") || strings.HasPrefix(line, "idproxy_statements_total") {
				t.Log(strings.TrimSpace(line))
			}
		}
		assert.True(t, server.Kind != servers.MySQL || w.zero(t, "hidden_questions_total", `kind="variables"`) != 0, "no variable was set") // MariaDB takes values in EXECUTE
		for _, kind := range []string{"settings", "columns", "greatest", "payment", "last_insert_id", "settlement", "count", "objection", "numbering", "release"} {
			assert.True(t, w.zero(t, "hidden_questions_total", `kind="`+kind+`"`) != 0, "none was of kind %s", kind)
		}
	})
}

// zero is metric where there may be none.
func (w *watched) zero(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	_, body := w.get(t, "/metrics")
	for _, label := range labels {
		if !strings.Contains(body, label) {
			return 0
		}
	}
	return w.metric(t, name, labels...)
}
