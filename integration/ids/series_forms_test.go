package ids

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestSeriesOfQueriesAndFiles: rows of a query, lines of a file and ids that the application brings
// belong to the series of their table too.
func TestSeriesOfQueriesAndFiles(t *testing.T) {
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	for _, table := range []string{"a", "b"} {
		harness.MustExec(t, direct, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, n INT)")
	}
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {key: "ids_{table}", step: 10}}}
rules:     [{table: "%s.*", column: id, source: ids, explicit: advance}]
`, s.Addr, name))
	l := harness.NewLoader(t, s.Config(name), proxy.Addr("a"))
	l.Exec("INSERT INTO a (n) VALUES (1), (2), (3)")
	l.Exec("INSERT INTO b (n) SELECT n FROM a")
	l.Exec("INSERT INTO b (id, n) VALUES (50, 4)")
	got := l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE b (n)", strings.NewReader("5\n6\n"))
	assert.True(t, strings.HasPrefix(got, "affected 2,"), "LOAD DATA: %s", got)
	got = l.Load("LOAD DATA LOCAL INFILE 'f' INTO TABLE b", strings.NewReader("100\t7\n"))
	assert.True(t, strings.HasPrefix(got, "affected 1,"), "LOAD DATA with ids: %s", got)
	l.Exec("INSERT INTO b (n) VALUES (8)")
	l.Exec("INSERT INTO a (n) SELECT n FROM b LIMIT 1")
	for table, want := range map[string]string{"a": "1 2 3 4", "b": "1 2 3 50 51 52 100 101"} {
		assert.Equal(t, "table "+table+" has ids", strings.Join(strings.Fields(strings.ReplaceAll(l.Rows("SELECT id FROM "+table+" ORDER BY id"), `"`, "")), " "), want)
	}
}
