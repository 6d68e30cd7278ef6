package snowflake

import (
	"errors"
	"time"

	"idproxy/idsource"
)

// Standing implements Source.
func (s *Snowflake) Standing() idsource.Standing {
	failed, closed := s.outlook.state()
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
		}
	}
	now.Of = stand
	return now
}

// between is the time from one unit to another; it may be below zero.
func (s *Snowflake) between(from, to uint64) time.Duration {
	if to < from {
		return -s.time.duration(from - to)
	}
	return s.time.duration(to - from)
}
