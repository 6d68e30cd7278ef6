//go:build faultinject

package lease

import (
	"time"

	"idproxy/idsource/faults"
)

// SinceBoot is the clock by which leases end, moved by a test.
func SinceBoot() time.Duration { return sinceBoot() + faults.Mono() }

// hostTime is the wall clock of this host, moved by a test.
func hostTime() time.Time { return time.Now().Add(faults.Wall()) }
