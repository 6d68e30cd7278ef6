package lifecycle

import (
	"cmp"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// A user without the privileges that spare one init_connect.
const plainUser, plainPassword = "names_plain", "plain"

// loginScript says what init_connect does, and what a session then writes to orders, a table that
// stands both in DB, where it has a rule, and in DB_other, where it has none.
type loginScript struct {
	name, init string
	schema     string // named at login
	texts      []string
}

var loginScripts = []loginScript{
	{"nothing", "", "DB", []string{"INSERT INTO orders (b) VALUES ('x')"}},
	{"leaves the schema", "USE DB_other", "DB", []string{"INSERT INTO orders (b) VALUES ('x')"}},
	{"enters the schema", "USE DB", "DB_other", []string{"INSERT INTO orders (b) VALUES ('x')"}},
	{"enters the schema, none named", "USE DB", "", []string{"INSERT INTO orders (b) VALUES ('x')"}},
	{"enters the schema, two rows", "USE DB", "DB_other", []string{"INSERT INTO orders VALUES (NULL,'x',NULL), (NULL,'y',NULL)"}},
	{"enters the schema, several statements", "USE DB", "DB_other", []string{"DO 1; INSERT INTO orders (b) VALUES ('x'); DO 2"}},
	{"USE behind it", "USE DB", "DB", []string{"USE DB_other", "INSERT INTO orders (b) VALUES ('x')"}},
	{"NO_BACKSLASH_ESCAPES", "SET sql_mode='NO_BACKSLASH_ESCAPES'", "DB", []string{`INSERT INTO orders (b) VALUES ('x\'),('\')`}},
	{"ANSI_QUOTES", "SET sql_mode='ANSI_QUOTES'", "DB", []string{`INSERT INTO "orders" ("b") VALUES ('"')`}},
	{"NO_AUTO_VALUE_ON_ZERO", "SET sql_mode='NO_AUTO_VALUE_ON_ZERO'", "DB", []string{"INSERT INTO orders (id, b) VALUES (0,'x'), (NULL,'y')"}},
	{"increment", "SET auto_increment_increment=10", "DB", []string{"INSERT INTO orders (b) VALUES ('x'), ('y')"}},
	{"inserts", "INSERT INTO DB_other.audit (a) VALUES (1)", "DB", []string{
		"INSERT INTO orders (b, u) VALUES ('x', 1)", "INSERT INTO orders (b) VALUES ((SELECT MAX(k) - LAST_INSERT_ID() FROM DB_other.audit))",
	}},
}

// TestStateAfterLogin checks that init_connect, which the server runs behind the reply to a login,
// is seen: rows go where they go natively, and get ids where a rule says so. Neither server runs it
// behind COM_CHANGE_USER.
func TestStateAfterLogin(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		l := newLoginWorld(t, s)
		for _, script := range loginScripts {
			for _, change := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, change user %v", script.name, change), func(t *testing.T) {
					native := l.run(t, l.native, s.Addr, script, change)
					ours := l.run(t, l.ruled, l.proxy.Addr("a"), script, change)
					assert.True(t, native == ours, "through the proxy:\n%s\nnatively:\n%s", ours, native)
				})
			}
		}
	})
}

// loginWorld is two pairs of databases: one with AUTO_INCREMENT, one with a rule.
type loginWorld struct {
	admin         *sql.DB
	proxy         *harness.Proxy
	native, ruled string
}

func newLoginWorld(t *testing.T, s *servers.Server) *loginWorld {
	t.Helper()
	l := &loginWorld{admin: harness.Open(t, s.Config(""), ""), native: harness.Database(t, s), ruled: harness.Database(t, s)}
	exec := func(texts ...string) { harness.MustExec(t, l.admin, texts...) }
	exec(fmt.Sprintf("CREATE USER %s IDENTIFIED BY '%s'", plainUser, plainPassword), "GRANT SELECT, INSERT, DELETE ON *.* TO "+plainUser)
	t.Cleanup(func() { exec("SET GLOBAL init_connect=''", "DROP USER "+plainUser) })
	for db, id := range map[string]string{l.native: "BIGINT AUTO_INCREMENT PRIMARY KEY", l.ruled: "BIGINT PRIMARY KEY"} {
		exec("CREATE DATABASE " + db + "_other")
		t.Cleanup(func() { exec("DROP DATABASE " + db + "_other") })
		exec(fmt.Sprintf("CREATE TABLE %s.orders (id %s, b VARCHAR(20), u INT UNIQUE)", db, id), "CREATE TABLE "+db+"_other.orders (id BIGINT, b VARCHAR(20), u INT)",
			"CREATE TABLE "+db+"_other.audit (k BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)")
	}
	l.proxy = harness.StartProxy(t, harness.OneListener(s.Addr)+harness.OneRule(l.ruled+".orders"))
	return l
}

// run runs a script and returns what it left: in which table, with ids counted from the first.
func (l *loginWorld) run(t *testing.T, db, addr string, script loginScript, change bool) string {
	t.Helper()
	named := func(text string) string { return strings.ReplaceAll(text, "DB", db) }
	harness.MustExec(t, l.admin, named("DELETE FROM DB.orders"), named("DELETE FROM DB_other.orders"), named("INSERT INTO DB.orders VALUES (-1,'fixed',1)"))
	setInit := func(init string) { assert.Of(l.admin.Exec("SET GLOBAL init_connect=?", named(init))).Must(t) }
	var errs []string
	assert.Must(t, replay.Do(func() {
		cfg := replay.Config{Addr: addr, User: plainUser, Password: plainPassword, Schema: named(script.schema)}
		setInit(script.init)
		if change {
			setInit("")
			cfg.Schema = ""
		}
		c := replay.Login(cfg)
		defer c.Close()
		if change {
			replay.Check(c.Query("DO 1")) // the login is over, with what belongs to it
			setInit(script.init)
			replay.Check(c.ChangeUser(plainUser, plainPassword, named(script.schema)))
		}
		for _, text := range script.texts {
			if c.Query(named(text)) != nil { // which number depends on who finds the error first
				errs = append(errs, "an error")
			}
		}
	}))
	return strings.Join(errs, "\n") + "\n" + l.rows(t, db)
}

func (l *loginWorld) rows(t *testing.T, db string) string {
	t.Helper()
	rows := assert.Of(l.admin.Query(fmt.Sprintf("SELECT 'ruled', id, b FROM %s.orders WHERE id >= 0 UNION ALL SELECT 'other', id, b FROM %[1]s_other.orders ORDER BY 2, 3", db))).Must(t)
	defer rows.Close()
	var b strings.Builder
	var first int64
	for rows.Next() {
		var table, text string
		var id sql.NullInt64
		assert.Must(t, rows.Scan(&table, &id, &text))
		at := "no id"
		switch {
		case id.Valid && id.Int64 == 0:
			at = "id 0"
		case id.Valid:
			first = cmp.Or(first, id.Int64)
			at = fmt.Sprintf("first id+%d", id.Int64-first)
		}
		fmt.Fprintf(&b, "%s: %s, %q\n", table, at, text)
	}
	assert.Must(t, rows.Err())
	return b.String()
}
