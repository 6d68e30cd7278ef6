package columns

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/pair"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestMixedRights: a wildcard leaves tables alone, and fills others, for a user who may not see how
// they are declared, for temporary tables that a procedure made, and through views.
func TestMixedRights(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`,
			"CREATE TABLE seven (id INT NOT NULL DEFAULT 7, a INT)", "CREATE TABLE zero (id INT NOT NULL DEFAULT 0, a INT)",
			"CREATE TABLE made (id INT GENERATED ALWAYS AS (a + 1) STORED UNIQUE, a INT)", "CREATE TABLE both_ways (id INT NOT NULL PRIMARY KEY, a INT)",
			"CREATE VIEW v_seven AS SELECT id, a FROM seven", "CREATE VIEW v_zero AS SELECT id, a FROM zero",
			"CREATE PROCEDURE hide() CREATE TEMPORARY TABLE both_ways (id INT NOT NULL DEFAULT 8, a INT)",
			"CREATE TABLE none (a INT, b INT)", "CREATE USER mixed IDENTIFIED BY 'grants'", "GRANT SELECT (a, b), INSERT (a) ON DB.none TO mixed",
			"GRANT SELECT (id, a), INSERT (id, a) ON DB.seven TO mixed", "GRANT SELECT (id, a), INSERT (id, a) ON DB.zero TO mixed", "GRANT SELECT (id, a), INSERT (id, a) ON DB.made TO mixed")
		t.Cleanup(func() { wireclient.Open(t, server.Addr, "").Must(t, "DROP USER mixed") })
		limited, s := wireclient.DialAs(t, w.Addr, "mixed", w.DB), wireclient.Open(t, w.Addr, w.DB)
		limited.Must(t, "INSERT INTO seven (a) VALUES (1)", "INSERT INTO zero (a) VALUES (1)", "INSERT INTO made (a) VALUES (1)", "INSERT INTO none (a) VALUES (1)")
		s.Must(t, "INSERT INTO v_seven (a) VALUES (2)", "INSERT INTO v_zero (a) VALUES (2)",
			"INSERT INTO both_ways (a) VALUES (1)", "CALL hide()", "INSERT INTO both_ways (a) VALUES (2)")
		for text, want := range map[string]string{
			"SELECT id, a FROM seven ORDER BY a": "7,1 7,2", "SELECT id, a FROM zero ORDER BY a": "id,1 id,2", "SELECT id, a FROM made": "2,1",
			"SELECT id, a FROM both_ways": "8,2",
		} {
			assert.Equal(t, text, pair.Shown(s.Must(t, text)), want)
		}
		assert.Equal(t, "the table behind the temporary one", pair.Shown(wireclient.Open(t, w.Addr, w.DB).Must(t, "SELECT id, a FROM both_ways")), "id,1")
	})
}

// TestMixedSnapshot: to find out that a table is left alone opens no read view.
func TestMixedSnapshot(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, `[{table: "DB.*", column: id, source: ids}]`, "CREATE TABLE seven (id INT NOT NULL DEFAULT 7, a INT)", "CREATE TABLE seen (a INT)")
		direct, s := wireclient.Open(t, server.Addr, w.DB), wireclient.Open(t, w.Addr, w.DB)
		s.Must(t, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN", "INSERT INTO seven (a) VALUES (1)")
		for range 2 { // the second one is behind the view
			direct.Must(t, "INSERT INTO seen VALUES (1)")
			assert.Equal(t, "rows are seen", s.Value(t, "SELECT COUNT(*) FROM seen"), "1")
		}
	})
}
