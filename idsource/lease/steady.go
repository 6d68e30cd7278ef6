package lease

import (
	"sync"
	"time"
)

const (
	// jump is how far a wall clock may run ahead of the monotonic one between
	// two readings.
	jump = Skew
	// confirm is how long a wall clock that jumped ahead must stay there before it
	// is believed.
	confirm = time.Second
)

// HostClock returns a clock of this host, for stores that have none.
func HostClock() func() time.Time { return Steady(hostTime, SinceBoot) }

// Steady returns a clock of a host, made of its wall clock and one that nobody can set. It follows
// a wall clock that is set back at once and one that jumps ahead after a second: one reading that
// is put right at once must not carry the fence of a number into a future in which nobody can use
// it.
func Steady(wall func() time.Time, mono func() time.Duration) func() time.Time {
	s := &steady{wall: wall, mono: mono}
	return s.now
}

// steady is a clock of a host that does not follow it at once.
type steady struct {
	wall func() time.Time
	mono func() time.Duration

	mu     sync.Mutex
	last   time.Time     // the last reading that was believed; zero: none yet
	at     time.Duration // when that was
	jumped time.Duration // when a jump was first seen
	doubts bool
}

func (s *steady) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	mono, wall := s.mono(), s.wall() // in this order a pause between them looks like a jump that is over at once
	expected := s.last.Add(mono - s.at)
	if !s.last.IsZero() && wall.Sub(expected) > jump {
		if !s.doubts {
			s.doubts, s.jumped = true, mono
		}
		if mono-s.jumped < confirm {
			return expected
		}
	}
	s.last, s.at, s.doubts = wall.Round(0), mono, false
	return s.last
}
