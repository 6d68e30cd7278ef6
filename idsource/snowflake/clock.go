//go:build !faultinject

package snowflake

import "time"

// hostClock is the clock of this host.
func hostClock() clock {
	return clock{
		wall: new(carriedWall).read,
		mono: func() time.Duration { return time.Since(processStart) },
	}
}
