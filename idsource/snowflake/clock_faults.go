//go:build faultinject

package snowflake

import (
	"time"

	"idproxy/idsource/faults"
)

// hostClock is the clock of this host, moved by a test.
func hostClock() Clock {
	wall := new(carriedWall)
	return Clock{
		Wall: func() int64 { return wall.read() + int64(faults.Wall()) },
		Mono: func() time.Duration { return time.Since(processStart) + faults.Mono() },
	}
}
