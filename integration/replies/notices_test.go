package replies

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestNotices: what fails because of a rule is in the log, once for each cause, with the statement
// and without its values.
func TestNotices(t *testing.T) {
	const secretID = 471100815000 // no thread, port or time has six digits of it
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE kept (id BIGINT PRIMARY KEY, a VARCHAR(20))", "CREATE TABLE seen (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20))")
		p := harness.StartWith(t, server.Addr, "ids: {segment: {}}",
			fmt.Sprintf("{table: %s.kept, column: id, source: ids, explicit: reject}, {table: %[1]s.seen, column: id, source: ids, mode: observe}", db))
		s := wireclient.Open(t, p.Addr("a"), db)
		for i := range 20 {
			replies, err := s.Query(fmt.Sprintf("INSERT INTO kept (id, a) VALUES (%d, 'secret')", secretID+i))
			assert.MustTrue(t, err == nil && pair.Shown(replies[0]) == "!1235", "an explicit id: %v, %v, want 1235", replies, err)
			s.Must(t, "INSERT INTO seen (a) VALUES ('secret'), ('secret')", "INSERT INTO seen (id, a) SELECT SLEEP(0), 'secret'")
		}
		cfg := server.Config(db)
		cfg.Addr, cfg.Passwd = p.Addr("a"), "wrong"
		cfg.Logger = &mysql.NopLogger{}
		assert.MustTrue(t, harness.Open(t, cfg, "").Ping() != nil, "a wrong password logs in")
		assert.Must(t, p.Stop(time.Minute))
		assert.True(t, !strings.Contains(p.Log(), "secret") && !strings.Contains(p.Log(), strconv.Itoa(secretID)[:6]), "values are in the log:\n%s", p.Log())
		for _, w := range []string{
			`level=WARN msg="statement refused" * db.response.status_code=1235 * user.name=app db.namespace=DB db.query.text="INSERT INTO kept(id,a) VALUES(?,?)" others=0`,
			`msg=observed * db.collection.name=DB.seen * db.query.text="INSERT INTO seen(a) VALUES(?),.." others=0`,
			`msg="observed in all" rule=DB.seen.id db.collection.name=DB.seen * db.query.text="INSERT INTO seen(a) VALUES(?),.." count=20`,
			`msg="observed in all" rule=DB.seen.id * db.query.text="INSERT INTO seen(id,a) SELECT SLEEP(?),?" count=20`,
			`msg="login failed" * user.name=app db.response.status_code=1045`,
		} {
			line := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(strings.ReplaceAll(w, "DB", db)), `\*`, ".*"))
			n := len(line.FindAllString(p.Log(), -1))
			assert.True(t, n == 1, "%d lines like %s, want 1:\n%s", n, line, p.Log())
		}
	})
}

// TestNoticesOfExecutions: of a prepared statement that is refused or gets no id when it is
// executed, the log has what was prepared.
func TestNoticesOfExecutions(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, name)
		for _, table := range []string{"kept", "named", "small", "query"} {
			direct.Must(t, "CREATE TABLE "+table+" (id TINYINT PRIMARY KEY, a VARCHAR(20))")
		}
		p := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {}}, high: {segment: {start: 1000}}}
rules:
  - {table: %[2]s.kept, column: id, source: ids, explicit: reject}
  - {table: %[2]s.named, column: id, source: ids, explicit: reject}
  - {table: %[2]s.query, column: id, source: high}
  - {table: %[2]s.small, column: id, source: high}
`, server.Addr, name))
		db := harness.Open(t, server.Config(name), p.Addr("a"))
		for _, tt := range []struct {
			sql  string
			code uint16
			args []any
		}{
			{"INSERT INTO kept (id, a) VALUES (?, ?)", 1235, []any{7, "secret"}},
			{"INSERT INTO small (a) VALUES (?), ('secret')", 1467, []any{"secret"}},
			{"INSERT INTO query (a) SELECT a FROM (SELECT ? a) x", 1467, []any{"secret"}},
		} {
			st, err := db.Prepare(tt.sql)
			assert.Must(t, err)
			_, err = st.Exec(tt.args...)
			harness.WantError(t, err, tt.code)
			assert.NoError(t, st.Close())
		}
		s := wireclient.Open(t, p.Addr("a"), name)
		s.Must(t, "PREPARE s FROM 'REPLACE named (a, id) VALUES (''secret'', ?)'")
		assert.Of(s.Query("SET @secret = 9; EXECUTE s USING @secret")).Must(t)
		assert.Must(t, p.Stop(time.Minute))
		for _, want := range []string{"INSERT INTO kept(id,a) VALUES(?,?)", "INSERT INTO small(a) VALUES(?),..", "REPLACE named(a,id) VALUES(?,?)", "INSERT INTO query(a) SELECT a FROM(SELECT? a) ?"} {
			assert.Contains(t, "no statement "+want+" in", p.Log(), `db.query.text="`+want+`"`)
		}
		assert.True(t, !strings.Contains(p.Log(), "secret"), "values are in the log:\n%s", p.Log())
	})
}

// TestQuestionsDoNotTouchDiagnostics looks at ROW_COUNT() in a text whose reading depends on
// settings that are not known, on a session that may send several statements in one text: nothing
// may be asked in front of it.
func TestQuestionsDoNotTouchDiagnostics(t *testing.T) {
	for _, s := range harness.Servers(t) {
		for _, rules := range []string{"", `{table: "*.orders", column: id, source: ids}`} {
			t.Run(fmt.Sprintf("%s, rules [%s]", s.Kind, rules), func(t *testing.T) {
				name := harness.Database(t, s)
				proxy := harness.StartWith(t, s.Addr, "ids: {segment: {}}", rules)
				c := s.Config(name)
				c.MultiStatements = true
				conn := assert.Of(harness.Open(t, c, proxy.Addr("a")).Conn(context.Background())).Must(t)
				defer conn.Close()
				for _, q := range []string{
					"CREATE TABLE t (id BIGINT PRIMARY KEY)", "SET SESSION sql_mode = DEFAULT", "INSERT INTO t VALUES (1), (2)",
				} {
					assert.Of(conn.ExecContext(t.Context(), q)).Must(t)
				}
				var count int
				var text string
				assert.Must(t, conn.QueryRowContext(t.Context(), `SELECT ROW_COUNT(), "x\""; SELECT 1`).Scan(&count, &text))
				assert.True(t, count == 2 && text == `x"`, "ROW_COUNT() is %d beside %q; want 2 beside x\"", count, text)
			})
		}
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
