package clients

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestLargeIDs shows what the drivers of Node.js make of ids above 2^53, as docs/clients.md has it.
func TestLargeIDs(t *testing.T) {
	s := plainSite(t, harness.MariaDB(t))
	s.proxy = harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
sources: {orders: {segment: {start: 9007199254740993}}}
rules: [{table: %s.orders, column: id, source: orders}]
`, s.server.Addr, s.db))
	s.addr = s.proxy.Addr("a")
	const want = `
mysql2: insert id string and string, in a result number (wrong)
mysql2, supportBigNumbers: insert id string and string, in a result string
mariadb: insert id bigint and bigint, in a result bigint
mariadb, insertIdAsNumber: insert id number (wrong) and number, in a result bigint
mariadb, bigIntAsNumber: insert id bigint and bigint, in a result number (wrong)
`
	output, _, _ := strings.Cut(s.run(t, client{name: "large ids", command: node(t, "node/large.js")}), "commands ")
	assert.Equal(t, "large ids are shown as", "\n"+output, want)
}
