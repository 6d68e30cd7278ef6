package snowflake

import (
	"errors"
	"fmt"
	"time"

	"idproxy/idsource"
	"idproxy/inside"
)

// confirm is how long a wall clock that jumped ahead of the monotonic one must
// stay there before a fence is stored that follows it: a reading that is put
// right at once must not push the worker into the future.
const confirm = time.Second

// keep takes the worker number and renews its fence until Close.
func (s *Snowflake) keep() {
	pause := idsource.MinPause
	var last, before reading
	var jumped time.Duration // when a jump was first seen; 0: none
	for s.life.Err() == nil {
		if s.turns.Load() {
			s.takeTurn()
			continue
		}
		next := s.cfg.Renew
		at := s.time.mono() // before the wall clock is read, as before.mono is behind it: a pause between them is no step
		r := reading{s.time.wall(), s.time.mono()}
		if back := at - before.mono - time.Duration(r.wall-before.wall); before.mono != 0 && back > s.cfg.Hold {
			s.cfg.Logger.Warn("clock went back", "source", s.cfg.Name, "duration", back)
		}
		before = r
		drift := time.Duration(r.wall-last.wall) - (r.mono - last.mono)
		switch {
		case last.mono != 0 && drift > s.cfg.MaxAhead && jumped == 0:
			s.cfg.Logger.Warn("clock jumped ahead", "source", s.cfg.Name, "duration", drift)
			jumped, next = r.mono, confirm
		case jumped != 0 && drift > s.cfg.MaxAhead && r.mono-jumped < confirm:
			next = confirm - (r.mono - jumped)
		default:
			err := s.renew(s.time.units(r.wall)) // not read again: the jump may come now
			s.report(err)
			if err != nil {
				next = pause
				pause = min(2*pause, idsource.MaxPause)
				break
			}
			pause, last, jumped = idsource.MinPause, r, 0
		}
		if asked := s.rest(next); asked && s.turns.Load() {
			s.renewNow() // who asked is answered in a turn
		}
	}
}

// rest waits for d, for a kick, for Share or for Close, and reports whether there was a kick. A kick
// is not served at once again and again: the clock has to move on first.
func (s *Snowflake) rest(d time.Duration) (asked bool) {
	const least = time.Millisecond
	select {
	case <-s.life.Done():
		return false
	case <-time.After(min(d, least)):
	}
	select {
	case <-s.life.Done():
	case <-s.switched:
	case <-s.kick:
		return true
	case <-time.After(d - min(d, least)):
	}
	return false
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
		lease, err := s.cfg.Fences.Acquire(s.life, s.worker, s.shape())
		if errors.Is(err, idsource.BadConfig) { // of the source, nothing of the store
			return err
		}
		if err != nil {
			return inside.Mark(err)
		}
		s.lease = lease
	}
	g := s.words.grant.Load()
	if now == 0 {
		return fmt.Errorf("the clock stands before the epoch %s", s.cfg.Epoch.Format(time.RFC3339))
	}
	if g == nil {
		start := max(s.lease.Fence(), now, s.cfg.UsedTimes.Before(s.shape(), s.worker))
		if s.lease.Fence() == 0 {
			// Never used here. The number may have had another store, or this one lost its fence: the process
			// that had it may have been allowed to run ahead of the clock as far as a fence lies.
			start = max(start, now+s.words.lead)
		}
		g = &grant{start: start, fence: start, worker: s.worker}
		s.words.begin(start)
	}
	// Timestamps run ahead of the clock by MaxAhead, and Lead is more than that
	// and a renewal interval together.
	fence := max(g.fence, now+s.words.lead)
	if err := s.lease.Raise(s.life, fence); err != nil {
		return inside.Mark(err)
	}
	s.words.grant.Store(&grant{start: g.start, fence: fence, worker: s.worker})
	return nil
}

// report keeps the outcome of a renewal for those who wait, and logs the first
// error of a row and its end.
func (s *Snowflake) report(err error) {
	before := s.outlook.tell(err, s.time.mono())
	switch {
	case s.life.Err() != nil:
	case resting(err) && before == nil:
		s.cfg.Logger.Info("id source waits for its worker number", "source", s.cfg.Name, "reason", err)
	case err != nil && !resting(err) && (before == nil || resting(before)):
		s.cfg.Logger.Warn("id source cannot take or renew its worker number", "source", s.cfg.Name, "error.message", err)
	case err == nil && before != nil:
		s.cfg.Logger.Info("id source holds its worker number", "source", s.cfg.Name)
	}
}

// resting reports whether a pool works as it should, and a number only has to wait.
func resting(err error) bool {
	_, ok := errors.AsType[*idsource.LaterError](err)
	return ok
}
