package ids

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestSeriesForEachTable gives every table a series of its own, in whatever letters an INSERT
// writes its name, and starts it above what the table holds.
func TestSeriesForEachTable(t *testing.T) {
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	for _, table := range []string{"a", "b", "c"} {
		harness.MustExec(t, direct, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, n INT)")
	}
	harness.MustExec(t, direct, "CREATE TABLE bücher (id BIGINT PRIMARY KEY, n INT)")
	harness.MustExec(t, direct, "INSERT INTO c VALUES (500, 0)")
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {key: "ids_{table}", step: 10}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, s.Addr, name))
	db := harness.Open(t, s.Config(name), proxy.Addr("a"))
	for _, table := range []string{"a", "b", "a", name + ".b", "c", "b"} {
		harness.MustExec(t, db, "INSERT INTO "+table+" (n) VALUES (1), (2)")
	}
	for table, want := range map[string][3]int64{"a": {1, 4, 4}, "b": {1, 6, 6}, "c": {500, 502, 3}} {
		var got [3]int64
		assert.Must(t, direct.QueryRow("SELECT MIN(id), MAX(id), COUNT(*) FROM "+table).Scan(&got[0], &got[1], &got[2]))
		assert.Equal(t, table+": least id, greatest and rows", got, want)
	}
	_, err := db.Exec("INSERT INTO bücher (n) VALUES (1)")
	harness.WantError(t, err, 1467, "ids", "ASCII")
}
