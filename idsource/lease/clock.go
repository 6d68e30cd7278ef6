//go:build !faultinject

package lease

import "time"

// SinceBoot is the clock by which leases end: nobody can set it, and it goes on while the host sleeps.
func SinceBoot() time.Duration { return sinceBoot() }

// hostTime is the wall clock of this host.
func hostTime() time.Time { return time.Now() }
