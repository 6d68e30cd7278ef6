package columns

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/width"
	"idproxy/integration/wireclient"
)

// TestNoNumberInLaterRows writes text that is no number for ids, in the first row and in others.
// Whether a server refuses it, or takes it for 0 and generates, hangs on sql_mode and on the
// table's engine.
func TestNoNumberInLaterRows(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`)
		direct := wireclient.Open(t, server.Addr, w.DB)
		direct.Must(t, "SET sql_mode=''")
		outcomes := map[string]int{}
		for i, engine := range []string{"MyISAM", "INNODB"} {
			direct.Must(t, fmt.Sprintf("CREATE TABLE t_%s (id BIGINT UNSIGNED PRIMARY KEY, a VARCHAR(10)) ENGINE=%[1]s", engine),
				fmt.Sprintf("CREATE TABLE %s.t_%s (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a VARCHAR(10)) ENGINE=%[2]s", w.Text("DB_other"), engine))
			for _, mode := range []string{"", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO"} {
				for n, way := range waysToInsert(server.Kind, "t_"+engine) {
					if (n+i+len(mode))%width.Of(2, 1) != 0 { // in each mode half of them, the other half in another
						continue
					}
					got, want := way.outcome(t, w.Addr, w.DB, "t_"+engine, mode), way.outcome(t, server.Addr, w.Text("DB_other"), "t_"+engine, mode)
					assert.True(t, got == want, "%q, %s: %s, natively %s", mode, way.name, got, want)
					outcomes[want]++
				}
			}
		}
		assert.True(t, len(outcomes) >= 4, "natively %v", outcomes)
	})
}

// wayToInsert is an INSERT into the table t.
type wayToInsert struct {
	name string
	run  func(*wireclient.Session) ([]wireclient.Reply, error)
}

// waysToInsert are INSERTs of a text that is no number, or a number below zero, in each way in
// which ids are looked at.
func waysToInsert(kind servers.Kind, table string) (ways []wayToInsert) {
	for _, id := range []string{"abc", "", "-5"} {
		for _, rows := range []string{"('%s', 'a')", "(7, 'a'), ('%s', 'b')", "(NULL, 'a'), ('%s', 'b'), (NULL, 'c')", "('%s', 'a'), (7, 'b')"} {
			text := "INSERT INTO " + table + " (id, a) VALUES " + fmt.Sprintf(rows, id)
			asked := "INSERT INTO " + table + " (id, a) VALUES " + strings.ReplaceAll(rows, "'%s'", "?")
			if id != "-5" { // a literal below zero is refused where the server makes 0 of it
				ways = append(ways,
					wayToInsert{text, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Query(text) }},
					wayToInsert{"prepared " + text, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Prepared(text) }})
			}
			ways = append(ways,
				wayToInsert{asked + " " + id, func(s *wireclient.Session) ([]wireclient.Reply, error) {
					if replies, err := s.Prepare("p", asked); err != nil || replies[0].Err != nil {
						return replies, err
					}
					return s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Varchar(id)}})
				}},
				wayToInsert{"EXECUTE of " + asked + " " + id, func(s *wireclient.Session) ([]wireclient.Reply, error) {
					var all []wireclient.Reply
					for _, text := range []string{"SET @id='" + id + "'", "PREPARE p FROM '" + strings.ReplaceAll(asked, "'", "''") + "'", "EXECUTE p USING @id"} {
						replies, err := s.Query(text)
						if err != nil {
							return nil, err
						}
						all = append(all, replies...)
					}
					return all, nil
				}})
		}
		if kind == servers.MariaDB {
			for _, ids := range [][]string{{"7", id}, {id, "7"}} {
				ways = append(ways, wayToInsert{fmt.Sprintf("bulk of %q", ids), func(s *wireclient.Session) ([]wireclient.Reply, error) {
					if replies, err := s.Prepare("p", "INSERT INTO "+table+" (id, a) VALUES (?, ?)"); err != nil || replies[0].Err != nil {
						return replies, err
					}
					var rows [][]wireclient.Argument
					for i, id := range ids {
						rows = append(rows, []wireclient.Argument{wireclient.Varchar(id), wireclient.Varchar(fmt.Sprint(i))})
					}
					return s.Bulk("p", true, rows)
				}})
			}
		}
	}
	return ways
}

// outcome is the error of the INSERT, or the ids in the table: "id" for those that were generated.
func (way wayToInsert) outcome(t *testing.T, addr, db, table, mode string) string {
	t.Helper()
	s := assert.Of(wireclient.DialWith(wireclient.BulkOperations, addr, db)).Must(t)
	defer s.Close()
	s.Must(t, "DELETE FROM "+table, "ALTER TABLE "+table+fmt.Sprintf(" AUTO_INCREMENT=%d", pair.SourceStart), "SET sql_mode='"+mode+"'")
	replies := assert.Of(way.run(s)).Must(t)
	failed := ""
	for _, r := range replies {
		if r.Err != nil {
			failed = fmt.Sprint(r.Err.Code, ": ")
		}
	}
	return failed + pair.Shown(s.Must(t, "SELECT id, a FROM "+table+" ORDER BY a"))
}

// forwardScripts send statements that are not filled to tables whose rule says unsupported:
// forward. DIR/f is a file with one column.
var forwardScripts = []pair.Script{
	{Name: "strict", Steps: []pair.Step{ // the server refuses what has no id itself
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"}, {Text: "INSERT INTO bare SELECT 5, 7"}, {Text: "SELECT id, a FROM bare", Want: "5,7"},
	}},
	{Name: "not strict", Steps: []pair.Step{
		{Text: "SET sql_mode=''"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "sql_mode is not strict"},
		{Text: "SELECT id, a FROM bare"},
		{Text: "INSERT INTO bare (a) VALUES (7)"},
		{Text: "SELECT id, a FROM bare", Want: "id,7"},
	}},
	{Name: "not strict, by a variable", Steps: []pair.Step{
		{Text: "SET @m=''"}, {Text: "SET @@session.sql_mode=@m"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict, in the same text", Steps: []pair.Step{
		{Text: "SET sql_mode='NO_ENGINE_SUBSTITUTION'; INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict in ORACLE mode", Only: "MariaDB", Steps: []pair.Step{
		{Text: "SET sql_mode='ORACLE'"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "strict again", Steps: []pair.Step{
		{Text: "SET sql_mode=''"},
		{Text: "SET sql_mode='TRADITIONAL'"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"},
		{Text: "SET sql_mode=''"},
		{Text: "RESET"},
		{Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"},
		{Text: "SELECT id, a FROM bare"},
	}},
	{Name: "strict in a function alone", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "SELECT strictly()", Want: "1"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "not strict in a procedure alone", Steps: []pair.Step{
		{Text: "CALL loosely()"}, {Text: "INSERT INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1364"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "IGNORE", Steps: []pair.Step{
		{Text: "INSERT IGNORE INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "IGNORE"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a mode of its own", Only: "MariaDB", Steps: []pair.Step{
		{Text: "SET STATEMENT sql_mode='' FOR INSERT INTO bare (a) VALUES (7)", Want: "!1235", Says: "sql_mode of its own"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a mode in a hint", Only: "MySQL", Steps: []pair.Step{
		{Text: "INSERT /*+ SET_VAR(sql_mode='') */ INTO bare (a) SELECT 7+SLEEP(0)", Want: "!1235", Says: "sql_mode of its own"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "a SQL PREPARE", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "PREPARE s FROM 'INSERT INTO bare (id,a) VALUES (IF(1,NULL,2),7)'", Want: "!1235", Says: "store 0"}, {Text: "SELECT id, a FROM bare"},
	}},
	{Name: "LOAD DATA", Steps: []pair.Step{
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (a)", Want: "!1235", Says: "the list of columns"},
		{Text: "LOAD DATA LOCAL INFILE 'DIR/f' INTO TABLE bare CHARACTER SET utf16", Want: "!1235", Says: "LOCAL"},
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare", Want: "!1261"},
		{Text: "LOAD DATA INFILE 'DIR/f' INTO TABLE bare (id)"},
		{Text: "SELECT id, a FROM bare", Want: "7,NULL"},
	}},
	{Name: "a default", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "INSERT IGNORE INTO byitself (a) SELECT 7+SLEEP(0)"}, {Text: "SELECT id, a FROM byitself", Want: "NULL,7"},
	}},
	{Name: "AUTO_INCREMENT", Steps: []pair.Step{
		{Text: "SET sql_mode=''"}, {Text: "INSERT IGNORE INTO counted (a) SELECT 7+SLEEP(0)"}, {Text: "SELECT id, a FROM counted", Want: "1,7"},
	}},
}

// TestForwardStoresNoZero checks that no statement that a rule forwards stores 0 for an id.
func TestForwardStoresNoZero(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		const rule = ", column: id, source: ids, unsupported: forward}"
		w := pair.New(t, server, "[{table: DB.bare"+rule+", {table: DB.byitself"+rule+", {table: DB.counted"+rule+"]",
			"CREATE FUNCTION strictly() RETURNS INT DETERMINISTIC BEGIN SET sql_mode='STRICT_ALL_TABLES'; RETURN 1; END",
			"CREATE PROCEDURE loosely() BEGIN SET sql_mode=''; DO 1; END")
		assert.Must(t, os.WriteFile(filepath.Join(server.Dir, "f"), []byte("7\n"), 0o644))
		w.Run(t, forwardScripts, "DROP TABLE IF EXISTS bare, byitself, counted", "CREATE TABLE bare (id BIGINT NOT NULL, a INT)",
			"CREATE TABLE byitself (id BIGINT, a INT)", "CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
	})
}
