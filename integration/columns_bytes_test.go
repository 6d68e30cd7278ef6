package integration

import (
	"fmt"
	"testing"

	"idproxy/integration/harness"
)

// TestGreatestOverBytes has a session whose character sets are binary compare ids that are text with their source.
func TestGreatestOverBytes(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := harness.Database(t, server)
			direct := openSession(t, server.Addr, db)
			direct.must(t, "CREATE TABLE c (id CHAR(20) CHARACTER SET utf8mb4, a INT)", "INSERT INTO c VALUES ('7',0),('10',0),('x',0)")
			proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources:   {ids: {segment: {start: 11}}}
rules:     [{table: %[2]s.c, column: id, source: ids}]
`, server.Addr, db))
			s := openSession(t, proxy.Addr("a"), db)
			s.must(t, "SET NAMES binary", "INSERT INTO c (a) VALUES (1)")
			if id := direct.value(t, "SELECT id FROM c WHERE a=1"); id != "11" {
				t.Errorf("id %s, want 11", id)
			}
		})
	}
}
