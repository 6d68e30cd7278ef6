package genes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

const mariaBulk, mariaUnitResults = 1 << 34, 1 << 37

// bulkRow is the values of a bulk execution's row: a number, or nil for NULL.
type bulkRow []any

// unitResults prepares sql and executes it in bulk, asking for a result for each row. It returns
// "id,affected" of each, the text of an error, or "RETURNING n" in front for n rows of another
// result. All parameters are integers.
func unitResults(c *replay.Conn, sql string, rows ...bulkRow) (lines []string) {
	c.CommandText(mysql.COM_STMT_PREPARE, sql)
	p := c.Packet()
	if err := refusal(p); err != nil {
		return []string{err.Error()}
	}
	id := bytes.Clone(p[1:5])
	for range int(binary.LittleEndian.Uint16(p[5:])) + int(binary.LittleEndian.Uint16(p[7:])) {
		c.Packet()
	}
	body := append(id, 128|64, 0)
	for range rows[0] {
		body = append(body, mysql.MYSQL_TYPE_LONGLONG, 0)
	}
	for _, row := range rows {
		for _, v := range row {
			if v == nil {
				body = append(body, 1)
			} else {
				body = binary.LittleEndian.AppendUint64(append(body, 0), uint64(v.(int)))
			}
		}
	}
	c.Command(0xfa, body...)
	for more := true; more; {
		p := c.Packet()
		if err := refusal(p); err != nil {
			return append(lines, err.Error())
		}
		columns, n := int(p[0]), 0
		for range columns {
			c.Packet()
		}
		for p = c.Packet(); p[0] == 0; p = c.Packet() {
			n++
			if columns == 2 {
				lines = append(lines, fmt.Sprintf("%d,%d", binary.LittleEndian.Uint64(p[2:]), binary.LittleEndian.Uint64(p[10:])))
			}
		}
		if err := refusal(p); err != nil {
			return append(lines, err.Error())
		}
		if more = p[3]&8 != 0; more {
			lines = append(lines, fmt.Sprint("RETURNING ", n))
		}
	}
	return lines
}

// refusal returns the error that a packet is, or nil.
func refusal(p []byte) error {
	if p[0] != mysql.ERR_HEADER {
		return nil
	}
	return replay.ServerError(p)
}

// unitSession logs in with what bulk executions and their results take, and CLIENT_DEPRECATE_EOF.
func unitSession(addr, db string, caps uint64) *replay.Conn {
	c := replay.Dial(replay.Config{Addr: addr, Schema: db, User: servers.AppUser, Password: servers.AppPassword, Caps: mariaBulk | mariaUnitResults | caps | uint64(mysql.CLIENT_DEPRECATE_EOF)})
	c.Login()
	return c
}

