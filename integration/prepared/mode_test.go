package prepared

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestPreparedUnderAnotherMode executes INSERTs that were prepared under another sql_mode. Each has
// a text in double quotes, which ANSI_QUOTES makes a name: no parameter of ours may make the server
// prepare it anew.
func TestPreparedUnderAnotherMode(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
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
}

// executeUnder prepares an INSERT and executes it twice under ANSI_QUOTES.
func executeUnder(t *testing.T, s *wireclient.Session, kind servers.Kind, text string, args ...wireclient.Argument) {
	t.Helper()
	s.Must(t, "SET sql_mode=''")
	if replies, err := s.Prepare("p", text); err != nil || replies[0].Err != nil {
		t.Fatal(text, err, replies[0].Err)
	}
	s.Must(t, "SET sql_mode='ANSI_QUOTES'")
	before := anew(t, s, kind)
	for range 2 {
		replies, err := s.Execute("p", wireclient.Execution{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		if r := replies[0]; r.Err != nil || r.InsertID < pair.SourceStart {
			t.Errorf("%s: id %d, %v", text, r.InsertID, r.Err)
		}
	}
	if after := anew(t, s, kind); after != before {
		t.Errorf("%s: the server prepared statements anew %s times, before that %s", text, after, before)
	}
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
			sequence := []wireclient.Argument{values[n%len(values)], values[0], values[n/len(values)]}
			got, want := preparesAnew(t, proxied, ruled, sequence), preparesAnew(t, direct, native, sequence)
			if got != want {
				t.Errorf("%s %v: anew %s, natively %s", column, sequence, got, want)
			}
			times[want]++
		}
	}
	if len(times) < 4 {
		t.Errorf("natively %v", times)
	}
}

// preparesAnew executes an INSERT with each of the ids, and says how often each execution made the
// server prepare it anew.
func preparesAnew(t *testing.T, s *wireclient.Session, table string, ids []wireclient.Argument) (times string) {
	t.Helper()
	s.Must(t, "DELETE FROM "+table)
	if replies, err := s.Prepare("p", "INSERT INTO "+table+" (id, a) VALUES (?, 'x')"); err != nil || replies[0].Err != nil {
		t.Fatal(err, replies)
	}
	before, err := strconv.Atoi(anew(t, s, servers.MySQL))
	for _, id := range ids {
		if _, executed := s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{id}}); executed != nil {
			t.Fatal(executed)
		}
		var after int
		after, err = strconv.Atoi(anew(t, s, servers.MySQL))
		times += strconv.Itoa(after-before) + " "
		before = after
	}
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// TestZeroUnderAnotherMode executes INSERTs whose 0 generates no more, or again. idproxy prepares
// them anew for that, and no server does: a text in double quotes stays one, and a backslash what
// it was.
func TestZeroUnderAnotherMode(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`)
			wireclient.Open(t, server.Addr, w.DB).Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(20))", w.Text("CREATE TABLE DB_other.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(20)) AUTO_INCREMENT=1000"))
			for _, text := range []string{`INSERT INTO t (id, a) VALUES (0, "x")`, `INSERT INTO t (id, a) VALUES (0, 'back\\slash')`, `INSERT INTO t (id, a) VALUES ('00', "x")`} {
				var shown [2]string
				for i, addr := range []string{w.Addr, server.Addr} {
					s := wireclient.Open(t, addr, []string{w.DB, w.Text("DB_other")}[i])
					s.Must(t, "SET sql_mode=''", "PREPARE n FROM '"+strings.NewReplacer("'", "''", `\`, `\\`).Replace(text)+"'")
					if replies, err := s.Prepare("p", text); err != nil || replies[0].Err != nil {
						t.Fatal(err, replies)
					}
					for _, mode := range []string{"", "NO_AUTO_VALUE_ON_ZERO,ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "NO_AUTO_VALUE_ON_ZERO"} {
						s.Must(t, "SET sql_mode='"+mode+"'")
						for _, execute := range []func() ([]wireclient.Reply, error){
							func() ([]wireclient.Reply, error) { return s.Execute("p", wireclient.Execution{}) },
							func() ([]wireclient.Reply, error) { return s.Query("EXECUTE n") },
						} {
							replies, err := execute()
							if err != nil {
								t.Fatal(err)
							}
							shown[i] += fmt.Sprintf("%q %v: %s\n", mode, replies[0].Err, pair.Shown(s.Must(t, "SELECT * FROM t")))
							s.Must(t, "DELETE FROM t")
						}
					}
				}
				if shown[0] != shown[1] {
					t.Errorf("%s:\n%snatively\n%s", text, shown[0], shown[1])
				}
			}
		})
	}
}
