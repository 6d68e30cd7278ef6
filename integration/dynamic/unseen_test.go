package dynamic

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// unseenScript leads a session to a state that its texts do not show at first
// sight, and then writes to the table orders, or tries to. A table of the same
// name stands in a schema without rule.
type unseenScript struct {
	name string
	only string // name of the one server that knows these statements
	run  []string
}

// DB is the schema with the rule, and each text that begins with "prepared "
// is prepared and executed.
var unseenScripts = []unseenScript{
	{"USE in ANSI quotes", "", []string{"SET sql_mode='ANSI_QUOTES'", `USE "DB"`, "INSERT INTO orders (a) VALUES (1)"}},
	{"USE in ANSI quotes, one text", "", []string{"SET sql_mode='ANSI_QUOTES'", `USE "DB"; INSERT INTO orders (a) VALUES (1)`}},
	{"prepared USE", "MariaDB", []string{"prepared USE DB", "INSERT INTO orders (a) VALUES (1)"}},
	{"EXECUTE of USE", "MariaDB", []string{"EXECUTE IMMEDIATE 'USE DB'", "INSERT INTO orders (a) VALUES (1)"}},
	{"EXECUTE of USE, one text", "MariaDB", []string{"EXECUTE IMMEDIATE 'USE DB'; INSERT INTO orders (a) VALUES (1)"}},
	{"CALL of USE", "MariaDB", []string{"CALL enter()", "INSERT INTO orders (a) VALUES (1)"}},
	{"USE skipped by the server", "", []string{"USE DB", "/*!99999 USE DB_other */ DO 1", "INSERT INTO orders (a) VALUES (1)"}},
	{"dropped temporary table, one text", "", []string{
		"CREATE TEMPORARY TABLE DB.orders (id BIGINT, a INT)", "DROP TEMPORARY TABLE DB.orders; INSERT INTO DB.orders (a) VALUES (1)",
	}},
	{"renamed temporary table", "", []string{
		"CREATE TEMPORARY TABLE DB.orders (id BIGINT, a INT)", "ALTER TABLE DB.orders RENAME TO DB.o", "INSERT INTO DB.orders (a) VALUES (1)",
	}},
	{"temporary table dropped by a prepared statement", "", []string{
		"CREATE TEMPORARY TABLE DB.orders (id BIGINT, a INT)", "prepared DROP TEMPORARY TABLE DB.orders", "INSERT INTO DB.orders (a) VALUES (1)",
	}},
	{"temporary table dropped by a procedure", "", []string{
		"CREATE TEMPORARY TABLE DB.orders (id BIGINT, a INT)", "CALL DB.tidy()", "INSERT INTO DB.orders (a) VALUES (1)",
	}},
	{"temporary table that the server skips", "", []string{
		"CREATE /*!99999 TEMPORARY */ TABLE IF NOT EXISTS DB.orders (id BIGINT, a INT)", "INSERT INTO DB.orders (a) VALUES (1)",
	}},
	{"sql_mode of a procedure", "", []string{
		"CALL DB.quote()", "SELECT 1", `INSERT INTO DB.orders (a) VALUES (LENGTH('it\'s'))`,
	}},
	{"sql_mode of a function", "", []string{
		"SELECT DB.quoting()", `INSERT INTO DB.orders (a) VALUES (LENGTH('it\'s'))`,
	}},
	{"sql_mode of a trigger", "", []string{
		"INSERT INTO DB.quoter VALUES (1)", `INSERT INTO DB.orders (a) VALUES (LENGTH('it\'s'))`,
	}},
	{"results in UTF-16", "", []string{"SET character_set_results=utf16", "CALL DB.tidy2()", "USE DB", "INSERT INTO orders (a) VALUES (1)"}},
	{"results in UTF-16, wildcard", "", []string{"SET character_set_results=utf16", "INSERT INTO DB.log_1 (a) VALUES (1)"}},
}

// TestUnseenState checks that no row comes into a table with a rule without an
// id, and that all bytes of its value come in.
func TestUnseenState(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}",
			fmt.Sprintf(`{table: %s.orders, column: id, source: ids}, {table: "%[1]s.log_*", column: id, source: ids}`, name))
		direct := harness.Open(t, server.Config(name), "")
		prepareUnseen(t, direct, server, name)
		for _, script := range unseenScripts {
			if script.only != "" && script.only != server.Kind.String() {
				continue
			}
			t.Run(script.name, func(t *testing.T) {
				errs := runUnseen(t, server, proxy.Addr("a"), name, script)
				mayRefuse := strings.Contains(script.name, "one text") || strings.Contains(script.name, "UTF-16")
				checkUnseen(t, direct, errs, mayRefuse)
			})
		}
	})
}

