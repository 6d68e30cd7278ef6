package columns

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

// TestColumnGrants checks that a user who may not do what filling takes is told so: a column that a
// statement never names would be hard to find in the server's own words.
func TestColumnGrants(t *testing.T) {
	tests := []struct {
		name   string
		grants []string
		text   string
		code   uint16
		says   []string // in the error
	}{
		// First, while the proxy knows nothing of the table from another session.
		{"no SELECT", []string{"INSERT"}, "INSERT INTO t (a) VALUES (1)", 1142, []string{"SELECT command denied", "DB.t.id", "needs SELECT"}},
		{"SELECT of one column", []string{"SELECT (a)", "INSERT"}, "INSERT INTO t (a) VALUES (1)", 1143, []string{"SELECT command denied", "needs SELECT"}},
		{"all it takes", []string{"SELECT", "INSERT"}, "INSERT INTO t (a) VALUES (1)", 0, nil},
		{"the columns it takes", []string{"SELECT (id, a)", "INSERT (id, a)"}, "INSERT INTO t (a) VALUES (1)", 0, nil},
		{"INSERT of one column", []string{"SELECT", "INSERT (a)"}, "INSERT INTO t (a) VALUES (1)", 1143, []string{"INSERT command denied", "column 'id'", "idproxy writes the generated columns of DB.t"}},
		{"UPDATE of one column", []string{"SELECT", "INSERT", "UPDATE (a)"}, "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2", 1143, []string{"UPDATE command denied", "column 'id'", "UPDATE for ON DUPLICATE"}},
		{"nothing", []string{"SELECT"}, "INSERT INTO t (a) VALUES (1)", 1142, []string{"INSERT command denied"}},
	}
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		w := pair.New(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		direct := wireclient.Open(t, server.Addr, w.DB)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				user := fmt.Sprintf("grants%d", i)
				direct.Must(t, "CREATE USER "+user+" IDENTIFIED BY 'grants'")
				t.Cleanup(func() { direct.Must(t, "DROP USER "+user) })
				for _, grant := range tt.grants {
					direct.Must(t, w.Text("GRANT "+grant+" ON DB.t TO "+user))
				}
				s := wireclient.DialAs(t, w.Addr, user, w.DB)
				var got uint16
				replies := assert.Of(s.Query(tt.text)).Must(t)
				message := ""
				if e := replies[0].Err; e != nil {
					got, message = e.Code, e.Message
				}
				assert.True(t, got == tt.code, "error %d %s; want %d", got, message, tt.code)
				for _, says := range tt.says {
					assert.True(t, strings.Contains(message, w.Text(says)), "%q lacks %q", message, w.Text(says))
				}
			})
		}
		assert.Equal(t, "rows", direct.Value(t, "SELECT COUNT(*) FROM t WHERE id >= "+fmt.Sprint(pair.SourceStart)), "2")
	})
}
