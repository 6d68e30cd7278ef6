//go:build faultinject

package lease

import (
	"time"

	"idproxy/idsource/faults"
)

// hostClock is the clock by which leases end, moved by a test.
func hostClock() time.Duration { return sinceBoot() + faults.Mono() }

// hostTime is the wall clock of this host, moved by a test.
func hostTime() time.Time { return time.Now().Add(faults.Wall()) }
