package replies

import (
	"fmt"
	stdio "io"
	"slices"
	"strings"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	sqldriver "github.com/go-sql-driver/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestPieces sends one text of statements that must go to the server in pieces, with a file asked
// for in the middle: each sees what those in front of it did, and the client one reply.
func TestPieces(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name := harness.Database(t, s)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}}
rules:     [{table: "*.orders", column: id, source: ids}]
`, s.Addr))
		file := "piece" + s.Kind.String()
		sqldriver.RegisterReaderHandler(file, func() stdio.Reader { return strings.NewReader(strings.Repeat("7\n", 100_000)) })
		defer sqldriver.DeregisterReaderHandler(file)
		c := s.Config(name)
		c.MultiStatements = true
		db := harness.Open(t, c, proxy.Addr("a"))
		rows, err := db.QueryContext(t.Context(), strings.Join([]string{
			"CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE)", "CREATE TABLE free (a INT)",
			"SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
			"INSERT INTO \"orders\" (\"u\") VALUES (1), (2)",
			"LOAD DATA LOCAL INFILE 'Reader::" + file + "' INTO TABLE free (a)",
			"INSERT IGNORE INTO orders (u) VALUES (2), (3)",
			"INSERT INTO free VALUES (LAST_INSERT_ID())",
			"INSERT INTO orders (u) VALUES (3) ON DUPLICATE KEY UPDATE u = 4",
			"SELECT COUNT(*), MAX(a), LAST_INSERT_ID() FROM free",
			"SELECT id, u, ROW_COUNT() FROM orders ORDER BY id",
		}, ";"))
		assert.Must(t, err)
		defer rows.Close()
		var got [][3]int
		for more := true; more; more = rows.NextResultSet() {
			for rows.Next() {
				var r [3]int
				assert.Must(t, rows.Scan(&r[0], &r[1], &r[2]))
				got = append(got, r)
			}
		}
		assert.Must(t, rows.Err())
		// Of the ids 1002 and 1003, 1002 was skipped, and 1004 updated another row.
		want := [][3]int{{100_001, 1003, 1003}, {1000, 1, -1}, {1001, 2, -1}, {1003, 4, -1}}
		assert.True(t, slices.Equal(got, want), "rows %v; want %v", got, want)
	})
}

// TestRefusedInTheMiddle sends a text whose second statement is refused: as with an error of the
// server, the one in front has run, and those behind it have not.
func TestRefusedInTheMiddle(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name := harness.Database(t, s)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}}
rules:     [{table: "*.orders", column: id, source: ids}]
`, s.Addr))
		c := wireclient.Open(t, proxy.Addr("a"), name)
		c.Must(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE)")
		got := assert.Of(c.Query("INSERT INTO orders (u) VALUES (1); INSERT INTO orders (u) SELECT 2+SLEEP(0); INSERT INTO orders (u) VALUES (3)")).Must(t)
		if len(got) != 2 || got[0].InsertID != 1000 || got[0].Status&gomysql.SERVER_MORE_RESULTS_EXISTS == 0 || got[1].Err == nil || got[1].Err.Code != 1235 {
			t.Errorf("replies %+v; want the first row's, then error 1235", got)
		}
		n := c.Value(t, "SELECT GROUP_CONCAT(u) FROM orders")
		assert.True(t, n == "1", "rows %s; want the first alone", n)
	})
}
