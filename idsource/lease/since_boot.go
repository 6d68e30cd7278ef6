package lease

import "time"

// SinceBoot is the clock by which leases end: steady, and it goes on while the host sleeps.
func SinceBoot() time.Duration { return hostClock() }
