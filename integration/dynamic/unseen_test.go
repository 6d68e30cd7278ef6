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
	"idproxy/integration/servers"
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
		proxy := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {}}}
rules: [{table: %[2]s.orders, column: id, source: ids}, {table: "%[2]s.log_*", column: id, source: ids}]
`, server.Addr, name))
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
	err := rows.Err()
	assert.True(t, err == nil && n <= 1 && (n != 0 || refused), "%d rows, %v, errors %v", n, err, errs)
	for _, table := range []string{"orders", "log_1"} {
		assert.Of(db.Exec("DELETE FROM " + table)).Must(t)
	}
}
