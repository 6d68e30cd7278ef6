//go:build faultinject

package etcd

import (
	"time"

	"idproxy/idsource/faults"
)

// hostClock is the clock of this host, moved by a test.
func hostClock() time.Time { return time.Now().Add(faults.Wall()) }