// TestBulkUnitResults: results for each row show the ids that a native column shows.
func TestBulkUnitResults(t *testing.T) {
	t.Parallel()
	server := harness.NewerMariaDB(t)
	direct, proxied := harness.Database(t, server), harness.Database(t, server)
	proxy := harness.StartWith(t, server.Addr, "ids: {segment: {start: 1000}}", `{table: "*.orders", column: id, source: ids}`)
	for db, auto := range map[string]string{direct: "AUTO_INCREMENT", proxied: ""} {
		runTexts(t, server, db, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY "+auto+", u INT UNIQUE)", "CREATE TABLE log (u INT)")
	}
	cases := []struct {
		sql   string
		rows  []bulkRow
		setup string
		want  string // where it is not what is native: for the gaps in ids, a batch that fails, or a trigger that hides ids
	}{
		{sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {2}, {nil}}},
		{sql: "INSERT INTO orders (id, u) VALUES (?, ?)", rows: []bulkRow{{nil, 1}, {500, 2}, {0, 3}}, want: "1,1; 0,1; 2,1; last 1"},
		{sql: "INSERT INTO orders (u) VALUES (?), (?)", rows: []bulkRow{{1, 2}, {3, 4}}},
		{sql: "INSERT INTO orders (u) VALUES (?) ON DUPLICATE KEY UPDATE u = u + 100", rows: []bulkRow{{1}, {1}, {2}}, want: "1,1; 0,2; 3,1; last 1"},
		{sql: "REPLACE INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {2}}, setup: "INSERT INTO orders VALUES (7, 1)"},
		{sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {1}}, want: "ERROR 1062 (23000): Duplicate entry '1' for key 'u'; last 0"},
		{sql: "INSERT INTO orders (u) VALUES (?) RETURNING id", rows: []bulkRow{{1}, {2}}},
		{sql: "INSERT IGNORE INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {1}, {2}}, want: "1,1; 2,0; 3,1; last 1"},
		{sql: "INSERT IGNORE INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {2}}, setup: "INSERT INTO orders VALUES (7, 1)", want: "1,0; 2,1; last 2"},
		{sql: "INSERT IGNORE INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {1}}, setup: "INSERT INTO orders VALUES (7, 1)", want: "1,0; 2,0; last 0"},
		{
			sql: "INSERT INTO orders (u) VALUES (?)", rows: []bulkRow{{1}, {2}},
			setup: "CREATE TRIGGER logged AFTER INSERT ON orders FOR EACH ROW INSERT INTO log VALUES (NEW.u)", want: "0,1; 0,1; 0,1; 0,1; last 1",
		},
	}
	for _, caps := range []uint64{0, replay.MariaCacheMetadata, replay.MariaExtendedMetadata} {
		for _, tt := range cases {
			t.Run(fmt.Sprintf("%s, %d rows, %#x", tt.sql, len(tt.rows), caps), func(t *testing.T) {
				run := func(addr, db string) string {
					runTexts(t, server, db, "DROP TRIGGER IF EXISTS logged", "DELETE FROM orders")
					if tt.setup != "" {
						runTexts(t, server, db, tt.setup)
					}
					var lines []string
					assert.Must(t, replay.Do(func() {
						c := unitSession(addr, db, caps)
						defer c.Close()
						lines = unitResults(c, tt.sql, tt.rows...)
						lines = append(lines, "last "+lastInsertID(c))
					}))
					return fromOne(lines)
				}
				want, got := run(server.Addr, direct), run(proxy.Addr("a"), proxied)
				if tt.want != "" {
					want = tt.want
				}
				assert.True(t, got == want, "got %s, want %s", got, want)
			})
		}
	}
}

// fromOne joins lines and renumbers the ids that were generated, which are the greatest that are
// close to each other.
func fromOne(lines []string) string {
	var ids []uint64
	for _, line := range lines {
		var id, affected uint64
		if n, _ := fmt.Sscanf(line, "%d,%d", &id, &affected); n == 2 && id != 0 && id != 500 {
			ids = append(ids, id)
		}
		if n, _ := fmt.Sscanf(line, "last %d", &id); n == 1 && id != 0 {
			ids = append(ids, id)
		}
	}
	text := strings.Join(lines, "; ")
	if len(ids) == 0 {
		return text
	}
	slices.Sort(ids)
	first := ids[0]
	for _, id := range slices.Backward(slices.Compact(ids)) {
		text = strings.ReplaceAll(text, fmt.Sprint(id), fmt.Sprint(id-first+1))
	}
	return text
}

// lastInsertID asks for LAST_INSERT_ID().
func lastInsertID(c *replay.Conn) string {
	c.CommandText(mysql.COM_QUERY, "SELECT LAST_INSERT_ID()")
	if err := refusal(c.Packet()); err != nil {
		return err.Error()
	}
	c.Packet()
	row := c.Packet()
	c.Packet()
	return string(row[1:])
}

// runTexts runs statements directly on the server.
func runTexts(t *testing.T, server *servers.Server, db string, texts ...string) {
	t.Helper()
	conn := harness.Open(t, server.Config(db), "")
	for _, text := range texts {
		assert.Of(conn.ExecContext(t.Context(), text)).Must(t, text)
	}
}

// TestBulkGenes executes in bulk: each row has the gene of its own key, and what has none is
// refused as a whole.
func TestBulkGenes(t *testing.T) {
	server := harness.NewerMariaDB(t)
	db := harness.Database(t, server)
	proxy := harness.StartWith(t, server.Addr, "ids: {segment: {}}", `{table: "*.orders", column: id, source: ids, gene: {column: u, bits: 8, by: mod}}`)
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
