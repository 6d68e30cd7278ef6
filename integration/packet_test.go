package integration

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/harness"
)

// TestPacket is last_insert_id: packet. The OK packet shows the first new id; the server is sent no LAST_INSERT_ID(expr), and the
// function stays what it was.
func TestPacket(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := harness.Database(t, server)
			log := openSession(t, server.Addr, db)
			log.must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)",
				"SET GLOBAL log_output = 'TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log = 1")
			defer log.must(t, "SET GLOBAL general_log = 0", "SET GLOBAL log_output = DEFAULT")
			s := openSession(t, harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {ids: {segment: {start: %d}}}
rules: [{table: %s.t, column: id, source: ids, last_insert_id: packet}]
`, server.Addr, sourceStart, db)).Addr("a"), db)
			next := uint64(sourceStart)
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
				if got := s.must(t, st.sql).insertID; got != want {
					t.Errorf("%s: insert id %d, want %d", st.sql, got, want)
				}
			}
			if got := s.value(t, "SELECT LAST_INSERT_ID()"); got != "0" {
				t.Errorf("LAST_INSERT_ID() is %s, want what the server makes of it", got)
			}
			if got := s.value(t, "SELECT COUNT(*) FROM t WHERE id = 0 OR a IS NULL"); got != "0" {
				t.Errorf("%s rows without id", got)
			}
			for _, row := range log.must(t, "SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log").rows {
				if text := strings.ReplaceAll(row[0], "LAST_INSERT_ID()", ""); strings.Contains(text, "LAST_INSERT_ID") {
					t.Errorf("the server was sent %s", row[0])
				}
			}
			if got := log.value(t, "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE '%INSERT INTO t (a,`id`)%'"); got == "0" {
				t.Error("the log has no INSERT: the test proves nothing")
			}
		})
	}
}
