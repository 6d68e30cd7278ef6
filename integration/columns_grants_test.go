package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
)

// TestColumnGrants checks that a user who may not do what filling takes is told so: a column that a statement never names
// would be hard to find in the server's own words.
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
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			w := newNameWorld(t, server, "[{table: DB.t, column: id, source: ids}]", "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
			direct := openSession(t, server.Addr, w.db)
			for i, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					user := fmt.Sprintf("grants%d", i)
					direct.must(t, "CREATE USER "+user+" IDENTIFIED BY 'grants'")
					t.Cleanup(func() { direct.must(t, "DROP USER "+user) })
					for _, grant := range tt.grants {
						direct.must(t, w.text("GRANT "+grant+" ON DB.t TO "+user))
					}
					s := dialAs(t, w.addr, user, w.db)
					var got uint16
					replies, err := s.query(tt.text)
					if err != nil {
						t.Fatal(err)
					}
					message := ""
					if e := replies[0].err; e != nil {
						got, message = e.Code, e.Message
					}
					if got != tt.code {
						t.Errorf("error %d %s; want %d", got, message, tt.code)
					}
					for _, says := range tt.says {
						if !strings.Contains(message, w.text(says)) {
							t.Errorf("%q lacks %q", message, w.text(says))
						}
					}
				})
			}
			if n := direct.value(t, "SELECT COUNT(*) FROM t WHERE id >= "+fmt.Sprint(nameSource)); n != "2" {
				t.Errorf("%s rows; want 2", n)
			}
		})
	}
}

// dialAs logs in as a user of the test's own.
func dialAs(t *testing.T, addr, user, db string) *rawSession {
	t.Helper()
	conn, err := client.Connect(addr, user, "grants", db, func(c *client.Conn) error {
		c.UnsetCapability(mysql.CLIENT_QUERY_ATTRIBUTES | mysql.CLIENT_DEPRECATE_EOF)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &rawSession{conn: conn}
	t.Cleanup(s.close)
	return s
}
