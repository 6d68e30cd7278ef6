package dynamic

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/wireclient"
)

// brokenTexts are texts that a server refuses, by their syntax or by the names in them, and that
// the reader takes for INSERTs, may not be able to read, or reads as what it does not fill. The
// table ruled has a rule.
var brokenTexts = []string{
	"INSERT INTO ruled (k VALUES ('zz')", "(INSERT INTO ruled (k) VALUES (1))", "INSERT INTO (SELECT 1)", "INSERT INTO ruled VALUES ('a", "INSERT INTO ruled VALUES (\"a", "INSERT INTO `ruled VALUES (1)",
	`INSERT INTO "other".ruled VALUES (1)`, `INSERT INTO "ruled" VALUES (1)`, "INSERT INTO ruled (k) SELECT", "INSERT INTO ruled /* a", "INSERT INTO ruled (k) VALUES (1) /* a", "INSERT INTO ruled (k) VALUES (1) `",
	"INSERT INTO nosuch.ruled (k VALUES (1)", "INSERT INTO ruled (k) VALUES (nosuch()", "INSERT INTO ruled (k) VALUES (1) RETURNIN id", "INSERT INTO ruled (k) VALUES [1]", "INSERT INTO ruled (k) VALUES (1\x01)", "INSERT INTO ruled (k,) VALUES (1)",
	"INSERT ruled SET k", "INSERT INTO ruled SET id = NULL, WHERE", "REPLACE INTO ruled (k) SELECT 1 FROM", "INSERT INTO ruled\x00 (k) VALUES (1)", "INSERT INTO `rul\x00ed` (k) VALUES (1)", "INSERT INTO ruled (k) VALUES (?)", "INSERT INTO ruled (k, id) VALUES (?, NULL) WHERE",
	"INSERT INTO ruled (k) SELECT ?, (", "INSERT INTO ruled SET k = ?", "INSERT INTO ruled (k) SELECT ?", "INSERT INTO ruled (id) VALUES (?)", "INSERT INTO ruled (k) VALUES (1) ON DUPLICATE KEY UPDATE k = ?", "INSERT INTO ruled (k VALUES ('what?')", "INSERT INTO ruled (k) SELECT SLEEP(0) FROM ?", "LOAD DATA INFILE 'x' INTO TABLE ruled (", "LOAD DATA INFILE 'x' INTO ruled", "WITH a AS (SELECT 1) INSERT INTO ruled (k) SELECT 1",
	"EXPLAIN ANALYZE FORMAT INSERT INTO ruled (k) VALUES (1)", "IF 1 THEN INSERT INTO ruled (k VALUES (1); END IF", "BEGIN NOT ATOMIC INSERT INTO ruled (k VALUES (1); END", "CREATE TABLE made (id BIGINT) SELECT nosuch", "CREATE TABLE made (id BIGINT) SELECT",
	"INSERT INTO ruled (k) SELECT SLEEP(0) FROM nosuch", "INSERT INTO ruled (k) SELECT SLEEP(0) FROM (SELECT 1)", "INSERT INTO ruled (id) VALUES (nosuch())", "INSERT INTO ruled (id) VALUES ((SELECT 1 FROM nosuch))", "INSERT INTO ruled (id) VALUES (nosuch)",
	"INSERT INTO ruled VALUES (1; SELECT 2)", "INSERT INTO ruled (k VALUES (1); SELECT 2", "INSERT INTO ruled (k VALUES ('a;b'); INSERT INTO ruled (k VALUES (2)", "INSERT INTO ruled VALUES ('a; SELECT 2", "INSERT INTO ruled (k) VALUES (1) -- a;b\n WHERE; SELECT 2", "INSERT INTO ruled (k) VALUES (1) # a;b\n [; SELECT 2", "; INSERT INTO ruled (k) VALUES (1)",
	"PREPARE p FROM 'INSERT INTO ruled (k VALUES (1)'", "PREPARE p FROM 'INSERT INTO ruled (id) VALUES (nosuch)'", "PREPARE p FROM 'LOAD DATA INFILE ''x'' INTO ruled'", "PREPARE p FROM INSERT INTO ruled (k) VALUES (1)", "PREPARE p FROM 'INSERT INTO ruled (k) VALUES (1)' [",
	"EXECUTE IMMEDIATE 'INSERT INTO ruled (k VALUES (1)'", "EXECUTE IMMEDIATE 'INSERT INTO ruled (id) VALUES (nosuch)'", "PREPARE p FROM 'INSERT INTO ruled (k VALUES (?)'; SELECT 1", "SET STATEMENT nosuch = 1 FOR INSERT INTO ruled (k) VALUES (1)",
	"INSERT INTO nosuch (k) VALUES (1); INSERT INTO nowhere (k) VALUES (1); SET max_error_count = DEFAULT; INSERT INTO ruled (k) VALUES (1)",
	"INSERT INTO `ruled ` (k) VALUES (1)", "INSERT INTO `` (k) VALUES (1)", "INSERT INTO " + strings.Repeat("x", 65) + " (k) VALUES (1)", "INSERT INTO " + strings.Repeat("x", 65) + ".ruled (k) VALUES (1)", "INSERT INTO `a ` . ruled (k) VALUES (1)",
}

// TestServersErrors holds that what a server refuses fails by the server's own error, wherever a
// rule concerns its table, and that the session's diagnostics show what they show natively.
func TestServersErrors(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, rules := range []string{"[{table: DB.ruled, column: id, source: ids}, {table: DB.made, column: id, source: ids}]", `[{table: "*.*", column: id, source: ids}]`} {
			t.Run(fmt.Sprint(server.Kind, " ", rules), func(t *testing.T) {
				t.Parallel()
				w := pair.New(t, server, rules, "CREATE TABLE ruled (id BIGINT NOT NULL PRIMARY KEY, k INT)")
				for _, text := range brokenTexts {
					for _, front := range []string{"", "SELECT 1; ", "SET sql_mode = ANSI_QUOTES; "} {
						both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Query(front + text) }, front+text)
					}
					both(t, w, "", func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Query(text) }, text)
					both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Prepare("p", text) }, "prepared: "+text)
				}
				assert.Equal(t, "rows went in", wireclient.Open(t, server.Addr, w.DB).Value(t, "SELECT COUNT(*) FROM ruled"), "0")
			})
		}
	}
}

// both runs a command natively and through the proxy, each in a session of its own, and compares
// the replies and what the session shows of them.
func both(t *testing.T, w *pair.World, db string, run func(*wireclient.Session) ([]wireclient.Reply, error), text string) {
	t.Helper()
	var got [2][][]wireclient.Reply
	for i, addr := range []string{w.Server.Addr, w.Addr} {
		s := wireclient.Open(t, addr, db)
		for _, command := range []func(*wireclient.Session) ([]wireclient.Reply, error){
			run,
			func(s *wireclient.Session) ([]wireclient.Reply, error) {
				return s.Query("SHOW ERRORS; SHOW WARNINGS; SELECT @@error_count, @@warning_count")
			},
			func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Query("EXECUTE p") },
		} {
			replies := assert.Of(command(s)).Must(t, text)
			got[i] = append(got[i], replies)
		}
		s.Close()
	}
	assert.True(t, reflect.DeepEqual(got[0], got[1]), "in schema %q %q\nshows    %+v\nnatively %+v", db, text, printed(got[1]), printed(got[0]))
}

func printed(all [][]wireclient.Reply) (lines []string) {
	for _, replies := range all {
		for _, r := range replies {
			lines = append(lines, fmt.Sprintf("%v %v", r.Err, r.Rows))
		}
	}
	return lines
}
