package snowflake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/idsource"
)

// await claims as soon as that is possible. It is a function of its own because its closure
// goes to the heap, which Fill must not.
func (s *Snowflake) await(ctx context.Context, n, stride uint64) (first, worker uint64, err error) {
	err = s.wait(ctx, func() (why stall, lack uint64) {
		first, worker, why, lack = s.words.claim(n, stride)
		return why, lack
	})
	return first, worker, err
}

// wait tries again each time that an obstacle may have gone, until Wait or the patience with the
// store is over. It refuses at once when no obstacle can go in time.
func (s *Snowflake) wait(ctx context.Context, try func() (stall, uint64)) error {
	started, most := s.time.mono(), s.outlook.patience.Limit()
	limit := time.NewTimer(most)
	defer limit.Stop()
	var t idsource.Turn // of a wait for the store
	defer func() { t.End() }()
	for {
		changed, later, hopeless := s.outlook.watch()
		// The try comes behind watch, so that no change falls in between.
		why, lack := try()
		if why == flows {
			return nil
		}
		waited := s.time.mono() - started
		need := s.time.duration(lack)
		if why == noGrant {
			need = max(need, later-s.time.mono())
		}
		if need <= 0 && t.Of == nil && (why == noGrant || why == atFence) {
			var ok bool
			if t, ok = s.outlook.patience.Begin(); !ok {
				return s.refuse(why, lack)
			}
			most = min(most, waited+t.Most)
			limit.Reset(most - waited)
		}
		if why == clockBack && s.cfg.ClockBack == BackSwap && !hopeless {
			s.swapNow(fmt.Sprintf("the clock of the pool went back, the next id would have to wait for %v", need))
			need = 0
		}
		if hopeless || why == spent || need > most-waited {
			return s.refuse(why, lack)
		}
		if why == atFence || why == noGrant && s.turns.Load() {
			s.renewNow()
		}
		var caughtUp <-chan time.Time
		if need > 0 {
			caughtUp = time.After(need)
		}
		select {
		case <-changed:
		case <-caughtUp:
		case <-ctx.Done():
			return s.fail(idsource.NotReady, fmt.Errorf("the wait for an id ended: %w", context.Cause(ctx)), "")
		case <-limit.C:
			return s.refuse(why, lack)
		}
	}
}

// refuse turns a stall into the error it ends in.
func (s *Snowflake) refuse(why stall, lack uint64) *idsource.Error {
	failed, closed := s.outlook.state()
	if closed {
		return s.fail(idsource.Closed, nil, "")
	}
	switch why {
	case spent:
		return s.fail(idsource.Exhausted, fmt.Errorf("layout %s has no timestamps left", s.layout), "move to a layout with more bits of time")
	case noGrant:
		return s.refuseWithoutNumber(failed)
	case atFence:
		return s.refuseAtFence(failed, lack)
	case clockBack:
		return s.fail(idsource.Fenced, fmt.Errorf("the clock went back by %v", s.time.duration(lack)), checkClock)
	}
	return s.fail(idsource.Fenced, fmt.Errorf("timestamps are %v further ahead of the clock than max_ahead allows", s.time.duration(lack)), checkClock)
}

const checkClock = "check the clock of this host"

func (s *Snowflake) refuseWithoutNumber(failed error) *idsource.Error {
	switch {
	case errors.Is(failed, idsource.BadConfig):
		return s.fail(idsource.BadConfig, failed, "")
	case failed != nil:
		return s.fail(idsource.NotReady, failed, "it is tried again until it succeeds")
	case s.cfg.Pool != nil:
		return s.fail(idsource.NotReady, errors.New("no worker number is taken yet"), "")
	}
	return s.fail(idsource.NotReady, fmt.Errorf("worker %d is not taken yet", s.worker), "")
}

func (s *Snowflake) refuseAtFence(failed error, lack uint64) *idsource.Error {
	switch {
	case lack > 0:
		return s.fail(idsource.Fenced, fmt.Errorf("the clock is %v behind the timestamps that the worker number may have been used with",
			s.time.duration(lack)), checkClock)
	case failed != nil:
		return s.fail(idsource.Fenced, fmt.Errorf("the bound of timestamps cannot be renewed: %w", failed), "it is tried again until it succeeds")
	}
	return s.fail(idsource.Fenced, fmt.Errorf("the bound of timestamps was not renewed within %v", s.outlook.patience.Limit()), "")
}
