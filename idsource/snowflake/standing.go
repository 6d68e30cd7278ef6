package snowflake

import (
	"errors"
	"time"

	"idproxy/idsource"
)

// Standing implements Source.
func (s *Snowflake) Standing() idsource.Standing {
	failed, closed := s.outlook.state()
	if s.anotherOnes(failed) {
		failed = nil
	}
	stand := idsource.SnowflakeStand{Ends: s.layout.End(s.cfg.Epoch), Swaps: s.fresh.Load()}
	if stand.Swaps > 0 {
		stand.Swaps--
	}
	now := idsource.Standing{Issued: s.Given()}
	if !resting(failed) {
		now.Failing = failed
	}
	g := s.words.grant.Load()
	switch {
	case closed:
		now.Problem = s.fail(idsource.Closed, nil, "")
	case g == nil && failed != nil:
		now.Problem = failed
	case g == nil && s.turns.Load(): // it has one when it needs it
	case g == nil:
		now.Problem = s.fail(idsource.NotReady, errors.New("it has no worker number yet"), "")
	default:
		units := s.time.now()
		stand.Held, stand.Worker = true, g.worker
		stand.Fence = s.between(units, g.fence)
		if last := s.words.last.Load() >> s.layout.Sequence; last > units {
			stand.Ahead = s.between(units, last)
		}
		if stand.Fence <= 0 {
			now.Problem = s.fail(idsource.Fenced, failed, "")
		} else {
			now.Problem = s.stuck(g, units)
		}
	}
	now.Of = stand
	return now
}

// stuck says why an INSERT that came now would fail, although the source holds its number: the clock
// went back by more than INSERTs wait, or the layout has no timestamps left. It is nil otherwise.
func (s *Snowflake) stuck(g *grant, units uint64) error {
	why, lack := s.words.outlook(g, units)
	long := s.time.duration(lack) > s.outlook.patience.Limit()
	switch {
	case why == spent, why == tooFar && long, why == clockBack && long && s.cfg.ClockBack == BackError:
		return s.refuse(why, lack)
	}
	return nil
}

// between is the time from one unit to another; it may be below zero.
func (s *Snowflake) between(from, to uint64) time.Duration {
	if to < from {
		return -s.time.duration(from - to)
	}
	return s.time.duration(to - from)
}
