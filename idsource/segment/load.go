package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/idsource"
)

// prefetch starts the loader when the newest range is used far enough, or the
// rest would not last. The caller holds mu.
func (s *Segment) prefetch() {
	if s.chain.tail != nil && s.wanted() {
		s.startLoader()
	}
}

// wanted reports whether there is no range, the newest one is used far enough, or
// the rest would not last. The caller holds mu.
func (s *Segment) wanted() bool { return s.chain.used() || s.pace.short(s.chain.held()) }

// startLoader makes sure that the loader runs; there is at most one. The
// caller holds mu.
func (s *Segment) startLoader() {
	if s.loading || s.ended() != nil {
		return
	}
	s.loading = true
	s.wg.Go(s.load)
}

// load reserves ranges as long as some are wanted.
func (s *Segment) load() {
	pause := idsource.MinPause
	for {
		s.tune()
		ask, step, ok := s.nextAsk()
		if !ok {
			return
		}
		asked := time.Now()
		ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
		lo, hi, err := reserve(ctx, s.cfg.Store, ask)
		cancel()
		s.cfg.Fetched(time.Since(asked), err)
		if !s.settle(fetched{lo: lo, hi: hi, step: step, took: time.Since(asked)}, err) {
			return
		}
		if err == nil {
			pause = idsource.MinPause
			continue
		}
		s.rest(pause)
		pause = min(2*pause, idsource.MaxPause)
	}
}

// rest waits for d. A call that finds no ids ends it, but not at once: the store
// of thousands of clients would be asked as often.
func (s *Segment) rest(d time.Duration) {
	const least = 200 * time.Millisecond
	select {
	case <-s.life.Done():
		return
	case <-time.After(min(d, least)):
	}
	select {
	case <-s.kick: // the next try is for it, and no other one
		return
	default:
	}
	select {
	case <-s.life.Done():
	case <-s.kick:
	case <-time.After(d - min(d, least)):
	}
}

// nextAsk says what to reserve, and ends the loader when nothing is wanted.
func (s *Segment) nextAsk() (a idsource.Ask, step uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.failed == nil { // ids that could not be had do not make a low rate
		s.pace.measure(now, s.chain.held())
	}
	if len(s.waiters) == 0 && !s.wanted() || s.ended() != nil {
		s.loading = false
		return idsource.Ask{}, 0, false
	}
	step = s.pace.next(now, s.failed != nil) // an outage is no low demand
	return idsource.Ask{
		Key: s.cfg.Key, Count: max(step, s.waiters.wanted(s.pace.most)), Floor: max(s.cfg.Start, s.past), Last: s.cfg.Last, High: s.least(), By: s.cfg.By,
	}, step, true
}

// least is where the series stands at least: no range may begin below. What was given before this source
// does not count where its start is above: somebody said so, perhaps because the store went back. The
// caller holds mu.
func (s *Segment) least() uint64 {
	if before := s.cfg.HighWater.Of(s.cfg.Key); before >= s.cfg.Start {
		return max(s.high, before)
	}
	return s.high
}

// fetched is a range [lo, hi), the step it was asked with, and the time it took.
type fetched struct {
	lo, hi, step uint64
	took         time.Duration
}

// settle books the outcome of one fetch and says whether the loader goes on.
func (s *Segment) settle(f fetched, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, full := errors.AsType[*idsource.FullError](err)
	back, wentBack := errors.AsType[*idsource.WentBackError](err)
	switch {
	case s.closed && (err != nil || f.lo < s.least()): // what came all the same is given back by Close
	case full:
		s.exhausted(fmt.Errorf("%w to the greatest id allowed, %d", err, s.cfg.Last))
	case wentBack:
		s.wentBack(back.Next)
	case err != nil:
		if s.failed == nil {
			s.cfg.Logger.Warn("id source cannot reserve a range", "source", s.cfg.Name, "error.message", err)
		}
		s.failed = err
		s.refused++
		if answer := s.answer(err); answer != nil {
			s.waiters.fail(answer)
			err = nil
		}
		s.cfg.patience.Answered(err)
		return true
	case f.lo < s.least():
		s.wentBack(f.lo)
	default:
		s.arrived(f)
		return true
	}
	s.loading = false
	return false
}

