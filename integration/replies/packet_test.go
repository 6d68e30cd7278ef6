package replies

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestPacket is last_insert_id: packet. The OK packet shows the first new id, and so does a SELECT of
// LAST_INSERT_ID(), which is answered here. The server is sent no LAST_INSERT_ID(expr).
func TestPacket(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		log := wireclient.Open(t, server.Addr, db)
		log.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)",
			"SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1")
		defer log.Must(t, "SET GLOBAL general_log = 0", "SET GLOBAL log_output = DEFAULT")
		s := wireclient.Open(t, harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.t, column: id, source: ids, last_insert_id: packet}]
`, server.Addr, wireclient.SourceStart, db)).Addr("a"), db)
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
			if text := strings.ReplaceAll(row[0], "LAST_INSERT_ID()", ""); strings.Contains(text, "LAST_INSERT_ID") {
				t.Errorf("the server was sent %s", row[0])
			}
		}
		got := log.Value(t, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE '%INSERT INTO t (a,`id`)%'")
		assert.True(t, got != "0", "the log has no INSERT: the test proves nothing")
	})
}
