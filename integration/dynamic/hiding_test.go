package dynamic

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// Outcomes of the forms that hide an INSERT: refused by idproxy, or by the server.
const (
	refused     = "!1235"
	noSyntax    = "!1064"
	notPrepared = "!1295"
)

// hiding is a form that hides an INSERT into the table t, which has a rule and whose id has no
// default; the session is not strict, so that whatever reaches the server without an id stores 0 or
// fails.
type hiding struct {
	text           string
	mariaDB, mysql string // what comes of it; "" is success
	stored         string // rows of t then
}

// hidings are all known forms. That which nothing can be done about is forwarded, and stores 0
// here: it is listed in docs/semantics/hidden.md.
var hidings = []hiding{
	{text: "BEGIN NOT ATOMIC INSERT INTO t (a) VALUES ('x'); END", mariaDB: refused, mysql: noSyntax},
	{text: "BEGIN NOT ATOMIC PREPARE q FROM 'INSERT INTO t (a) VALUES (''x'')'; EXECUTE q; END", mariaDB: refused, mysql: noSyntax},
	{text: "BEGIN NOT ATOMIC PREPARE q FROM @z; EXECUTE q; END", mariaDB: "!1312", mysql: noSyntax},
	{text: "BEGIN NOT ATOMIC EXECUTE IMMEDIATE @z; END", mariaDB: "!1312", mysql: noSyntax},
	{text: "BEGIN NOT ATOMIC INSERT INTO other (a) VALUES ('x'); END", mysql: noSyntax},
	{text: "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'INSERT INTO other (a) VALUES (1)'; END", mariaDB: "!1312", mysql: noSyntax},
	{text: "IF 1 THEN INSERT INTO t (a) VALUES ('x'); END IF", mariaDB: refused, mysql: noSyntax},
	{text: "CASE WHEN 1 THEN REPLACE INTO t (a) VALUES ('x'); END CASE", mariaDB: refused, mysql: noSyntax},
	{text: "l: LOOP INSERT INTO t (a) VALUES ('x'); LEAVE l; END LOOP", mariaDB: noSyntax, mysql: noSyntax},
	{text: "WHILE 1 DO INSERT INTO t (a) VALUES ('x'); END WHILE", mariaDB: refused, mysql: noSyntax},
	{text: "REPEAT INSERT INTO t (a) VALUES ('x'); UNTIL 1 END REPEAT", mariaDB: refused, mysql: noSyntax},
	{text: "FOR i IN 1..1 DO INSERT INTO t (a) VALUES ('x'); END FOR", mariaDB: refused, mysql: noSyntax},
	{text: "SET STATEMENT max_statement_time=10 FOR INSERT INTO t (a) VALUES ('x')", mariaDB: refused, mysql: noSyntax},
	{text: "SET STATEMENT max_statement_time=10 FOR EXECUTE IMMEDIATE @z", mysql: noSyntax, stored: "0,x"},
	{text: "SET STATEMENT max_statement_time=10 FOR PREPARE p FROM @z", mysql: noSyntax},
	{text: "SET STATEMENT max_statement_time=10 FOR EXECUTE known", mariaDB: "!1210", mysql: noSyntax},
	{text: "ANALYZE INSERT INTO t (a) VALUES ('x')", mariaDB: refused, mysql: noSyntax},
	{text: "ANALYZE FORMAT=JSON INSERT INTO t (a) VALUES ('x')", mariaDB: refused, mysql: noSyntax},
	{text: "EXPLAIN ANALYZE INSERT INTO t (a) VALUES ('x')", mariaDB: noSyntax, mysql: refused},
	{text: "EXPLAIN ANALYZE INSERT INTO t (a) SELECT a FROM other", mariaDB: noSyntax, mysql: refused},
	{text: "CREATE TABLE made (id BIGINT NOT NULL PRIMARY KEY, a INT) SELECT 7 a", mariaDB: refused, mysql: refused},
	{text: "CREATE TABLE made (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AS SELECT 7 a", mariaDB: refused, mysql: refused},
	{text: "CREATE TABLE made (id BIGINT NOT NULL PRIMARY KEY, a INT) AS TABLE other", mariaDB: noSyntax, mysql: refused},
	{text: "PREPARE p FROM 'CREATE TABLE made (id BIGINT NOT NULL PRIMARY KEY, a INT) SELECT 7 a'", mariaDB: refused, mysql: refused},
	{text: "CREATE TABLE made AS SELECT 5 id, 7 a"},
	{text: "CREATE TABLE made (id BIGINT NOT NULL PRIMARY KEY, a INT)"},
	{text: "PREPARE p FROM 'BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (''x''); END'", mariaDB: refused, mysql: noSyntax},
	{text: "PREPARE p FROM 'SET STATEMENT max_statement_time=10 FOR INSERT INTO t (a) VALUES (''x'')'", mariaDB: refused, mysql: noSyntax},
	{text: "PREPARE p FROM 'INSERT INTO t (a) SELECT a FROM other'", mariaDB: refused, mysql: refused},
	{text: "EXECUTE IMMEDIATE 'INSERT INTO t (a) SELECT a FROM other'", mariaDB: refused, mysql: noSyntax},
	{text: "PREPARE p FROM 'LOAD DATA LOCAL INFILE ''DIR/f'' INTO TABLE t'", mariaDB: refused, mysql: notPrepared},
	{text: "PREPARE p FROM 'EXECUTE IMMEDIATE @z'", mariaDB: notPrepared, mysql: noSyntax},
	{text: "EXECUTE IMMEDIATE CONCAT('INSERT INTO t (a) VALUES (', SIGN(RAND()+1), ')')", mysql: noSyntax, stored: "0,1"},
	{text: "EXECUTE IMMEDIATE CONCAT('INSERT INTO t (a) VALUES (', '1', ')')", mysql: noSyntax, stored: "id,1"},
	{text: "LOAD DATA INFILE 'DIR/f' INTO TABLE t", mariaDB: refused, mysql: refused},
	{text: "WITH c AS (SELECT 1 a) INSERT INTO t (a) SELECT a FROM c", mariaDB: noSyntax, mysql: noSyntax},
	{text: "(INSERT INTO t (a) VALUES ('x'))", mariaDB: noSyntax, mysql: noSyntax},
	{text: "HANDLER t OPEN"},
	{text: "DESCRIBE t a", mariaDB: "a,varchar(20),YES,,NULL,", mysql: "a,varchar(20),YES,,NULL,"},
	{text: "UPDATE t SET id = 5"},
	{text: "ALTER TABLE other ADD COLUMN id BIGINT NOT NULL"},
	{text: "CREATE TABLE made LIKE t"},
	{text: "CREATE TEMPORARY TABLE made (id BIGINT NOT NULL, a INT) SELECT 7 a"},
	{text: "CREATE EVENT soon ON SCHEDULE EVERY 1 DAY DISABLE DO INSERT INTO t (a) VALUES ('x')"},
	{text: "CREATE TRIGGER another BEFORE INSERT ON other FOR EACH ROW INSERT INTO t (a) VALUES ('x')"},
	{text: "DO (SELECT COUNT(*) FROM t)"},
	{text: "XA PREPARE 'x'", mariaDB: "!1399", mysql: "!1399"},
	// What runs in the server, out of sight, or is a text that is not known before: forwarded.
	{text: "IF 1 THEN EXECUTE IMMEDIATE @z; END IF", mariaDB: "!1312", mysql: noSyntax},
	{text: "EXECUTE IMMEDIATE IF(@n := 1, @z, 0)", mysql: noSyntax, stored: "0,x"},
	{text: "EXECUTE IMMEDIATE @z", mysql: noSyntax, stored: "id,x"}, // a variable is asked for
	{text: "CREATE PROCEDURE again() INSERT INTO t (a) VALUES ('x')"},
	{text: "CALL inserts()", stored: "0,x"},
	{text: "DO inserting()", stored: "0,x"},
	{text: "INSERT INTO other (a) VALUES ('y')", stored: "0,y"}, // by a trigger
	{text: "INSERT INTO seen (a) VALUES ('x')", stored: "0,x"},  // a view that no rule names
}

