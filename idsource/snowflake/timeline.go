package snowflake

import (
	"math"
	"sync/atomic"
	"time"
)

// Clock is what a Snowflake knows of the time. The two readings move apart
// when someone sets the wall clock.
type Clock struct {
	Wall func() int64         // nanoseconds since 1970
	Mono func() time.Duration // since any moment; never goes back
}

// reading is a pair of clock readings taken together.
type reading struct {
	wall int64
	mono time.Duration
}

// timeline is the time that ids carry: units since an epoch. It is the host's, or with a pool the
// pool's, carried on by the host's monotonic clock, so that nobody can set it.
type timeline struct {
	host  Clock
	epoch int64 // nanoseconds since 1970
	unit  time.Duration
	base  atomic.Pointer[reading] // with a pool: where its clock stood
}

// now is the time in units.
func (t *timeline) now() uint64 { return t.units(t.wall()) }

// mono is the host's monotonic clock.
func (t *timeline) mono() time.Duration { return t.host.Mono() }

// wall is the time in nanoseconds since 1970.
func (t *timeline) wall() int64 {
	if b := t.base.Load(); b != nil {
		return b.wall + int64(t.host.Mono()-b.mono)
	}
	return t.host.Wall()
}

// units is a time in nanoseconds since 1970 as units since the epoch.
func (t *timeline) units(wall int64) uint64 {
	d := wall - t.epoch
	switch {
	case d < 0:
		return 0
	case t.unit == time.Millisecond: // divided by a constant, far quicker
		return uint64(d) / uint64(time.Millisecond)
	}
	return uint64(d) / uint64(t.unit)
}

// duration is a number of units as time, or the longest time there is.
func (t *timeline) duration(units uint64) time.Duration {
	if units > uint64(math.MaxInt64/t.unit) {
		return math.MaxInt64
	}
	return time.Duration(units) * t.unit
}

// millis is the last millisecond of a unit, since 1970.
func (t *timeline) millis(ts uint64) int64 {
	return t.epoch/int64(time.Millisecond) + int64(ts+1)*t.unit.Milliseconds() - 1
}

// follow sets the clock by a reading of the pool's, in milliseconds since 1970, that may be too low
// by late. Within that the clock is not moved: it would go back and forth.
func (t *timeline) follow(now int64, late time.Duration) {
	at := reading{wall: now * int64(time.Millisecond), mono: t.host.Mono()}
	if t.base.Load() != nil {
		// A millisecond is what the reading was rounded by.
		at.wall = min(max(t.wall(), at.wall), at.wall+int64(late+time.Millisecond))
	}
	t.base.Store(&at)
}
