package integration

import (
	"database/sql"
	"fmt"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// geneTables are tables with a key each, and the rule's gene.
var geneTables = []struct{ table, key, gene string }{
	{"by_mod", "user_id BIGINT UNSIGNED", "{column: user_id, bits: 8, by: mod}"},
	{"by_crc", "name VARCHAR(20) CHARACTER SET utf8mb4", "{column: name, bits: 10, by: crc32}"},
}

// geneProxy starts a proxy whose ids have genes, in tables of a new database.
func geneProxy(t *testing.T, s *servers.Server) (name string, direct, db *sql.DB) {
	name = harness.Database(t, s)
	direct = harness.Open(t, s.Config(name), "")
	config := fmt.Sprintf("\nlisteners: [{name: a, listen: \"127.0.0.1:0\", upstream: %q}]\nsources: {ids: {segment: {}}}\nrules:\n", s.Addr)
	for _, g := range geneTables {
		mustExec(t, direct, fmt.Sprintf("CREATE TABLE %s (id BIGINT PRIMARY KEY, a INT, %s)", g.table, g.key))
		config += fmt.Sprintf("  - {table: %s.%s, column: id, source: ids, gene: %s}\n", name, g.table, g.gene)
	}
	proxy := harness.StartProxy(t, config)
	return name, direct, harness.Open(t, s.Config(name), proxy.Addr("a"))
}

// TestGenes inserts rows whose ids have genes, and has the server itself compare them with the keys.
func TestGenes(t *testing.T) {
	for _, s := range harness.Servers(t) {
		t.Run(s.Kind.String(), func(t *testing.T) {
			_, direct, db := geneProxy(t, s)
			db.SetMaxOpenConns(1)
			mustExec(t, db, "INSERT INTO by_mod (a,user_id) VALUES (1,7),(2,'300'),(3,18446744073709551615)")
			first := count(t, db, "SELECT LAST_INSERT_ID()")
			if want := count(t, direct, "SELECT id FROM by_mod WHERE a=1"); first != want {
				t.Errorf("LAST_INSERT_ID() is %d, want that of the first row, %d", first, want)
			}
			mustExec(t, db, "INSERT INTO by_mod SET user_id=5, a=4")
			mustExec(t, db, "INSERT INTO by_mod VALUES (NULL,5,6), (0,6,7)")
			execute(t, db, "INSERT INTO by_mod (user_id,a) VALUES (?,?),(44,?),(?,?)", 1000, 8, 9, "77", 10)
			mustExec(t, db, "INSERT INTO by_crc (a,name) VALUES (1,'x'), (2,'it''s'), (3,'日本\\n')")
			execute(t, db, "INSERT INTO by_crc (a,name) VALUES (?,?), (?,?)", 1, "x", 2, "grün")
			if bad := count(t, direct, "SELECT COUNT(*) FROM by_crc WHERE id%1024<>CRC32(name)%1024"); bad != 0 {
				t.Errorf("%d rows by_crc", bad)
			}
			if n, bad := count(t, direct, "SELECT COUNT(*) FROM by_mod"), count(t, direct, "SELECT COUNT(*) FROM by_mod WHERE id%256<>user_id%256"); n != 9 || bad != 0 {
				t.Errorf("%d of %d rows have another gene than their key", bad, n)
			}
		})
	}
}

// execute runs a prepared statement.
func execute(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.Exec(query, args...); err != nil {
		t.Fatalf("%s %v: %v", query, args, err)
	}
}
