//go:build !faultinject

package idsource

import "time"

// These are negative controls that this build does not have.
const (
	fenceOff = false
	beginOff = false
)

// hostClock is the clock of this host.
func hostClock() clock {
	return clock{
		wall: new(carriedWall).read,
		mono: func() time.Duration { return time.Since(processStart) },
	}
}
