//go:build faultinject

package snowflake

import (
	"time"

	"idproxy/idsource/faults"
)

// hostClock is the clock of this host, moved by a test.
func hostClock() clock {
	wall := new(carriedWall)
	return clock{
		wall: func() int64 { return wall.read() + int64(faults.Wall()) },
		mono: func() time.Duration { return time.Since(processStart) + faults.Mono() },
	}
}
