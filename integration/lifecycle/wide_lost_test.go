package lifecycle

import (
	"fmt"
	"regexp"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/wireclient"
)

// TestWideLostReply loses the server behind an INSERT that it has committed, or has never seen: the
// client is told ids, as SQL, that find the rows or show that there are none.
func TestWideLostReply(t *testing.T) {
	named := regexp.MustCompile(`ids (X?'[0-9a-f-]+') to (X?'[0-9a-f-]+') were assigned in (\S+):`)
	server := harness.MariaDB(t)
	for _, kind := range []string{"CHAR(36)", "BINARY(16)"} {
		db := harness.Database(t, server)
		direct := wireclient.Open(t, server.Addr, db)
		direct.Must(t, "CREATE TABLE t (pid "+kind+" PRIMARY KEY, a INT)")
		r := startRelay(t, server.Addr)
		proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {public_id: {uuidv7: {}}}
rules: [{table: %s.t, column: pid, source: public_id}]
`, r.addr, db))
		for fault, want := range map[fault]string{loseRequest: "0", loseReply: "3"} {
			r.fault.Store(uint32(noFault))
			s := wireclient.Open(t, proxy.Addr("a"), db)
			s.Must(t, "INSERT INTO t (a) VALUES (0)")
			e := loseDuring(t, r, s, fault)
			m := named.FindStringSubmatch(e.Message)
			assert.MustTrue(t, e.Code == 1158 && m != nil && m[3] == db+".t", "%s: %v", kind, e)
			if got := direct.Value(t, "SELECT COUNT(*) FROM t WHERE pid BETWEEN "+m[1]+" AND "+m[2]); got != want {
				t.Errorf("%s: %s rows with the ids %s to %s, want %s", kind, got, m[1], m[2], want)
			}
		}
	}
}