func prepareUnseen(t *testing.T, db *sql.DB, server *servers.Server, name string) {
	t.Helper()
	list := []string{
		"CREATE TABLE orders (id BIGINT, a INT)", "CREATE TABLE log_1 (id BIGINT NOT NULL, a INT)",
		"CREATE DATABASE IF NOT EXISTS DB_other", "CREATE TABLE DB_other.orders (id BIGINT, a INT)",
		"CREATE PROCEDURE tidy() DROP TEMPORARY TABLE DB.orders", "CREATE PROCEDURE tidy2() DO 1",
		"CREATE PROCEDURE quote() SET sql_mode='NO_BACKSLASH_ESCAPES'",
		"CREATE FUNCTION quoting() RETURNS INT DETERMINISTIC BEGIN SET sql_mode='NO_BACKSLASH_ESCAPES'; RETURN 1; END",
		"CREATE TABLE quoter (a INT)",
		"CREATE TRIGGER quotes BEFORE INSERT ON quoter FOR EACH ROW SET sql_mode='NO_BACKSLASH_ESCAPES'",
	}
	if server.Kind == servers.MariaDB {
		list = append(list, "CREATE PROCEDURE DB_other.enter() EXECUTE IMMEDIATE 'USE DB'")
	}
	for _, text := range list {
		assert.Of(db.Exec(strings.ReplaceAll(text, "DB", name))).Must(t)
	}
	t.Cleanup(func() { assert.Of(db.Exec("DROP DATABASE " + name + "_other")).NoError(t) })
}

// runUnseen runs a script in a session of its own, which begins in the schema
// without rule, and returns its errors.
func runUnseen(t *testing.T, server *servers.Server, addr, name string, script unseenScript) (errs []error) {
	t.Helper()
	config := server.Config(name + "_other")
	config.MultiStatements = true
	db := harness.Open(t, config, addr)
	db.SetMaxOpenConns(1)
	conn := assert.Of(db.Conn(t.Context())).Must(t)
	defer conn.Close()
	for _, text := range script.run {
		text = strings.ReplaceAll(text, "DB", name)
		if err := execUnseen(t.Context(), conn, text); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", text, err))
		}
	}
	return errs
}

func execUnseen(ctx context.Context, conn *sql.Conn, text string) error {
	sql, prepared := strings.CutPrefix(text, "prepared ")
	if !prepared {
		_, err := conn.ExecContext(ctx, text)
		return err
	}
	st, err := conn.PrepareContext(ctx, sql)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

// checkUnseen wants one row with an id, or, where that is allowed, none and an
// error of the proxy's.
func checkUnseen(t *testing.T, db *sql.DB, errs []error, mayRefuse bool) {
	t.Helper()
	rows := assert.Of(db.Query("SELECT id FROM orders UNION ALL SELECT id FROM log_1")).Must(t)
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var id sql.NullInt64
		assert.Must(t, rows.Scan(&id))
		assert.True(t, id.Int64 != 0, "a row has no id")
	}
	refused := mayRefuse && slices.ContainsFunc(errs, func(err error) bool { return strings.Contains(err.Error(), "idproxy") })
	assert.True(t, rows.Err() == nil && n <= 1 && (n != 0 || refused), "%d rows, %v, errors %v", n, rows.Err(), errs)
	for _, table := range []string{"orders", "log_1"} {
		assert.Of(db.Exec("DELETE FROM " + table)).Must(t)
	}
}