// TestHiding holds what docs/semantics/hidden.md says of the forms that hide an INSERT.
func TestHiding(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}, {table: DB.made, column: id, source: ids}]",
			"SET sql_mode = ''", "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a VARCHAR(20))", "CREATE TABLE other (a VARCHAR(20))", "CREATE VIEW seen AS SELECT a FROM t",
			"CREATE PROCEDURE inserts() INSERT INTO t (a) VALUES ('x')",
			"CREATE FUNCTION inserting() RETURNS INT DETERMINISTIC BEGIN INSERT INTO t (a) VALUES ('x'); RETURN 1; END")
		assert.Must(t, os.WriteFile(filepath.Join(server.Dir, "f"), []byte("7\n"), 0o644))
		var scripts []pair.Script
		for _, h := range hidings {
			want := h.mysql
			if server.Kind.String() == "MariaDB" {
				want = h.mariaDB
			}
			steps := []pair.Step{
				{Text: "SET sql_mode = '', @z = 'INSERT INTO t (a) VALUES (''x'')'"},
				{Text: "PREPARE known FROM 'INSERT INTO t (a) VALUES (1)'"},
				{Text: h.text, Want: want},
			}
			stored := h.stored
			if want != "" {
				stored = ""
			}
			if want == "" && h.text[0] != 'E' && h.text[0] != 'D' { // else it may have rows to show
				steps = append(steps, pair.Step{Text: "SELECT 1", Want: "1"})
			}
			steps = append(steps, pair.Step{Text: "SELECT id, a FROM t", Want: stored})
			scripts = append(scripts, pair.Script{Name: h.text, Steps: steps})
		}
		w.Run(t, scripts, "DROP TABLE IF EXISTS made, t, other", "DROP PROCEDURE IF EXISTS again", "DROP EVENT IF EXISTS soon", "SET SESSION sql_mode = ''",
			"CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY, a VARCHAR(20))", "CREATE TABLE other (a VARCHAR(20))",
			"CREATE TRIGGER by_trigger AFTER INSERT ON other FOR EACH ROW INSERT INTO t (a) SELECT NEW.a FROM DUAL WHERE NEW.a = 'y'")
	})
}

