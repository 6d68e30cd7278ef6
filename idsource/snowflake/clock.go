//go:build !faultinject

package snowflake

import "time"

// hostClock is the clock of this host.
func hostClock() Clock {
	return Clock{
		Wall: new(carriedWall).read,
		Mono: func() time.Duration { return time.Since(processStart) },
	}
}
