package prepared

import (
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestPreparedUnderAnotherMode executes INSERTs that were prepared under another sql_mode. Each has a text in double quotes, which
// ANSI_QUOTES makes a name: no parameter of ours may make the server prepare it anew.
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

// anew returns how many statements the server has prepared anew in the session; MariaDB does not for types.
func anew(t *testing.T, s *wireclient.Session, kind servers.Kind) string {
	if kind == servers.MariaDB {
		return ""
	}
	return s.Value(t, "SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME='Com_stmt_reprepare'")
}