// answer returns the error of a series that its store does not have, or that is sealed; nil: the store did not answer.
func (s *Segment) answer(err error) *idsource.Error {
	if errors.Is(err, idsource.ErrNoKey) {
		return NotOpen(&s.cfg)
	}
	if sealed, ok := errors.AsType[*idsource.SealedError](err); ok {
		return s.fail(idsource.Behind, sealed, "")
	}
	return nil
}

// exhausted gives the waiters what smaller ones can still have.
func (s *Segment) exhausted(cause error) {
	kept := s.waiters
	s.waiters = nil
	for _, w := range kept {
		if first, ok := s.chain.takeAny(w.span); ok && w.span > 0 {
			w.done <- outcome{first: first}
		} else {
			w.done <- outcome{err: s.fail(idsource.Exhausted, cause, "")}
		}
	}
}

// wentBack ends the source: the store offers ids that it has given before, so
// what is held in memory may be someone else's as well. The series is sealed: a process that was not as far,
// or starts now, would give those ids.
func (s *Segment) wentBack(lo uint64) {
	seen := s.least()
	s.dead = s.fail(idsource.Behind,
		fmt.Errorf("the store went back: it offers ids from %d on, this process was given ids below %d before", lo, seen),
		fmt.Sprintf("move it above every id in use (%d at least): idproxy source set %s NEXT, and restart", seen, s.cfg.Name))
	s.cfg.Logger.Error("id source stopped: its store went back", "source", s.cfg.Name, "offered", lo, "seen", seen)
	s.chain.drain()
	s.waiters.fail(s.dead)
	s.wg.Go(func() { s.seal(seen) })
}

// seal seals the series in its store, which stands below seen until an administrator has moved it.
func (s *Segment) seal(seen uint64) {
	by := idsource.NewSeal()
	for pause, said := idsource.MinPause, false; ; pause = min(2*pause, idsource.MaxPause) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), s.cfg.Timeout)
		at, err := s.cfg.Store.Position(ctx, s.cfg.Key)
		if err == nil && at.Next > 0 {
			_, err = s.cfg.Store.Seal(ctx, s.cfg.Key, seen, by)
		}
		cancel()
		if err == nil && at.Next == 0 { // it is not open: nobody has ids of it
			return
		}
		if err == nil {
			s.cfg.Logger.Error("series sealed", "source", s.cfg.Name, "key", s.cfg.Key)
			return
		}
		if !said {
			s.cfg.Logger.Warn("series not sealed: other processes may give its ids again", "source", s.cfg.Name, "key", s.cfg.Key, "error.message", err)
			said = true
		}
		if errors.Is(err, errors.ErrUnsupported) {
			return
		}
		select {
		case <-s.life.Done():
			return
		case <-time.After(pause):
		}
	}
}

// rose notes where the series stands. The caller holds mu.
func (s *Segment) rose(next uint64) {
	s.high = next
	s.cfg.HighWater.Set(s.cfg.Key, next)
}

// arrived serves the waiters in the order they came and keeps the rest. What is
// left of a range right below is joined to it first.
func (s *Segment) arrived(f fetched) {
	lo, hi := f.lo, f.hi
	if s.failed != nil {
		s.cfg.Logger.Info("id source reserves ranges again", "source", s.cfg.Name)
	}
	s.taken.came(time.Now(), lo, s.past > s.high)
	floor := s.least()
	s.failed, s.low = nil, lo
	s.rose(hi)
	s.ranges++
	s.cfg.patience.Answered(nil)
	s.pace.came(hi-lo, f.step, f.took)
	mark := lo + max(1, uint64(float64(hi-lo)*s.cfg.Prefetch))
	lo, floor = s.chain.join(lo, floor)
	if lead := s.pace.lead(); lead < hi {
		mark = max(min(mark, hi-lead), lo+1)
	}
	lo = max(lo, min(s.past, hi))              // Advance came while the range was on its way
	if s.chain.ordered && len(s.waiters) > 0 { // what is served now lies above all that is held
		s.chain.drain()
	}
	from := lo
	if lo = s.waiters.serve(from, hi, s.high); lo > from {
		floor = lo
	}
	if lo < hi {
		s.chain.add(newBlock(lo, hi, mark, floor))
	}
}