// TestPortions: an UPDATE or DELETE ... FOR PORTION OF is refused, by whatever way it comes, where the server would
// make rows that want ids.
func TestPortions(t *testing.T) {
	t.Parallel()
	const period = "a INT, s DATE, e DATE, PERIOD FOR p (s, e))"
	w := pair.New(t, harness.MariaDB(t), "[{table: DB.plain, column: id, source: ids}, {table: DB.counting, column: id, source: ids}]",
		"CREATE TABLE plain (id BIGINT NOT NULL, "+period, "CREATE TABLE counting (id BIGINT AUTO_INCREMENT PRIMARY KEY, "+period,
		"CREATE TABLE other (id BIGINT NOT NULL, "+period)
	const portion = " FOR PORTION OF p FROM '2001-01-01' TO '2002-01-01'"
	var scripts []pair.Script
	for _, table := range []string{"plain", "counting"} {
		for _, text := range []string{"UPDATE " + table + portion + " SET a = 2", "DELETE FROM " + table + portion} {
			quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
			for _, sent := range []string{text, "PREPARE p FROM " + quoted, "EXECUTE IMMEDIATE " + quoted, "BEGIN NOT ATOMIC " + text + "; END", "SET STATEMENT max_statement_time = 10 FOR " + text, "DO 1; " + text} {
				scripts = append(scripts, pair.Script{Name: sent, Steps: []pair.Step{
					{Text: sent, Want: refused}, {Text: "SELECT COUNT(*), MAX(a) FROM " + table, Want: "1,1"},
				}})
			}
		}
	}
	scripts = append(scripts,
		pair.Script{Name: "no rule", Steps: []pair.Step{{Text: "DELETE FROM other" + portion}, {Text: "SELECT id, s, e FROM other ORDER BY s", Want: "7,2000-01-01,2001-01-01 7,2002-01-01,2003-01-01"}}},
		pair.Script{Name: "whole rows", Steps: []pair.Step{{Text: "UPDATE plain SET a = 3"}, {Text: "SELECT id, a FROM plain", Want: "7,3"}}})
	row := " VALUES (7, 1, '2000-01-01', '2003-01-01')"
	w.Run(t, scripts, "DELETE FROM plain", "INSERT INTO plain"+row, "DELETE FROM counting", "INSERT INTO counting"+row, "DELETE FROM other", "INSERT INTO other"+row)
	// What the server makes of it.
	direct := wireclient.Open(t, w.Server.Addr, w.DB)
	direct.Must(t, "DELETE FROM counting"+portion)
	assert.Equal(t, "rows of the server's counter", pair.Shown(direct.Must(t, "SELECT COUNT(*) FROM counting WHERE id > 7")), "2")
}

