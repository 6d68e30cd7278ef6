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

// Filling is the configuration of a proxy whose listener a fills ids. Sources and rules are YAML,
// without the braces and brackets around them.
func Filling(upstream, sources, rules string) string {
	return fmt.Sprintf("%ssources: {%s}\nrules: [%s]\n", OneListener(upstream), sources, rules)
}

// FreeAddr is [servers.FreeAddr]: an address that nobody listens on.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	addr := assert.Of(servers.FreeAddr()).Must(tb)
	return addr
}