// unseenTexts run statements whose texts are not known before the server runs them, or that the
// reader does not read. No rule concerns them, and "inserts" stands for an INSERT into a table
// without a rule.
var unseenTexts = []string{
	"EXECUTE IMMEDIATE SFORMAT('inserts')", "EXECUTE IMMEDIATE CONCAT('inser', (SELECT 't into other (k) values (3)'))", "EXECUTE IMMEDIATE _cp1257 0xD182", "EXECUTE IMMEDIATE (SELECT @z)", "EXECUTE IMMEDIATE COALESCE(NULL, @z)",
	"EXECUTE IMMEDIATE @z", "EXECUTE IMMEDIATE @nothing", "EXECUTE IMMEDIATE nosuch('x')", "EXECUTE IMMEDIATE CONCAT('SELECT ', SLEEP(0))", "EXECUTE IMMEDIATE 'SELECT ?' USING NEXTVAL(nosuch)", "EXECUTE IMMEDIATE CONCAT('a' 'b',)", "EXECUTE IMMEDIATE CONCAT('SELECT ', RAND(3))",
	"EXECUTE IMMEDIATE CONVERT(@z USING utf16)", "EXECUTE IMMEDIATE CAST(@z AS NCHAR)", "EXECUTE IMMEDIATE IF(@x := 1, @z, 0)", "EXECUTE IMMEDIATE 'SELECT 1' [", "EXECUTE IMMEDIATE \x01", "EXECUTE IMMEDIATE ?", "EXECUTE IMMEDIATE CONCAT(?, @z)",
	"PREPARE p FROM SFORMAT('inserts'); EXECUTE p", "PREPARE p FROM CONCAT(@z, LEFT(UUID(), 0)); EXECUTE p; EXECUTE p; DEALLOCATE PREPARE p", "PREPARE p FROM (SELECT @z); EXECUTE p", "PREPARE p FROM @z; EXECUTE p; SELECT ROW_COUNT()", "PREPARE p FROM @nothing; EXECUTE p",
	"PREPARE p FROM @z \x01; EXECUTE p", "SET sql_mode = 'ANSI_QUOTES' x; INSERT INTO other (k) VALUES (1)", "SELECT 1; SELEKT 1; SET sql_mode = ''; INSERT INTO other (k) VALUES (1)", "SET sql_mode = ''; INSERT INTO other (k VALUES (1); SELECT 2", "CALL nosuch; INSERT INTO other (k) VALUES (1)", "PREPARE p FROM 'SELEKT'; INSERT INTO other (k) VALUES (1)", "PREPARE \x01 FROM @z", "EXECUTE \x01", "DEALLOCATE PREPARE \x01", "PREPARE p FROM 'SELECT ?'; EXECUTE p USING @z [", "PREPARE p FROM 'SELECT 1' /*!99999 x */; EXECUTE p", "PREPARE p /*!50000 FROM 'SELECT 1' */; EXECUTE p",
	"BEGIN NOT ATOMIC PREPARE p FROM @z; EXECUTE p; END", "BEGIN NOT ATOMIC EXECUTE IMMEDIATE @z; END", "BEGIN NOT ATOMIC EXECUTE IMMEDIATE CONCAT(@z, ''); INSERT INTO other (k) VALUES (7); END", "BEGIN NOT ATOMIC DECLARE v TEXT DEFAULT 'inserts'; EXECUTE IMMEDIATE v; END",
	"IF 1 THEN EXECUTE IMMEDIATE @z; END IF", "FOR i IN 1..2 DO EXECUTE IMMEDIATE @z; END FOR", "WHILE (SELECT COUNT(*) FROM other) < 3 DO EXECUTE IMMEDIATE @z; END WHILE", "REPEAT PREPARE p FROM @z; EXECUTE p; UNTIL 1 END REPEAT", "CASE 1 WHEN 1 THEN EXECUTE IMMEDIATE @z; END CASE",
	"SET STATEMENT max_statement_time = 100 FOR EXECUTE IMMEDIATE @z", "SET STATEMENT max_statement_time = 100 FOR PREPARE p FROM @z; EXECUTE p", "BEGIN NOT ATOMIC PREPARE p FROM @z; END; EXECUTE p", "BEGIN NOT ATOMIC \x01 END", "BEGIN NOT ATOMIC INSERT INTO @x; END",
	"BEGIN NOT ATOMIC INSERT INTO other (k) VALUES (5); SELECT 'it''s'; END", "CREATE PROCEDURE again() BEGIN EXECUTE IMMEDIATE @z; END; SELECT 1; CALL again()", "INSERT INTO (SELECT 1)", "INSERT INTO @x (k) VALUES (1)", "INSERT INTO other\xff (k) VALUES (1)", "(INSERT INTO other (k) VALUES (1))",
	"INSERT INTO other (k) VALUES ('a", "INSERT INTO `other (k) VALUES (1)", "INSERT INTO \"other\" (k) VALUES (1)", "INSERT INTO other (k) VALUES (1) /*", "REPLACE INTO (other) (k) VALUES (1)", "LOAD DATA INFILE 'x' INTO other", "LOAD DATA INFILE 'nosuch' INTO TABLE @x", "INSERT INTO other\x00 (k) VALUES (1)",
}

// TestUnseenTexts holds that dynamic SQL and texts that cannot be read run as they do natively
// while no rule concerns them: with rules for tables that do not exist, and for one that no
// statement touches.
func TestUnseenTexts(t *testing.T) {
	t.Parallel()
	for _, server := range harness.Servers(t) {
		for _, rules := range []string{"[{table: DB.nosuchtable, column: id, source: ids}]", `[{table: "nosuchschema.*", column: id, source: ids}, {table: DB.untouched, column: id, source: ids}]`} {
			t.Run(fmt.Sprint(server.Kind, " ", rules), func(t *testing.T) {
				t.Parallel()
				w := pair.New(t, server, rules, "CREATE TABLE other (k INT)", "CREATE TABLE untouched (id BIGINT NOT NULL PRIMARY KEY, k INT)")
				direct := wireclient.Open(t, server.Addr, w.DB)
				for _, text := range unseenTexts {
					text = strings.ReplaceAll(text, "inserts", "INSERT INTO other (k) VALUES (1)")
					var stored [2]string
					both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) {
						direct.Must(t, "DELETE FROM other", "DROP PROCEDURE IF EXISTS again")
						s.Must(t, "SET @z = 'INSERT INTO other (k) VALUES (1)'")
						replies, err := s.Query(text)
						stored[0], stored[1] = stored[1], direct.Value(t, "SELECT COALESCE(GROUP_CONCAT(k ORDER BY k), '') FROM other")
						return replies, err
					}, text)
					assert.True(t, stored[0] == stored[1], "%q stores %s, natively %s", text, stored[1], stored[0])
					both(t, w, w.DB, func(s *wireclient.Session) ([]wireclient.Reply, error) { return s.Prepare("p", text) }, "prepared: "+text)
				}
			})
		}
	}
}

func TestMain(m *testing.M) { harness.Main(m) }
