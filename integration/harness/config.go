package harness

import (
	"fmt"
)

// OneListener is the configuration of a proxy that only relays, listener a.
func OneListener(upstream string) string {
	return fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q}]\n", upstream)
}
