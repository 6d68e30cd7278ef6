//go:build !faultinject

package lease

import "time"

// hostClock is the clock by which leases end.
func hostClock() time.Duration { return sinceBoot() }

// hostTime is the wall clock of this host.
func hostTime() time.Time { return time.Now() }
