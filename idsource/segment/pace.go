package segment

import (
	"time"

	"idproxy/idsource"
)

// pace is how fast ids go and how long a fetch takes. It is measured when
// ranges are asked for, so that taking an id costs nothing more.
type pace struct {
	given uint64    // ids of all ranges that came
	taken uint64    // ids that were gone at the last measure
	at    time.Time // of the last measure; zero: none yet
	rate  float64   // ids a second
	fetch time.Duration
	slow  int // ranges in a row that were more than twice too large
}

// How the pace is measured and used.
const (
	paceShortest = 100 * time.Millisecond // measured over less, a burst of one statement looks like a flood
	paceMemory   = 30 * time.Second       // how long a burst is remembered
	paceReserve  = 50 * time.Millisecond  // besides three fetches, ids for this long are in memory
	paceRange    = time.Minute            // how long one range should last under StepRate
	paceSlow     = 3                      // ranges too large before the step shrinks
	paceChain    = 16                     // how many steps may be held, however fast they go
)

// measure notes how many ids are gone by now. The rate follows a rise at once
// and a fall within paceMemory.
func (p *pace) measure(now time.Time, held uint64) {
	taken := p.given - held
	if p.at.IsZero() {
		p.at, p.taken = now, taken
		return
	}
	lasted := now.Sub(p.at)
	if lasted < paceShortest {
		return
	}
	rate := float64(max(taken, p.taken)-p.taken) / lasted.Seconds() // fewer are gone where some came back
	if rate < p.rate {
		share := min(1, lasted.Seconds()/paceMemory.Seconds())
		rate = p.rate + (rate-p.rate)*share
	}
	p.rate, p.at, p.taken = rate, now, taken
}

// took notes how long a fetch took. Like the rate, it falls slowly.
func (p *pace) took(d time.Duration) { p.fetch = max(d, p.fetch-p.fetch/8) }

// lead is how many ids are used up while the next range is fetched.
func (p *pace) lead() uint64 {
	return uint64(p.rate * min(3*p.fetch+paceReserve, idsource.DefaultWait).Seconds())
}

// step is the size of a range that lasts about paceRange. It moves by a factor
// of two at most, and down only when it was too large for a while.
func (p *pace) step(last uint64, c *Config) uint64 {
	if p.rate == 0 {
		return last
	}
	want := uint64(min(p.rate*paceRange.Seconds(), float64(c.MaxStep)))
	switch {
	case want > last:
		p.slow = 0
		return min(want, 2*last, c.MaxStep)
	case want >= last/2:
		p.slow = 0
		return last
	}
	if p.slow++; p.slow < paceSlow {
		return last
	}
	p.slow = 0
	return max(last/2, c.Step)
}

// held counts the ids in memory. The caller holds mu.
func (s *Segment) held() (n uint64) {
	for b := s.head.Load(); b != nil; b = b.next {
		n += b.left()
	}
	return n
}

// lead is how many ids are to be in memory when the next range is asked for,
// by the rate alone. The caller holds mu.
func (s *Segment) lead() uint64 {
	if s.noPace {
		return 0
	}
	return min(s.pace.lead(), paceChain*s.step, s.cfg.MaxStep)
}

// short says whether the ids in memory are used up before the next range can
// be there. The caller holds mu.
func (s *Segment) short() bool {
	lead := s.lead()
	return lead > 0 && s.held() < lead
}
