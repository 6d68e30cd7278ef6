package names

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// resultTables are filled in sessions that see results in any character set.
var resultTables = []string{
	"CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)",
	"CREATE TABLE texts (id VARCHAR(20) PRIMARY KEY, a BIGINT)",
	"CREATE TABLE genes (id BIGINT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8mb4)",
	"CREATE TABLE uuids (id CHAR(36) CHARACTER SET latin1 PRIMARY KEY, a BIGINT)",
	"CREATE TABLE hidden (id BIGINT NOT NULL DEFAULT 0 INVISIBLE PRIMARY KEY, a BIGINT)",
	"CREATE TABLE named (id BIGINT PRIMARY KEY, `größe` BIGINT)",
	"CREATE TABLE source (a BIGINT)", "INSERT INTO source VALUES (1),(2),(3)",
	"CREATE VIEW lacking AS SELECT a FROM t",
}

// resultTexts have idproxy ask for settings, columns, expressions, counts, character sets, texts
// and greatest ids.
var resultTexts = []struct {
	text string
	rows uint64
}{
	{"INSERT INTO t (a) VALUES (1)", 1},
	{"INSERT INTO t VALUES (NULL, 2), (0, 3)", 2},
	{"INSERT INTO t (id, a) VALUES (@zero, 4), ('00', 5), (0.4, 6)", 3},
	{"INSERT INTO t VALUES (NULL, LAST_INSERT_ID()), (NULL, LAST_INSERT_ID())", 2},
	{"INSERT IGNORE INTO t (a) VALUES (7)", 1},
	{"INSERT INTO t (a) VALUES (8) ON DUPLICATE KEY UPDATE a=9", 1},
	{"INSERT INTO t (a) SELECT 10 UNION SELECT 11", 2},
	{"INSERT INTO t (a) SELECT a FROM source ORDER BY a LIMIT 2", 2},
	{"INSERT INTO texts (a) VALUES (12)", 1},
	{"INSERT INTO genes (a) VALUES ('\"日\\本')", 1},
	{"INSERT INTO uuids (a) VALUES (13)", 1},
	{"INSERT INTO hidden VALUES (14)", 1},
	{"INSERT INTO named VALUES (NULL, 15)", 1},
	{"EXECUTE p", 1},
}

// TestResultsInAnyCharset holds that idproxy reads the answers to its own questions whatever
// character set the session has its results in.
func TestResultsInAnyCharset(t *testing.T) {
	t.Parallel()
	for name, server := range harness.AllServers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := harness.Database(t, server)
			direct := wireclient.Open(t, server.Addr, db)
			direct.Must(t, "SET NAMES utf8mb4")
			direct.Must(t, resultTables...)
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}, uuids: {uuidv7: {}}}
rules:
  - {table: %[2]s.genes, column: id, source: ids, gene: {column: a, bits: 4, by: crc32}}
  - {table: %[2]s.uuids, column: id, source: uuids}
  - {table: %[2]s.texts, column: id, source: ids}
  - {table: "%[2]s.*", column: id, source: ids}
`, server.Addr, db))
			for _, charset := range []string{"utf16", "utf16le", "ucs2", "utf32", "binary", "NULL", "swe7", "latin1", "utf8mb4"} {
				t.Run(charset, func(t *testing.T) {
					s := wireclient.Open(t, proxy.Addr("a"), db)
					s.Must(t, "DROP TABLE IF EXISTS nothing", // ends what is known of tables
						"SET NAMES utf8mb4", "SET character_set_results="+charset+", @zero=0, @text='INSERT INTO t (a) VALUES (16)'", "PREPARE p FROM @text")
					for _, tt := range resultTexts {
						r := s.Must(t, tt.text)
						assert.True(t, r.Affected == tt.rows, "%s: %d rows, want %d", tt.text, r.Affected, tt.rows)
					}
					e := s.Fails(t, "INSERT INTO lacking VALUES (1)")
					assert.True(t, e.Code == 1235, "through a view that lacks the column: %v", e)
					for _, table := range []string{"t", "texts", "genes", "uuids", "hidden", "named"} {
						n := direct.Value(t, "SELECT COUNT(*) FROM "+table+" WHERE LENGTH(id)<4")
						assert.True(t, n == "0", "%s: %s rows without an id", table, n)
						direct.Must(t, "DELETE FROM "+table)
					}
				})
			}
		})
	}
}

// TestTimeLimits holds that max_execution_time, which ends no INSERT, ends none because of what
// idproxy asks for it, and that max_statement_time, which does, still does.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	const rows = 1500
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]",
			"CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT)", "CREATE TABLE many (a BIGINT)",
			"INSERT INTO many VALUES "+strings.TrimSuffix(strings.Repeat("(1),", rows), ","))
		s := wireclient.Open(t, w.Addr, w.DB)
		const long = "SELECT SUM(x.a*y.a+RAND()) FROM many x JOIN many y"
		set, code, want := "SET max_execution_time=1", uint16(3024), "3"
		if server.Kind == servers.MariaDB {
			set, code, want = "SET max_statement_time=0.001", 1969, "0"
		}
		s.Must(t, set)
		e := s.Fails(t, long)
		assert.MustTrue(t, e.Code == code, "the query alone: %v, want %d: the test proves nothing", e, code)
		prepared, err := s.Prepare("p", "INSERT INTO t (a) "+long)
		assert.MustTrue(t, err == nil && prepared[0].Err == nil, "%v %v", err, prepared)
		runs := []func() ([]wireclient.Reply, error){
			func() ([]wireclient.Reply, error) { return s.Query("INSERT INTO t (a) " + long) },
			func() ([]wireclient.Reply, error) { return s.Execute("p", wireclient.Execution{}) },
			func() ([]wireclient.Reply, error) { return s.Query("INSERT IGNORE INTO t (a) VALUES (@x+0)") },
		}
		if server.Kind == servers.MariaDB {
			runs = runs[:2] // whether the last one takes longer than the limit is a matter of luck
		}
		for _, run := range runs {
			replies := assert.Of(run()).Must(t)
			e := replies[0].Err
			assert.True(t, e == nil || server.Kind != servers.MySQL, "%v", e)
		}
		assert.Equal(t, "rows", wireclient.Open(t, server.Addr, w.DB).Value(t, "SELECT COUNT(*) FROM t"), want)
	})
}
