//go:build !faultinject

package snowflake

import "time"

// fenceOff is a negative control that this build does not have.
const fenceOff = false

// hostClock is the clock of this host.
func hostClock() clock {
	return clock{
		wall: new(carriedWall).read,
		mono: func() time.Duration { return time.Since(processStart) },
	}
}