// spacingScripts set auto_increment_increment in ways that a proxy does not see, and insert two
// rows and more.
var spacingScripts = []struct {
	name, only string
	run        []string
}{
	{"CALL", "", []string{"CALL space()", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SELECT", "", []string{"SELECT spacing()", "INSERT INTO orders (a) VALUES (1), (2), (3)"}},
	{"function in DO", "", []string{"DO 1 + spacing ()", "INSERT INTO orders (a) SELECT 1 UNION ALL SELECT 2"}},
	{"function with a schema, quoted", "", []string{"DO DB.`spacing`()", "PREPARED INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SET", "", []string{"SET @a = spacing()", "PREPARE p FROM 'INSERT INTO orders (a) VALUES (1), (2)'", "EXECUTE p"}},
	{"prepared function", "", []string{"PREPARED SELECT spacing()", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in SQL PREPARE", "", []string{"PREPARE f FROM 'DO spacing()'", "EXECUTE f", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in an INSERT elsewhere", "", []string{"INSERT INTO other (a) VALUES (spacing())", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in an INSERT that gets an id", "", []string{"INSERT INTO orders (a) VALUES (spacing())", "DELETE FROM orders", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"function in a prepared one", "", []string{"PREPARED INSERT INTO orders (a) VALUES (spacing())", "DELETE FROM orders", "INSERT INTO orders (a) VALUES (1), (2)"}},
	{"one text", "", []string{"SELECT spacing(); INSERT INTO orders (a) VALUES (1), (2)"}},
	{"one text of INSERTs", "", []string{"INSERT INTO orders (a) VALUES (spacing()); DELETE FROM orders; INSERT INTO orders (a) VALUES (1), (2)"}},
	{"block", "MariaDB", []string{"BEGIN NOT ATOMIC DO spacing(); END", "INSERT INTO orders (a) VALUES (1), (2)"}},
}

// TestSpacingOutOfSight: ids are as far apart as auto_increment_increment says, also where a
// routine has set it.
func TestSpacingOutOfSight(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		setup := []string{"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"}
		for _, schema := range []string{"DB", "DB_other"} {
			setup = append(setup, "CREATE TABLE "+schema+".other (a INT)", "CREATE PROCEDURE "+schema+".space() SET auto_increment_increment = 10",
				"CREATE FUNCTION "+schema+".spacing() RETURNS INT DETERMINISTIC BEGIN SET auto_increment_increment = 10; RETURN 1; END")
		}
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
		for _, script := range spacingScripts {
			if script.only != "" && script.only != server.Kind.String() {
				continue
			}
			t.Run(script.name, func(t *testing.T) {
				ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
				var spread [2]string
				for i, s := range []*wireclient.Session{ours, native} {
					s.Must(t, "DELETE FROM orders", "INSERT INTO orders (a) VALUES (0), (0)", "DELETE FROM orders")
					for _, text := range script.run {
						for _, r := range unseenStep(s, t, w.Text(text)) {
							assert.MustTrue(t, r.Err == nil, "%s: %v", text, r.Err)
						}
					}
					spread[i] = fmt.Sprint(s.Must(t, "SELECT COUNT(*), MAX(id) - MIN(id) FROM orders").Rows)
				}
				assert.True(t, spread[0] == spread[1] && spread[0] != "[[2 1]]", "rows and the space between their ids: %s, natively %s", spread[0], spread[1])
			})
		}
	})
}

// temporaryMakers make a temporary table that takes the name of orders, in ways that a proxy does
// not see, or not for certain.
var temporaryMakers = []struct {
	name, only string
	run        []string
}{
	{"CALL", "", []string{"CALL make()"}},
	{"CALL, in one text", "", []string{"CALL make(); INSERT INTO orders (a) VALUES (0)"}},
	{"EXECUTE of what a procedure prepared", "", []string{"CALL prepares()", "EXECUTE made"}},
	{"prepared CALL", "", []string{"PREPARED CALL make()"}},
	{"prepared CREATE", "", []string{"PREPARED CREATE TEMPORARY TABLE orders COLUMNS"}},
	{"block", "MariaDB", []string{"BEGIN NOT ATOMIC CREATE TEMPORARY TABLE orders COLUMNS; END"}},
	{"text that is not known", "MariaDB", []string{"EXECUTE IMMEDIATE CONCAT('CREATE TEMPORARY TABLE orders COLUMNS', LEFT(UUID(), 0))"}},
	{"version comment", "", []string{"CREATE /*!50000 TEMPORARY */ TABLE orders COLUMNS"}},
	{"MariaDB's comment", "MariaDB", []string{"CREATE /*M!100000 TEMPORARY */ TABLE orders COLUMNS"}},
	{"ALTER ... RENAME", "", []string{"CREATE TEMPORARY TABLE tmp COLUMNS", "ALTER TABLE tmp RENAME TO orders"}},
	{"ALTER ... RENAME of one not seen", "", []string{"CALL make_tmp()", "INSERT INTO orders (a) VALUES (0)", "ALTER TABLE tmp RENAME orders"}},
	{"RENAME TABLE", "MariaDB", []string{"CREATE TEMPORARY TABLE tmp COLUMNS", "RENAME TABLE tmp TO orders"}},
	{"made again", "", []string{"CALL make()", "INSERT INTO orders (a) VALUES (0)", "DROP TABLE orders", "CALL make()"}},
	{"under a view of its own", "", []string{"CREATE OR REPLACE VIEW other AS SELECT 1", "CALL make()"}},
}

// temporaryUse is what a session does with it.
var temporaryUse = []string{
	"INSERT INTO orders (a) VALUES (1)", "INSERT INTO orders (a) VALUES (2), (3)", "SELECT LAST_INSERT_ID()", "EXECUTED before", "EXECUTE n", "INSERT INTO orders (a) SELECT 4", "INSERT INTO orders VALUES (NULL, 5)",
	"PREPARED INSERT INTO orders (a) VALUES (6)", "EXECUTED before", "EXECUTED query", "INSERT INTO orders (a) VALUES (7); INSERT INTO orders (a) VALUES (8)", "SELECT * FROM orders",
	"CALL nothing()", "EXECUTED before", "INSERT INTO orders (a) VALUES (9)", "SELECT * FROM orders", "DROP TEMPORARY TABLE orders",
}

// TestTemporaryOutOfSight: a rule rests for a temporary table of the session's own, however it came
// to be, and not for the table behind it.
func TestTemporaryOutOfSight(t *testing.T) {
	t.Parallel()
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		const columns = "(id INT AUTO_INCREMENT PRIMARY KEY, a INT)"
		setup := []string{"CREATE TABLE DB_other.orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)"}
		for _, schema := range []string{"DB", "DB_other"} {
			setup = append(setup, "CREATE PROCEDURE "+schema+".nothing() DO 1", "CREATE PROCEDURE "+schema+".make() CREATE TEMPORARY TABLE orders "+columns,
				"CREATE PROCEDURE "+schema+".make_tmp() CREATE TEMPORARY TABLE tmp "+columns, "CREATE PROCEDURE "+schema+".prepares() PREPARE made FROM 'CREATE TEMPORARY TABLE orders "+columns+"'")
		}
		setup = append(setup, "CREATE USER DB IDENTIFIED BY 'grants'", "GRANT EXECUTE, CREATE TEMPORARY TABLES ON DB.* TO DB", "GRANT SELECT (id, a), INSERT (id, a) ON DB.orders TO DB")
		w := pair.New(t, server, "[{table: DB.orders, column: id, source: ids}]", setup...)
		t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, w.Text("DROP USER DB")) })
		for _, maker := range temporaryMakers {
			if maker.only != "" && maker.only != server.Kind.String() {
				continue
			}
			t.Run(maker.name, func(t *testing.T) {
				ours, native := wireclient.Open(t, w.Addr, w.DB), wireclient.Open(t, server.Addr, w.DB+"_other")
				for _, s := range []*wireclient.Session{ours, native} {
					for name, text := range map[string]string{"before": "INSERT INTO orders (a) VALUES (10)", "query": "INSERT INTO orders (a) SELECT 11"} {
						s.MustPrepare(t, name, text)
					}
					s.Must(t, "PREPARE n FROM 'INSERT INTO orders (a) VALUES (12)'", "INSERT INTO orders (a) VALUES (13)")
				}
				for i, text := range append(maker.run[:len(maker.run):len(maker.run)], temporaryUse...) {
					text = strings.ReplaceAll(text, "COLUMNS", columns)
					got, want := unseenStep(ours, t, text), unseenStep(native, t, text)
					assert.True(t, i < len(maker.run) || reflect.DeepEqual(got, want), "%s\n%+v\nnatively\n%+v", text, got, want)
				}
				ours.Must(t, "DELETE FROM orders")
				for _, text := range []string{"INSERT INTO orders (a) VALUES (20)", "EXECUTED before", "EXECUTE n", "EXECUTED query"} {
					r := unseenStep(ours, t, text)
					assert.True(t, r[0].Err == nil && r[0].InsertID >= pair.SourceStart, "behind it, %s: insert id %d, %v", text, r[0].InsertID, r[0].Err)
				}
			})
		}
		t.Run("few rights", func(t *testing.T) {
			s := wireclient.DialAs(t, w.Addr, w.DB, w.DB)
			s.Must(t, "CALL nothing()", "INSERT INTO orders (a) VALUES (1)", "CALL make()")
			assert.Equal(t, "insert id", s.Must(t, "INSERT INTO orders (a) VALUES (1)").InsertID, 1)
		})
	})
}

// unseenStep sends a text, or prepares and executes one, or executes one that was prepared.
func unseenStep(s *wireclient.Session, t *testing.T, text string) []wireclient.Reply {
	t.Helper()
	send := s.Query
	if sql, ok := strings.CutPrefix(text, "PREPARED "); ok {
		send, text = s.Prepared, sql
	} else if name, ok := strings.CutPrefix(text, "EXECUTED "); ok {
		send, text = func(name string) ([]wireclient.Reply, error) { return s.Execute(name, wireclient.Execution{}) }, name
	}
	return assert.Of(send(text)).Must(t, text)
}
