package prepared

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// preparedWorld is a database whose table orders gets ids from a proxy, from 1000 on, and one
// session through that.
type preparedWorld struct {
	addr, db string
	conn     *sql.Conn
	proxy    *harness.Proxy
}

func openPrepared(t *testing.T, server *servers.Server) preparedWorld {
	t.Helper()
	name := harness.Database(t, server)
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 1000}}}
rules:     [{table: "*.orders", column: id, source: ids}]
`, server.Addr))
	conn := assert.Of(harness.Open(t, server.Config(name), proxy.Addr("a")).Conn(t.Context())).Must(t)
	t.Cleanup(func() { conn.Close() })
	for _, text := range []string{
		"CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, a VARCHAR(20))", "CREATE TABLE free (a BIGINT)",
	} {
		assert.Of(conn.ExecContext(t.Context(), text)).Must(t)
	}
	return preparedWorld{proxy.Addr("a"), name, conn, proxy}
}

// TestPrepared executes statements twice, with differing values: each execution gets ids of its
// own, and the client sees the parameters that are its own.
func TestPrepared(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) { testPrepared(t, openPrepared(t, server).conn) })
}

func testPrepared(t *testing.T, conn *sql.Conn) {
	for _, tt := range []struct {
		text string
		args [][]any
		want []int64 // insert ids, from 1000 on those that are generated
	}{
		{"INSERT INTO orders (u) VALUES (?)", [][]any{{1}, {nil}}, []int64{1000, 1001}},
		{"INSERT INTO orders (u, a) VALUES (?, ?), (?, 'x'), (NULL, ?)", [][]any{{1, "a", nil, "b"}, {nil, nil, 5, nil}}, []int64{1000, 1003}},
		{"INSERT INTO orders (id, u) VALUES (?, ?)", [][]any{{nil, 1}, {0, 2}, {7, 3}, {"0", 4}, {"00", 5}, {uint64(9), nil}}, []int64{1000, 1001, 7, 1002, 1003, 9}},
		{"INSERT INTO orders VALUES (?, ?, ?), (NULL, ?, ?)", [][]any{{nil, 1, nil, 2, nil}, {5, 3, nil, 4, nil}}, []int64{1000, 1002}},
		{"INSERT INTO orders (u) VALUES (1) ON DUPLICATE KEY UPDATE u = ?", [][]any{{2}, {2}, {3}}, []int64{1000, 1000, 1002}},
		{"INSERT IGNORE INTO orders (u) VALUES (?)", [][]any{{2}, {2}}, []int64{1000, 0}},
		{"INSERT INTO orders () VALUES ()", [][]any{{}, {}}, []int64{1000, 1001}},
		{"REPLACE INTO orders SET u = ?, a = ?", [][]any{{1, "a"}, {1, "b"}}, []int64{1000, 1001}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			assert.Of(conn.ExecContext(t.Context(), "DELETE FROM orders")).Must(t)
			st := assert.Of(conn.PrepareContext(t.Context(), tt.text)).Must(t)
			defer st.Close()
			var got []int64
			for _, args := range tt.args {
				got = append(got, executed(t, st, args))
			}
			first := got[0]
			for i := range got {
				if got[i] >= first {
					got[i] -= first - 1000
				}
			}
			assert.True(t, slices.Equal(got, tt.want), "insert ids %v, want %v", got, tt.want)
		})
	}
}

func executed(t *testing.T, st *sql.Stmt, args []any) int64 {
	t.Helper()
	result := assert.Of(st.ExecContext(context.Background(), args...)).Must(t)
	id := assert.Of(result.LastInsertId()).Must(t)
	return id
}

// TestPreparedSelectGainsColumn adds a column that a wildcard's rule names to the table of a
// prepared INSERT ... SELECT.
func TestPreparedSelectGainsColumn(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := harness.Database(t, server)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:     [{table: %[2]s.t, column: id, source: ids}, {table: "%[2]s.*", column: nr, source: ids}]
`, server.Addr, db))
		s := wireclient.Open(t, proxy.Addr("a"), db)
		s.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		for i := range 2 {
			if i > 0 {
				s.Must(t, "ALTER TABLE t ADD nr BIGINT NOT NULL DEFAULT 0")
			} else if replies, err := s.Prepare("p", "INSERT INTO t (a) SELECT ?"); err != nil || replies[0].Err != nil {
				t.Fatal(err, replies)
			}
			replies := assert.Of(s.Execute("p", wireclient.Execution{Args: []wireclient.Argument{wireclient.Long(1)}})).Must(t)
			e := replies[0].Err
			assert.True(t, e == nil, "execution %d: %v", i, e)
		}
		n := s.Value(t, "SELECT COUNT(*) FROM t WHERE nr = 0")
		assert.True(t, n == "1", "%s rows without a number went in, want the one of before", n)
	})
}
