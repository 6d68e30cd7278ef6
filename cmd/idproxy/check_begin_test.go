package main

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/check"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestCheckBegins: check --online says where series begin that were never used, and the number for
// those that stand too low.
func TestCheckBegins(t *testing.T) {
	maria, mysql := harness.MariaDB(t), harness.MySQL(t)
	name := harness.Database(t, maria)
	other := harness.Open(t, mysql.Config(""), "")
	for _, sql := range []string{"CREATE DATABASE " + name, "CREATE TABLE " + name + ".orders (id BIGINT PRIMARY KEY)", "INSERT INTO " + name + ".orders VALUES (196607)"} {
		assert.Of(other.Exec(sql)).Must(t)
	}
	t.Cleanup(func() { assert.Of(other.Exec("DROP DATABASE " + name)).NoError(t) })
	db := harness.Open(t, maria.Config(name), "")
	for _, sql := range []string{
		"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (131072)", "CREATE TABLE items (id BIGINT PRIMARY KEY)", "INSERT INTO items VALUES (9)",
		"CREATE VIEW shown AS SELECT id FROM orders", // it has no series of its own
	} {
		assert.Of(db.Exec(sql)).Must(t)
	}
	const account = ", account: {user: app, password: app}"
	config := func(second, segment, table string) string {
		return fmt.Sprintf(`listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %q%s}
  - {name: b, listen: "127.0.0.1:0", upstream: %q%s}
stores: {main: {mysql: {dsn: "app:app@tcp(%s)/%s"}}}
sources:
  ids: {segment: {store: main%s}}
rules: [{table: %q, column: id, source: ids}]
`, maria.Addr, account, mysql.Addr, second, maria.Addr, name, segment, name+table)
	}
	const scrambles = ", scramble: {key: 2b7e151628aed2a6abf7158809cf4f3c"
	found := func(path, level, want string) {
		t.Helper()
		got := runWith(t, "", "check", "--online", "--config", path)
		holds(t, "the finding", got.out, path+":6:3: "+level+": source ids"+want)
	}
	for _, tt := range []struct{ second, segment, table, level, want string }{
		{account, "", ".orders", check.LevelNote, " was never used: it begins at 196608, above the greatest id 196607 of " + name + ".orders.id of listener b; as a number: start: 196608\n"},
		{account, "", ".*", check.LevelNote, " was never used: it begins at 196608,"},
		{account, ", start: 500000", ".*", check.LevelNote, " was never used: it begins at 500000,"},
		{account, ", key: 'k_{table}'", ".*", check.LevelNote, ", one of 2 series, was never used: it begins at 196608,"},
		{account, ", key: 'k_{schema}.{table}'", ".*", check.LevelNote, ", one of 2 series, was never used: it begins at 196608,"},
		{account, scrambles + ", bits: 53}", ".*", check.LevelNote, " was never used: no column holds an id of 53 bits\n"},
		{"", scrambles + ", bits: 53}", ".*", check.LevelError, ": its INSERTs will be refused: NOT asked: listener b\n"},
		{"", "", ".orders", check.LevelError, " was never used, and its INSERTs will be refused, for where it begins is not known: NOT asked: listener b; mend that, or set start: " +
			"a number above all that is there (from 131073 on above what was asked)\n"},
		{"", ", key: 'k_{table}'", ".orders", check.LevelError, " was never used, and its INSERTs will be refused"},
		{"", ", start: 1", ".orders", check.LevelWarning, " was never used: it begins at 131073, above what could be asked; NOT asked: listener b\n"},
	} {
		found(harness.WriteConfig(t, config(tt.second, tt.segment, tt.table)), tt.level, tt.want)
	}
	for _, segment := range []string{", key: used", ", key: 'u_{table}'", ", key: 'u_{schema}.{table}'"} {
		text := config(account, segment, ".*")
		path := harness.WriteConfig(t, text)
		args := []string{"source", "set", "ids", "196608", "--config", path}
		if strings.Contains(segment, "{") {
			args = append(args, "--key", strings.NewReplacer("{schema}", name, "{table}", "orders").Replace(strings.Split(segment, "'")[1]))
		}
		got := runWith(t, "", args...)
		assert.MustTrue(t, got.status == statusFine, "%+v", got)
		p := harness.StartProxy(t, text)
		assert.Of(harness.Open(t, maria.Config(name), p.Addr("a")).Exec("INSERT INTO orders (id) VALUES (NULL)")).Must(t)
		assert.Of(other.Exec("INSERT IGNORE INTO " + name + ".orders VALUES (900000)")).Must(t)
		found(path, check.LevelError, " stands at 197608, at or below the greatest id 900000, which "+name+".orders.id of listener b holds: its INSERTs will be refused; set start: 900001 for it")
		assert.Of(other.Exec("DELETE FROM " + name + ".orders WHERE id > 196607")).Must(t)
		assert.Of(db.Exec("DELETE FROM orders WHERE id > 131072")).Must(t)
	}
}
