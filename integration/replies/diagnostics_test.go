package replies

import (
	"context"
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestQuestionsDoNotTouchDiagnostics looks at ROW_COUNT() in a text whose reading depends on
// settings that are not known, on a session that may send several statements in one text: nothing
// may be asked in front of it.
func TestQuestionsDoNotTouchDiagnostics(t *testing.T) {
	for _, s := range harness.Servers(t) {
		for _, rules := range []string{"[]", `[{table: "*.orders", column: id, source: ids}]`} {
			t.Run(fmt.Sprintf("%s, rules %s", s.Kind, rules), func(t *testing.T) {
				name := harness.Database(t, s)
				proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {}}}
rules:     %s
`, s.Addr, rules))
				c := s.Config(name)
				c.MultiStatements = true
				conn := assert.Of(harness.Open(t, c, proxy.Addr("a")).Conn(context.Background())).Must(t)
				defer conn.Close()
				for _, q := range []string{
					"CREATE TABLE t (id BIGINT PRIMARY KEY)", "SET SESSION sql_mode = DEFAULT", "INSERT INTO t VALUES (1), (2)",
				} {
					assert.Of(conn.ExecContext(t.Context(), q)).Must(t)
				}
				var count int
				var text string
				assert.Must(t, conn.QueryRowContext(t.Context(), `SELECT ROW_COUNT(), "x\""; SELECT 1`).Scan(&count, &text))
				assert.True(t, count == 2 && text == `x"`, "ROW_COUNT() is %d beside %q; want 2 beside x\"", count, text)
			})
		}
	}
}
