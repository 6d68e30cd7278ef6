package integration

import (
	"fmt"
	"regexp"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// wideProxy starts a proxy that fills columns of UUIDs and ObjectIds.
func wideProxy(t *testing.T, server *servers.Server, db string) string {
	t.Helper()
	return harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
sources: {public_id: {uuidv7: {}}, doc_id: {objectid: {}}, ids: {segment: {}}}
rules:
  - {table: "%[2]s.*", column: pid, source: public_id}
  - {table: "%[2]s.*", column: oid, source: doc_id}
  - {table: "%[2]s.*", column: id, source: ids}
`, server.Addr, db)).Addr("a")
}

var uuidText = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestWide(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := harness.Database(t, server)
			plain := openSession(t, server.Addr, db)
			plain.must(t, "CREATE TABLE t (pid CHAR(36) PRIMARY KEY, a INT)")
			s := openSession(t, wideProxy(t, server, db), db)
			s.must(t, "INSERT INTO t (a) VALUES (1)", "INSERT INTO t VALUES (NULL,2), (DEFAULT,3), ('own',4)", "INSERT INTO t SET a=5")
			for _, v := range []string{"1", "2", "3", "5"} {
				if id := plain.value(t, "SELECT pid FROM t WHERE a="+v); !uuidText.MatchString(id) {
					t.Errorf("%s: %q", v, id)
				}
			}
		})
	}
}
