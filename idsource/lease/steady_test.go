package lease

import (
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestHostClock moves the two clocks of a host apart.
func TestHostClock(t *testing.T) {
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var off, mono time.Duration
	s := &steady{wall: func() time.Time { return began.Add(mono + off) }, mono: func() time.Duration { return mono }}
	for _, tt := range []struct {
		name string
		at   time.Duration // on the monotonic clock
		off  time.Duration // of the wall clock
		want time.Duration
	}{
		{"first", 0, 0, 0},
		{"as time passes", 2 * time.Second, 0, 0},
		{"a little ahead", 3 * time.Second, 900 * time.Millisecond, 900 * time.Millisecond},
		{"an hour ahead", 4 * time.Second, time.Hour, 900 * time.Millisecond},
		{"still, a moment later", 4900 * time.Millisecond, time.Hour, 900 * time.Millisecond},
		{"put right", 5500 * time.Millisecond, 0, 0},
		{"ahead again", 6 * time.Second, time.Hour, 0},
		{"for a second", 7 * time.Second, time.Hour, time.Hour},
		{"goes on there", 7100 * time.Millisecond, time.Hour, time.Hour},
		{"back", 7200 * time.Millisecond, -time.Hour, -time.Hour},
		{"back again is ahead", 7300 * time.Millisecond, 0, -time.Hour},
	} {
		mono, off = tt.at, tt.off
		assert.Equal(t, tt.name+": the clock is off by", s.now().Sub(began.Add(tt.at)), tt.want)
	}
}
