package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/check"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestCheckOnlineWildcards: all tables that a wildcard matches are looked at, as the proxy
// would match them.
func TestCheckOnlineWildcards(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		name := harness.Database(t, server)
		db := harness.Open(t, server.Config(name), "")
		for _, sql := range []string{
			"CREATE TABLE orders_1 (id BIGINT PRIMARY KEY)", "CREATE TABLE orders_2 (id BIGINT PRIMARY KEY)", "INSERT INTO orders_2 VALUES (3000000001)",
			"CREATE TABLE orders_3 (id INT PRIMARY KEY)", "CREATE TABLE orders_own (nr INT PRIMARY KEY)", "CREATE TABLE orders_tiny (id INT PRIMARY KEY, nr BIGINT)",
			"CREATE TABLE orders_uuid (id CHAR(36) NOT NULL DEFAULT (UUID()) PRIMARY KEY)", "CREATE TABLE orders_null (id INT)", "CREATE TABLE orders_default (id INT NOT NULL DEFAULT 7)",
			"CREATE TABLE other (id INT PRIMARY KEY)",
		} {
			assert.Of(db.Exec(sql)).Must(t)
		}
		path := harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: app, password: app}}]
stores: {main: {mysql: {dsn: "app:app@tcp(%[1]s)/%[2]s"}}}
sources: {ids: {segment: {store: main, start: 3000000000}}, few: {segment: {store: main}}}
rules:
  - {table: %[2]s.orders_tiny, column: id, source: few}
  - {table: "%[2]s.orders_*", column: id, source: ids}
  - {table: "%[2]s.gone_*", column: id, source: ids}
  - {table: "%[2]s.orders_?", column: nr, source: ids}
`, server.Addr, name))
		got := runWith(t, "", "check", "--online", "--config", path)
		assert.Equal(t, "status", got.status, statusFinding)
		rule := path + ":6:5: %s: rule " + name + ".orders_*.id: "
		holds(t, "a table that is too narrow", got.out, fmt.Sprintf(rule, check.LevelError)+"table "+name+".orders_3: source ids stands at 3000000000, and the column holds at most 2147483647")
		holds(t, "a table without the column", got.out, fmt.Sprintf(rule, check.LevelNote)+"leaves tables alone: "+
			name+".orders_default (column id has a default of its own, ")
		holds(t, "columns that could not be AUTO_INCREMENT", got.out, name+".orders_null (column id may be NULL and is no key), "+
			name+".orders_own (the table has no column id), "+name+".orders_uuid (column id has the type CHAR(36), and ids of source ids go into integers and DECIMAL)\n")
		holds(t, "a rule without tables", got.out, path+":7:5: note: rule "+name+".gone_*.id: matches no table that the account may see\n")
		holds(t, "a rule of one character", got.out, name+".orders_?.nr: leaves tables alone: "+name+".orders_1 (the table has no column nr), "+name+".orders_2 (the table has no column nr), "+name+".orders_3 (the table has no column nr)\n")
		n := strings.Count(got.out, ": error: ")
		assert.True(t, n == 1, "%d errors, want 1: %s", n, got.out)
		again := runWith(t, "", "check", "--online", "--config", path)
		assert.True(t, again.out == got.out, "the second time it is %q, the first %q", again.out, got.out)
	})
}

// TestCheckOnlineAsksOnce has many listeners in front of one server, and finds each table
// asked for once.
func TestCheckOnlineAsksOnce(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	const listeners, rules = 64, 21
	var text strings.Builder
	text.WriteString("listeners:\n")
	for i := range listeners {
		fmt.Fprintf(&text, "  - {name: l%d, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}\n", i, server.Addr)
	}
	fmt.Fprintf(&text, "sources: {ids: {snowflake: {worker: 1}}}\nrules:\n")
	for i := range rules {
		assert.Of(db.Exec(fmt.Sprintf("CREATE TABLE t%d (id BIGINT PRIMARY KEY)", i))).Must(t)
		fmt.Fprintf(&text, "  - {table: %s.t%d, column: id, source: ids%s}\n", name, i, map[bool]string{true: ", listeners: [l1, l2]"}[i == 0])
	}
	questions := func() (n int) {
		var variable, value string
		assert.Must(t, db.QueryRow("SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&variable, &value))
		n = assert.Of(strconv.Atoi(value)).Must(t)
		return n
	}
	before := questions()
	got := runWith(t, "", "check", "--online", "--config", harness.WriteConfig(t, text.String()))
	assert.True(t, got.status == statusFine, "%+v", got)
	asked := questions() - before
	assert.True(t, asked <= 10*rules+50 && asked >= 3*rules, "%d questions for %d tables", asked, rules)
}
