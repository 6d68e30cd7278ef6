package ids

import (
	"database/sql"
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestLayoutNotConsecutive fills ids that are not consecutive, since their sequence stands above
// the worker number: rows get ids of their own, ascending in row order, and the insert id is that
// of the first one.
func TestLayoutNotConsecutive(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		name := harness.Database(t, s)
		direct := harness.Open(t, s.Config(name), "")
		harness.MustExec(t, direct, "CREATE TABLE a (id BIGINT PRIMARY KEY, n INT)")
		harness.MustExec(t, direct, "CREATE TABLE b (id BIGINT PRIMARY KEY, n INT)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {snowflake: {worker: 7, layout: 39x10ms/8seq/16worker}}}
rules:     [{table: "%s.*", column: id, source: ids}]
`, s.Addr, name))
		db := harness.Open(t, s.Config(name), proxy.Addr("a"))
		db.SetMaxOpenConns(1)
		for i, insert := range []func() (first int64){
			func() int64 { return lastID(t, db, "INSERT INTO a (n) VALUES (0), (1), (2), (3)") },
			func() int64 { return lastID(t, db, "INSERT INTO a (n) VALUES (?), (?), (?), (?)", 0, 1, 2, 3) },
			func() int64 {
				harness.MustExec(t, db, "SET auto_increment_increment = 5")
				return lastID(t, db, "INSERT INTO a (id, n) VALUES (NULL, 0), (DEFAULT, 1), (0, 2), (NULL, 3)")
			},
		} {
			first := insert()
			var ids []int64
			rows := assert.Of(direct.Query("SELECT id FROM a WHERE id >= ? ORDER BY n", first)).Must(t)
			for rows.Next() {
				var id int64
				assert.Must(t, rows.Scan(&id))
				ids = append(ids, id)
			}
			assert.Must(t, rows.Err())
			assert.MustTrue(t, len(ids) == 4 && ids[0] == first, "insert %d: ids %d, the insert id is %d", i, ids, first)
			for k := range 3 {
				assert.True(t, ids[k+1] > ids[k] && ids[k+1] != ids[k]+1 && ids[k]%65536 == 7, "insert %d: ids %d", i, ids)
			}
		}
		harness.MustExec(t, db, "INSERT INTO b (n) SELECT x.n FROM a x, a y, a z")
		var count, workers int
		assert.Must(t, direct.QueryRow("SELECT COUNT(*), COUNT(DISTINCT id % 65536) FROM b").Scan(&count, &workers))
		assert.True(t, count == 12*12*12 && workers == 1, "%d rows of %d workers, want %d of one", count, workers, 12*12*12)
	})
}

// lastID inserts and returns the insert id.
func lastID(t *testing.T, db *sql.DB, text string, args ...any) int64 {
	t.Helper()
	r := assert.Of(db.Exec(text, args...)).Must(t, text)
	id := assert.Of(r.LastInsertId()).Must(t)
	return id
}
