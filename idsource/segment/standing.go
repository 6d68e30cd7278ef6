package segment

import (
	"math"
	"time"

	"idproxy/idsource"
)

// Standing implements Source.
func (s *Segment) Standing() idsource.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.chain.held()
	stand := idsource.SegmentStand{
		Left: held, RangeSize: s.pace.step, Next: s.high, Last: s.cfg.Last, Fetches: s.ranges, Failed: s.refused,
		PerSecond: s.meter.measure(time.Now(), s.pace.given-held),
		Ends:      s.taken.lasts(time.Now(), s.high-held, s.cfg.Last),
	}
	if s.ranges > 0 {
		stand.Series = 1
	}
	now := idsource.Standing{Issued: s.Given(), Failing: s.failed, Of: stand}
	switch ended := s.ended(); {
	case ended != nil:
		now.Problem = ended
	case held == 0 && s.failed != nil:
		now.Problem = s.storeDown(s.failed)
	}
	return now
}

// Standing implements Source. What is in memory is that of the series that runs dry first. The
// source has a problem where one of its series has that gave ids, or where none did: sessions of other
// tables go on without a series that is about to begin.
func (p *PerTable) Standing() (all idsource.Standing) {
	sum, soonest := idsource.SegmentStand{Last: p.cfg.Last, Ends: math.Inf(1)}, math.Inf(1)
	var begins error
	for _, s := range *p.series.Load() {
		one := s.Standing()
		stand, _ := one.Of.(idsource.SegmentStand)
		all.Issued += one.Issued
		switch {
		case one.Problem == nil:
		case stand.Series > 0:
			all.Problem = one.Problem
		default:
			begins = one.Problem
		}
		if one.Failing != nil {
			all.Failing = one.Failing
		}
		sum.Series += stand.Series
		sum.Fetches += stand.Fetches
		sum.Failed += stand.Failed
		sum.Next = max(sum.Next, stand.Next)
		sum.Ends = min(sum.Ends, stand.Ends)
		if last := float64(stand.Left) / stand.PerSecond; stand.Series > 0 && (sum.Series == 1 || last < soonest) {
			sum.Left, sum.PerSecond, sum.RangeSize = stand.Left, stand.PerSecond, stand.RangeSize
			if last < soonest { // not where neither is drawn from
				soonest = last
			}
		}
	}
	if sum.Series == 0 && all.Problem == nil {
		all.Problem = begins
	}
	all.Of = sum
	return all
}
