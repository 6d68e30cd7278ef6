package prepared

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// TestPreparedUnderAnotherMode executes INSERTs that were prepared under another sql_mode. Each has
// a text in double quotes, which ANSI_QUOTES makes a name: no parameter of ours may make the server
// prepare it anew.
func TestPreparedUnderAnotherMode(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}, {table: "DB.two", column: other, source: ids}]`)
		s := wireclient.Open(t, w.Addr, w.DB)
		for i, column := range []string{"BIGINT", "BIGINT UNSIGNED", "INT", "INT UNSIGNED", "DECIMAL(20)"} {
			table := fmt.Sprintf("t%d", i)
			s.Must(t, "SET sql_mode=''", "CREATE TABLE "+table+" (id "+column+" PRIMARY KEY, a VARCHAR(10))")
			executeUnder(t, s, server.Kind, "INSERT INTO "+table+" (a) VALUES (\"x\")")
			executeUnder(t, s, server.Kind, "INSERT INTO "+table+" (a) VALUES (\"x\"), (?), (\"y\")", wireclient.Varchar("v"))
			executeUnder(t, s, server.Kind, "INSERT IGNORE INTO "+table+" (a) VALUES (\"x\")")
			executeUnder(t, s, server.Kind, "INSERT INTO "+table+" (id, a) VALUES (?, \"x\")", wireclient.Null(mysql.MYSQL_TYPE_NULL))
		}
		s.Must(t, "CREATE TABLE two (id BIGINT PRIMARY KEY, other INT UNSIGNED NOT NULL, a VARCHAR(10))")
		executeUnder(t, s, server.Kind, "INSERT INTO two (a) VALUES (\"x\"), (?)", wireclient.Varchar("v"))
	})
}

// executeUnder prepares an INSERT and executes it twice under ANSI_QUOTES.
func executeUnder(t *testing.T, s *wireclient.Session, kind servers.Kind, text string, args ...wireclient.Argument) {
	t.Helper()
	s.Must(t, "SET sql_mode=''")
	s.MustPrepare(t, "p", text)
	s.Must(t, "SET sql_mode='ANSI_QUOTES'")
	before := anew(t, s, kind)
	for range 2 {
		assert.GreaterOrEqual(t, text+": insert id", s.MustExecute(t, "p", args...).InsertID, pair.SourceStart)
	}
	assert.Equal(t, text+": statements that the server prepared anew", anew(t, s, kind), before)
}

// anew returns how many statements the server has prepared anew in the session; MariaDB does not
// for types.
func anew(t *testing.T, s *wireclient.Session, kind servers.Kind) string {
	if kind == servers.MariaDB {
		return ""
	}
	return s.Value(t, "SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME='Com_stmt_reprepare'")
}

// TestBoundTypes binds ids of all types, one behind the other with NULL between them. MySQL
// prepares a statement anew for some of them, under the sql_mode of then. With a generated id in
// the place of the value it must do so as it does natively.
func TestBoundTypes(t *testing.T) {
	server := harness.StartServer(t, servers.MySQL, servers.Options{})
	w := pair.New(t, server, `[{table: "DB.r*", column: id, source: ids}]`)
	values := []wireclient.Argument{
		wireclient.Null(mysql.MYSQL_TYPE_NULL), wireclient.Long(0), wireclient.Long(5), wireclient.Unsigned(mysql.MYSQL_TYPE_LONG, 0),
		wireclient.Varchar("0"), wireclient.Double(0), wireclient.Double(6), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0"),
	}
	proxied, direct := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB)
	times := map[string]int{}
	for i, column := range []string{"BIGINT", "INT UNSIGNED"} {
		ruled, native := fmt.Sprintf("r%d", i), fmt.Sprintf("native%d", i)
		direct.Must(t, "CREATE TABLE "+ruled+" (id "+column+" PRIMARY KEY, a VARCHAR(10))", "CREATE TABLE "+native+" (id "+column+" AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10))")
		for n := range len(values) * len(values) {
			sequence := [][]wireclient.Argument{{values[n%len(values)]}, {values[0]}, {values[n/len(values)]}}
			got, want := preparesAnew(t, proxied, ruled, "(id, a) VALUES (?, 'x')", sequence), preparesAnew(t, direct, native, "(id, a) VALUES (?, 'x')", sequence)
			assert.True(t, got == want, "%s %v: anew %s, natively %s", column, sequence, got, want)
			times[want]++
		}
	}
	assert.True(t, len(times) >= 4, "natively %v", times)
}

// preparesAnew empties a table, executes an INSERT into it, and says how often each execution made
// the server prepare it anew.
func preparesAnew(t *testing.T, s *wireclient.Session, table, rest string, executions [][]wireclient.Argument) (times string) {
	t.Helper()
	s.Must(t, "DELETE FROM "+table)
	s.MustPrepare(t, "p", "INSERT IGNORE INTO "+table+" "+rest)
	before := assert.Of(strconv.Atoi(anew(t, s, servers.MySQL))).Must(t)
	for _, args := range executions {
		assert.Of(s.Execute("p", wireclient.Execution{Args: args})).Must(t)
		after := assert.Of(strconv.Atoi(anew(t, s, servers.MySQL))).Must(t)
		times += strconv.Itoa(after-before) + " "
		before = after
	}
	return times
}

// TestBoundBesideOthers is TestBoundTypes with parameters of other columns. A value of theirs, too, may
// make MySQL prepare the statement anew. It derives the type of a NULL again then, so that the id
// in its place must have another type than it has otherwise.
func TestBoundBesideOthers(t *testing.T) {
	server := harness.StartServer(t, servers.MySQL, servers.Options{})
	w := pair.New(t, server, `[{table: "DB.r*", column: id, source: ids}]`)
	proxied, direct := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB)
	null, unsigned := wireclient.Null(mysql.MYSQL_TYPE_NULL), func(n uint64) wireclient.Argument { return wireclient.Unsigned(mysql.MYSQL_TYPE_LONGLONG, n) }
	ids := []wireclient.Argument{null, null, null, wireclient.Long(0), wireclient.Long(5), unsigned(0), unsigned(6), wireclient.Varchar("0"), wireclient.Double(0), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "0")}
	values := []wireclient.Argument{
		null, wireclient.Long(10), unsigned(11), wireclient.Double(1.5), wireclient.TextOf(mysql.MYSQL_TYPE_NEWDECIMAL, "12.5"), wireclient.Varchar("13"), wireclient.Varchar("-14"),
		wireclient.Varchar("2147483648.4"), wireclient.Varchar(" 99999999999999999999 "), wireclient.Varchar("1e30"), wireclient.Varchar("none"), wireclient.Varchar(""), wireclient.Varchar("2026-01-02"),
	}
	const columns = 7 // besides id
	for i, id := range []string{"BIGINT", "BIGINT UNSIGNED"} {
		for kind, start := range map[string]string{"r": "", "native": " AUTO_INCREMENT"} {
			direct.Must(t, fmt.Sprintf("CREATE TABLE %s%d (id %s NOT NULL%s PRIMARY KEY, c0 INT, c1 INT UNSIGNED, c2 DECIMAL(9,2), c3 DOUBLE, c4 DATE, c5 DATETIME, c6 VARCHAR(30))", kind, i, id, start))
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // values of a test
	sequences, times := width.Of(400, 6000), map[string]int{}
	for range sequences {
		a, b, table := random.IntN(columns), random.IntN(columns), random.IntN(2)
		rest := fmt.Sprintf("(id, c%d, c%d) VALUES (?, ?, ?)", a, (a+1+b%(columns-1))%columns)
		executions := make([][]wireclient.Argument, 5)
		for i := range executions {
			executions[i] = []wireclient.Argument{ids[random.IntN(len(ids))], values[random.IntN(len(values))], values[random.IntN(len(values))]}
		}
		got := preparesAnew(t, proxied, fmt.Sprintf("r%d", table), rest, executions)
		want := preparesAnew(t, direct, fmt.Sprintf("native%d", table), rest, executions)
		assert.True(t, got == want, "table %d %s %v: anew %s, natively %s", table, rest, executions, got, want)
		times[want]++
	}
	assert.True(t, len(times) >= 12, "natively %v", times)
	t.Logf("compared: %d statements", 5*sequences)
}

// TestZeroUnderAnotherMode executes INSERTs whose 0 generates no more, or again. idproxy prepares
// them anew for that, and no server does: a text in double quotes stays one, and a backslash what
// it was.
func TestZeroUnderAnotherMode(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`)
		wireclient.Open(t, server.Addr, w.DB).Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20))", w.Text("CREATE TABLE DB_other.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20)) AUTO_INCREMENT=1000"))
		for _, text := range []string{`INSERT INTO t (id, a) VALUES (0, "x")`, `INSERT INTO t (id, a) VALUES (0, 'back\\slash')`, `INSERT INTO t (id, a) VALUES ('00', "x")`} {
			var shown [2]string
			for i, addr := range []string{w.Addr, server.Addr} {
				s := wireclient.Open(t, addr, []string{w.DB, w.Text("DB_other")}[i])
				s.Must(t, "SET sql_mode=''", "PREPARE n FROM '"+strings.NewReplacer("'", "''", `\`, `\\`).Replace(text)+"'")
				s.MustPrepare(t, "p", text)
				for _, mode := range []string{"", "NO_AUTO_VALUE_ON_ZERO,ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "NO_AUTO_VALUE_ON_ZERO"} {
					s.Must(t, "SET sql_mode='"+mode+"'")
					for _, execute := range []func() ([]wireclient.Reply, error){
						func() ([]wireclient.Reply, error) { return s.Execute("p", wireclient.Execution{}) },
						func() ([]wireclient.Reply, error) { return s.Query("EXECUTE n") },
					} {
						replies := assert.Of(execute()).Must(t)
						shown[i] += fmt.Sprintf("%q %v: %s\n", mode, replies[0].Err, pair.Shown(s.Must(t, "SELECT * FROM t")))
						s.Must(t, "DELETE FROM t")
					}
				}
			}
			assert.Equal(t, text, shown[0], shown[1])
		}
	})
}
