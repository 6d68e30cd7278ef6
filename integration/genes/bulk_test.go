package genes

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestBulkGenes executes in bulk: each row has the gene of its own key, and what has none is
// refused as a whole.
func TestBulkGenes(t *testing.T) {
	server := harness.NewerMariaDB(t)
	db := harness.Database(t, server)
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:     [{table: "*.orders", column: id, source: ids, gene: {column: u, bits: 8, by: mod}}]
`, server.Addr))
	runTexts(t, server, db, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNSIGNED)")
	c := unitSession(proxy.Addr("a"), db, 0)
	defer c.Conn.Close()
	for _, tt := range []struct {
		sql   string
		rows  []bulkRow
		lines int
		fails string
	}{
		{sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {300}, {7}}, lines: 3},
		{sql: "INSERT INTO orders (id,u) VALUES (?,?)", rows: []bulkRow{{nil, 9}, {1 << 40, 1 << 8}, {0, 511}}, lines: 3},
		{sql: "INSERT INTO orders (u) VALUES (?),(5)", rows: []bulkRow{{1}, {2}}, lines: 2},
		{sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {nil}}, fails: "in column u, the gene of the id"},
		{sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {-1}}, fails: "a number below zero in column u"},
	} {
		lines := unitResults(c, tt.sql, tt.rows...)
		text := strings.Join(lines, "; ")
		assert.True(t, (tt.fails != "" || len(lines) >= tt.lines && !strings.Contains(text, "ERROR")) && strings.Contains(text, tt.fails), "%s %v: %s", tt.sql, tt.rows, text)
	}
	sql := harness.Open(t, server.Config(db), "")
	var rows, genes, wrong int
	assert.Must(t, sql.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id%256), SUM(id%256<>u%256) FROM orders").Scan(&rows, &genes, &wrong))
	assert.True(t, rows == 10 && genes >= 6 && wrong == 0, "%d rows of %d genes, %d have another gene than their key", rows, genes, wrong)
}
