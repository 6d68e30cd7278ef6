package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"idproxy/idsource"
	"idproxy/inside"
)

// confirm is how long a wall clock that jumped ahead of the monotonic one must
// stay there before a fence is stored that follows it: a reading that is put
// right at once must not push the worker into the future.
const confirm = time.Second

// reading is a pair of clock readings taken together.
type reading struct {
	wall int64
	mono time.Duration
}

func (s *Snowflake) read() reading { return reading{s.clock.wall(), s.clock.mono()} }

// keep takes the worker number and renews its fence until Close.
func (s *Snowflake) keep() {
	pause := idsource.MinPause
	var last reading
	var jumped time.Duration // when a jump was first seen; 0: none
	for s.life.Err() == nil {
		next := s.cfg.Renew
		r := s.read()
		drift := time.Duration(r.wall-last.wall) - (r.mono - last.mono)
		switch {
		case last.mono != 0 && drift > s.cfg.MaxAhead && jumped == 0:
			s.cfg.Logger.Warn("clock jumped ahead", "source", s.cfg.Name, "by", drift)
			jumped, next = r.mono, confirm
		case jumped != 0 && drift > s.cfg.MaxAhead && r.mono-jumped < confirm:
			next = confirm - (r.mono - jumped)
		default:
			err := s.renew(s.units(r.wall)) // not read again: the jump may come now
			s.report(err)
			if err != nil {
				next = pause
				pause = min(2*pause, idsource.MaxPause)
				break
			}
			pause, last, jumped = idsource.MinPause, r, 0
		}
		s.rest(next)
	}
}

// rest waits for d, for a kick or for Close. A kick is not served at once
// again and again: the clock has to move on first.
func (s *Snowflake) rest(d time.Duration) {
	const least = time.Millisecond
	select {
	case <-s.life.Done():
		return
	case <-time.After(min(d, least)):
	}
	select {
	case <-s.life.Done():
	case <-s.kick:
	case <-time.After(d - min(d, least)):
	}
}

func (s *Snowflake) renewNow() {
	select {
	case s.kick <- struct{}{}:
	default: // one is pending
	}
}

// renew stores a fence ahead of the clock, which says now, and then, and only
// then, lets ids go up to it. The first call takes the worker number.
func (s *Snowflake) renew(now uint64) error {
	if s.lease == nil {
		lease, err := s.cfg.Fences.Acquire(s.life, s.worker, idsource.Shape{Layout: s.layout.pool(), Epoch: s.cfg.Epoch})
		if errors.Is(err, idsource.BadConfig) { // of the source, nothing of the store
			return err
		}
		if err != nil {
			return inside.Mark(err)
		}
		s.lease = lease
	}
	g := s.grant.Load()
	if now == 0 {
		return fmt.Errorf("the clock stands before the epoch %s", s.cfg.Epoch.Format(time.RFC3339))
	}
	if g == nil {
		start := max(s.lease.Fence(), now)
		g = &grant{start: start, fence: start, worker: s.worker}
		if s.lease.Fence() == 0 {
			// Never used, or the store was lost with its fence: the process that
			// had it may have run ahead of the clock.
			start += s.ahead
		}
		s.word.Store(start<<s.layout.Sequence - 1)
	}
	// Timestamps run ahead of the clock by MaxAhead, and Lead is more than that
	// and a renewal interval together.
	fence := max(g.fence, now+s.lead)
	if err := s.lease.Raise(s.life, fence); err != nil {
		return inside.Mark(err)
	}
	s.grant.Store(&grant{start: g.start, fence: fence, worker: s.worker})
	return nil
}

// report keeps the outcome of a renewal for those who wait, and logs the first
// error of a row and its end.
func (s *Snowflake) report(err error) {
	before := s.wake(err)
	switch {
	case s.life.Err() != nil:
	case resting(err) && before == nil:
		s.cfg.Logger.Info("id source waits for its worker number", "source", s.cfg.Name, "why", err)
	case err != nil && !resting(err) && (before == nil || resting(before)):
		s.cfg.Logger.Warn("id source cannot take or renew its worker number", "source", s.cfg.Name, "error", err)
	case err == nil && before != nil:
		s.cfg.Logger.Info("id source holds its worker number", "source", s.cfg.Name)
	}
}

// resting reports whether a pool works as it should, and a number only has to wait.
func resting(err error) bool {
	_, ok := errors.AsType[*idsource.LaterError](err)
	return ok
}

// wake lets those who wait try again, and returns the error from before.
func (s *Snowflake) wake(err error) (before error) {
	later, known := errors.AsType[*idsource.LaterError](err)
	if known {
		s.patience.Answered(nil)
	} else {
		s.patience.Answered(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.failed, s.later = s.failed, err, 0
	if known {
		s.later = s.clock.mono() + min(later.For, math.MaxInt64/2)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return before
}

// Admit refuses a column that holds ids later than this source can have
// issued: they come from another layout or epoch, or the clock is behind.
// Other workers may be ahead of this one's clock by the lead and by MaxAhead.
func (s *Snowflake) Admit(_ context.Context, column string, highest uint64) error {
	if closed := s.isClosed(); closed {
		return s.fail(idsource.Closed, nil, "")
	}
	ts := s.layout.Decode(highest).Time
	reach := max(s.now(), s.word.Load()>>s.layout.Sequence) + s.ahead + s.lead
	if ts <= reach {
		return nil
	}
	lowest := s.layout.compose(s.now()<<s.layout.Sequence, s.worker) // with a pool: about
	return s.fail(idsource.Behind, fmt.Errorf("%s holds %d already, this source issues ids from %d on", column, highest, lowest),
		"check the clock of this host, layout and epoch; an epoch further back gives higher ids")
}

func (s *Snowflake) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close ends the source and gives the worker number up. The fence comes down
// to the first timestamp not used, so that the next holder need not wait.
func (s *Snowflake) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
	granted := s.grant.Swap(nil) != nil
	s.wake(nil)
	if s.lease == nil {
		return nil
	}
	var fence uint64
	if granted {
		fence = s.word.Load()>>s.layout.Sequence + 1
	}
	if err := s.lease.Release(ctx, fence); err != nil {
		return s.fail(idsource.StoreDown, fmt.Errorf("release worker %d: %w", s.worker, err), "")
	}
	return nil
}
