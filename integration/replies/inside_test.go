package replies

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestInsideStaysInside has a store be down, and a listener's account have another password:
// clients are told neither hosts nor accounts, but a reference that the log has with all of it.
func TestInsideStaysInside(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, s *servers.Server) {
		t.Parallel()
		name := harness.Database(t, s)
		store := harness.StartServer(t, servers.MariaDB, servers.Options{})
		storeDB := harness.Database(t, store)
		direct := harness.Open(t, s.Config(name), "")
		harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
		harness.MustExec(t, direct, "CREATE TABLE u (id BIGINT PRIMARY KEY, a INT)")
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %[1]q, account: {user: secretly, password: wrong}}
  - {name: b, listen: "127.0.0.1:0", upstream: %[1]q}
stores:    {main: {mysql: {dsn: %[2]q}}}
sources:   {order_id: {segment: {store: main}}, near_id: {segment: {}}}
rules:
  - {table: %[3]s.t, column: id, source: order_id, listeners: [b]}
  - {table: %[3]s.u, column: id, source: near_id, listeners: [a]}
`, s.Addr, harness.StoreDSN(store, storeDB), name))
		assert.Must(t, store.Kill())
		for table, log := range map[string]string{"t": store.Addr, "u": "secretly"} {
			db := harness.Open(t, s.Config(name), proxy.Addr(map[string]string{"t": "b", "u": "a"}[table]))
			_, err := db.Exec("INSERT INTO " + table + " (a) VALUES (1)")
			harness.WantError(t, err, 1467, "the log of idproxy says why", name+"."+table+".id")
			text := fmt.Sprint(err)
			reference := regexp.MustCompile(`reference ([0-9a-f]{8})`).FindStringSubmatch(text)
			assert.MustTrue(t, reference != nil && !strings.Contains(text, "secretly") && !strings.Contains(text, "127.0.0.1") && !strings.Contains(text, "tcp"), "the client is told %q", text)
			line := regexp.MustCompile(`.*statement refused.*reference=` + reference[1] + `.*`).FindString(proxy.Log())
			if !strings.Contains(line, log) {
				t.Errorf("reference %s is in the log as %q, want %q in it", reference[1], line, log)
			}
		}
	})
}
