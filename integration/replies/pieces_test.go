package replies

import (
	"fmt"
	stdio "io"
	"regexp"
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
		proxy := harness.StartWith(t, s.Addr, "ids: {segment: {start: 1000}}", `{table: "*.orders", column: id, source: ids}`)
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
		proxy := harness.StartWith(t, s.Addr, "ids: {segment: {start: 1000}}", `{table: "*.orders", column: id, source: ids}`)
		c := wireclient.Open(t, proxy.Addr("a"), name)
		c.Must(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE)")
		got := assert.Of(c.Query("INSERT INTO orders (u) VALUES (1); INSERT INTO orders (u) SELECT 2+SLEEP(0); INSERT INTO orders (u) VALUES (3)")).Must(t)
		assert.True(t, len(got) == 2 && got[0].InsertID == 1000 && got[0].Status&gomysql.SERVER_MORE_RESULTS_EXISTS != 0 && got[1].Err != nil && got[1].Err.Code == 1235,
			"replies %+v; want the first row's, then error 1235", got)
		assert.Equal(t, "rows, the first alone", c.Value(t, "SELECT GROUP_CONCAT(u) FROM orders"), "1")
	})
}

// TestPacket is last_insert_id: packet. The OK packet shows the first new id, and so does a SELECT of
// LAST_INSERT_ID(), which is answered here. The server is sent no LAST_INSERT_ID(expr).
func TestPacket(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		log := wireclient.Open(t, server.Addr, db)
		log.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)",
			"SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1")
		defer log.Must(t, "SET GLOBAL general_log = 0", "SET GLOBAL log_output = DEFAULT")
		s := wireclient.Open(t, harness.StartWith(t, server.Addr, fmt.Sprintf("ids: {segment: {start: %d}}", wireclient.SourceStart),
			fmt.Sprintf("{table: %s.t, column: id, source: ids, last_insert_id: packet}", db)).Addr("a"), db)
		next := uint64(wireclient.SourceStart)
		for _, st := range []struct {
			sql      string
			ids      uint64 // drawn
			insertID uint64 // from the first of those; explicit: itself
		}{
			{"INSERT INTO t (a) VALUES (1), (2), (3)", 3, 0},
			{"INSERT INTO t SET a = 4", 1, 0},
			{"REPLACE INTO t VALUES (NULL, 5)", 1, 0},
			{"INSERT INTO t VALUES (77, 6)", 0, 77},
			{"INSERT INTO t VALUES (NULL, 7), (78, 8)", 1, 0},
			{"INSERT IGNORE INTO t (a) VALUES (9), (10)", 2, 0},
			{"INSERT INTO t (a) VALUES (11) ON DUPLICATE KEY UPDATE a = 12", 1, 0},
		} {
			want := st.insertID
			if want == 0 {
				want = next
			}
			next += st.ids
			assert.Equal(t, st.sql+": insert id", s.Must(t, st.sql).InsertID, want)
		}
		assert.Equal(t, "LAST_INSERT_ID()", s.Value(t, "SELECT LAST_INSERT_ID()"), fmt.Sprint(next-1))
		assert.Equal(t, "LAST_INSERT_ID() among others", s.Value(t, "SELECT LAST_INSERT_ID()+0"), fmt.Sprint(next-1))
		assert.Equal(t, "rows without id", s.Value(t, "SELECT COUNT(*) FROM t WHERE id = 0 OR a IS NULL"), "0")
		for _, row := range log.Must(t, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log").Rows {
			text := strings.ReplaceAll(row[0], "LAST_INSERT_ID()", "")
			assert.True(t, !strings.Contains(text, "LAST_INSERT_ID"), "the server was sent %s", row[0])
		}
		assert.True(t, log.Value(t, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE '%INSERT INTO t (a,`id`)%'") != "0", "the log has no INSERT: the test proves nothing")
	})
}

// TestInsideStaysInside has a store be down, and a listener's account have another password:
// clients are told neither hosts nor accounts, but a reference that the log has with all of it.
func TestInsideStaysInside(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		name := harness.Database(t, s)
		store := harness.StartServer(t, servers.MariaDB, servers.Options{})
		storeDB := harness.Database(t, store)
		direct := harness.Open(t, s.Config(name), "")
		harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: secretly, password: wrong}}
  - {name: b, listen: "127.0.0.1:0", upstream: %[1]q}
stores:    {main: {mysql: {dsn: %[2]q}}}
sources:   {order_id: {segment: {store: main}}, near_id: {segment: {}}}
rules:
  - {table: %[3]s.t, column: id, source: order_id, listeners: [b]}
  - {table: %[3]s.u, column: id, source: near_id, listeners: [a]}
`, s.Addr, harness.StoreDSN(store, storeDB), name))
		assert.Must(t, store.Kill())
		for table, log := range map[string]string{"t": store.Addr, "u": "secretly"} {
			db := harness.Open(t, s.Config(name), proxy.Addr(map[string]string{"t": "b", "u": "a"}[table]))
			_, err := db.Exec("INSERT INTO " + table + " (a) VALUES (1)")
			harness.WantError(t, err, 1467, "the log of idproxy says why", name+"."+table+".id")
			text := fmt.Sprint(err)
			reference := regexp.MustCompile(`reference ([0-9a-f]{8})`).FindStringSubmatch(text)
			assert.MustTrue(t, reference != nil && !strings.Contains(text, "secretly") && !strings.Contains(text, "127.0.0.1") && !strings.Contains(text, "tcp"), "the client is told %q", text)
			line := regexp.MustCompile(`.*statement refused.*reference=` + reference[1] + `.*`).FindString(proxy.Log())
			assert.True(t, strings.Contains(line, log), "reference %s is in the log as %q, want %q in it", reference[1], line, log)
		}
	})
}
