package harness

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// OneListener is the configuration of a proxy that only relays, listener a.
func OneListener(upstream string) string {
	return fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q}]\n", upstream)
}

// OneListenerWith is the configuration of a proxy whose listener a fills ids. Sources and rules are YAML,
// without the braces and brackets around them.
func OneListenerWith(upstream, sources, rules string) string {
	return fmt.Sprintf("%ssources: {%s}\nrules: [%s]\n", OneListener(upstream), sources, rules)
}

// OneRule is the source and the rule that give column id of a table its ids.
func OneRule(table string) string {
	return "sources: {ids: {segment: {}}}\nrules: [{table: '" + table + "', column: id, source: ids}]\n"
}

// FreeAddr is [servers.FreeAddr]: an address that nobody listens on.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	addr := assert.Of(servers.FreeAddr()).Must(tb)
	return addr
}
