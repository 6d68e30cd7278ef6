package snowflake

import (
	"sync/atomic"
	"time"
)

// processStart is only the zero of the monotonic clock.
var processStart = time.Now()

// carry is how much later a carriedWall notices that the clock was set.
const carry = time.Millisecond

// carriedWall is the wall clock, carried on by the monotonic one, which takes
// half the time to read.
type carriedWall struct {
	offset atomic.Int64 // of the wall clock to the monotonic one, nanoseconds
	until  atomic.Int64 // the offset is read anew when the monotonic clock stands here
}

// read returns nanoseconds since 1970.
func (c *carriedWall) read() int64 {
	if mono := int64(time.Since(processStart)); mono < c.until.Load() {
		return mono + c.offset.Load()
	}
	now := time.Now()
	wall, mono := now.UnixNano(), int64(now.Sub(processStart))
	// In this order: whoever sees the new bound sees the new offset, or a later one.
	c.offset.Store(wall - mono)
	c.until.Store(mono + int64(carry))
	return wall
}
