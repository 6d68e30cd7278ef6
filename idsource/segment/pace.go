package segment

import (
	"time"

	"idproxy/idsource"
)

// pace is how fast ids go and how long a fetch takes, and says what ranges are asked for. It is
// measured when they are, so that taking an id costs nothing more.
type pace struct {
	policy      StepPolicy
	least, most uint64    // bounds of the step
	step        uint64    // of the last range
	fetched     time.Time // when it came; zero: none yet

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

// came notes a range of n ids, with what step it was asked for and how long that took. Like the
// rate, the time falls slowly.
func (p *pace) came(n, step uint64, took time.Duration) {
	p.given += n
	p.step, p.fetched = step, time.Now()
	p.fetch = max(took, p.fetch-p.fetch/8)
}

// lead is how many ids are to be in memory when the next range is asked for: those that are used
// up while it is fetched.
func (p *pace) lead() uint64 {
	used := uint64(p.rate * min(3*p.fetch+paceReserve, idsource.DefaultWait).Seconds())
	return min(used, paceChain*p.step, p.most)
}

// short reports whether held ids are used up before the next range can be there.
func (p *pace) short(held uint64) bool {
	lead := p.lead()
	return lead > 0 && held < lead
}

// byRate is the size of a range that lasts about paceRange. It moves by a factor
// of two at most, and down only when it was too large for a while.
func (p *pace) byRate() uint64 {
	if p.rate == 0 {
		return p.step
	}
	want := uint64(min(p.rate*paceRange.Seconds(), float64(p.most)))
	switch {
	case want > p.step:
		p.slow = 0
		return min(want, 2*p.step, p.most)
	case want >= p.step/2:
		p.slow = 0
		return p.step
	}
	if p.slow++; p.slow < paceSlow {
		return p.step
	}
	p.slow = 0
	return max(p.step/2, p.least)
}

// Leaf's bounds: a step that lasted less than short was too small, one that
// lasted more than long was too large.
const (
	leafShort = 15 * time.Minute
	leafLong  = 30 * time.Minute
)

// next is the size of the next range by how long the last one lasted, or by
// how fast ids go.
func (p *pace) next(now time.Time, failing bool) uint64 {
	switch {
	case p.policy == StepFixed || p.fetched.IsZero() || failing: // an outage is no low demand
		return p.step
	case p.policy == StepRate:
		return p.byRate()
	}
	switch lasted := now.Sub(p.fetched); {
	case lasted < leafShort:
		return min(2*p.step, p.most)
	case lasted > leafLong:
		return max(p.step/2, p.least)
	}
	return p.step
}
