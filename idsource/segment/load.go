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
	if s.tail != nil && (s.tail.pastMark() || s.short()) {
		s.startLoader()
	}
}

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
		ask, step, ok := s.nextAsk()
		if !ok {
			return
		}
		asked := time.Now()
		lo, hi, err := s.reserve(ask)
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
		s.pace.measure(now, s.held())
	}
	wanted := len(s.waiters) > 0 || s.tail == nil || s.tail.pastMark() || s.short()
	if !wanted || s.ended() != nil {
		s.loading = false
		return idsource.Ask{}, 0, false
	}
	step = s.nextStep(now)
	a = idsource.Ask{Key: s.cfg.Key, Count: max(step, s.waitedFor()), Floor: max(s.cfg.Start, s.past), Last: s.cfg.Last}
	if !s.noHighWater {
		a.High = s.high
	}
	return a, step, true
}

// waitedFor adds up what the waiters want, as far as one range should serve:
// the first one's wish always, the others' up to MaxStep.
func (s *Segment) waitedFor() uint64 {
	var sum uint64
	for i, w := range s.waiters {
		if i > 0 && sum+w.span > s.cfg.MaxStep {
			break
		}
		sum += w.span
	}
	return sum
}

// Leaf's bounds: a step that lasted less than short was too small, one that
// lasted more than long was too large.
const (
	leafShort = 15 * time.Minute
	leafLong  = 30 * time.Minute
)

// nextStep is the size of the next range by how long the last one lasted, or by
// how fast ids go.
func (s *Segment) nextStep(now time.Time) uint64 {
	switch {
	case s.cfg.StepPolicy == StepFixed || s.fetched.IsZero() || s.failed != nil: // an outage is no low demand
		return s.step
	case s.cfg.StepPolicy == StepRate:
		return s.pace.step(s.step, &s.cfg)
	}
	switch lasted := now.Sub(s.fetched); {
	case lasted < leafShort:
		return min(2*s.step, s.cfg.MaxStep)
	case lasted > leafLong:
		return max(s.step/2, s.cfg.Step)
	}
	return s.step
}

// reserve fetches one range. Close to the last id it takes what is left.
func (s *Segment) reserve(a idsource.Ask) (lo, hi uint64, err error) {
	ctx, cancel := context.WithTimeout(s.life, s.cfg.Timeout)
	defer cancel()
	const tries = 3 // others reserve at the same time
	for range tries {
		lo, hi, err = s.cfg.Store.Reserve(ctx, a)
		if full, ok := errors.AsType[*idsource.FullError](err); ok {
			next := max(full.Next, a.Floor)
			if next > a.Last {
				return 0, 0, err
			}
			a.Count = min(a.Count, a.Last-next+1)
			continue
		}
		if errors.Is(err, idsource.ErrNoKey) && a.High > 0 {
			return 0, 0, &idsource.WentBackError{}
		}
		if errors.Is(err, idsource.ErrNoKey) {
			if err = s.cfg.Store.Advance(ctx, a.Key, a.Floor); err != nil {
				return 0, 0, err
			}
			continue
		}
		if err == nil && (hi <= lo || hi-lo != a.Count || lo < a.Floor || hi-1 > a.Last) {
			err = fmt.Errorf("the store answered with the range [%d, %d) to a request for %d ids from %d on",
				lo, hi, a.Count, a.Floor)
		}
		return lo, hi, err
	}
	return 0, 0, err
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
	case s.closed:
	case full:
		s.exhausted(fmt.Errorf("%w to the greatest id allowed, %d", err, s.cfg.Last))
	case wentBack:
		s.wentBack(back.Next)
	case err != nil:
		if s.failed == nil {
			s.cfg.Logger.Warn("id source cannot reserve a range", "source", s.cfg.Name, "error", err)
		}
		s.failed = err
		s.cfg.patience.Answered(err)
		return true
	case f.lo < s.high && !s.noHighWater:
		s.wentBack(f.lo)
	default:
		s.arrived(f)
		return true
	}
	s.loading = false
	return false
}

// exhausted gives the waiters what smaller ones can still have.
func (s *Segment) exhausted(cause error) {
	kept := s.waiters
	s.waiters = nil
	for _, w := range kept {
		if first, ok := s.takeChain(w.span); ok && w.span > 0 {
			w.done <- outcome{first: first}
		} else {
			w.done <- outcome{err: s.fail(idsource.Exhausted, cause, "")}
		}
	}
}

// wentBack ends the source: the store offers ids that it has given before, so
// what is held in memory may be someone else's as well.
func (s *Segment) wentBack(lo uint64) {
	s.dead = s.fail(idsource.Behind,
		fmt.Errorf("the store went back: it offers ids from %d on, this process was given ids below %d before", lo, s.high),
		fmt.Sprintf("set start: to a number above every id in use (%d at least) for source %s in the configuration and restart",
			s.high, s.cfg.Name))
	s.cfg.Logger.Error("id source stopped: its store went back", "source", s.cfg.Name, "offered", lo, "seen", s.high)
	for b := s.head.Load(); b != nil; b = b.next {
		b.drain()
	}
	s.head.Store(nil)
	s.tail = nil
	s.failWaiters(s.dead)
}

// arrived serves the waiters in the order they came and keeps the rest. What is
// left of a range right below is joined to it first.
func (s *Segment) arrived(f fetched) {
	lo, hi := f.lo, f.hi
	if s.failed != nil {
		s.cfg.Logger.Info("id source reserves ranges again", "source", s.cfg.Name)
	}
	s.failed, s.step, s.fetched, s.low, s.high = nil, f.step, time.Now(), lo, hi
	s.cfg.patience.Answered(nil)
	s.pace.took(f.took)
	s.pace.given += hi - lo
	mark := lo + max(1, uint64(float64(hi-lo)*s.cfg.Prefetch))
	if s.tail != nil && s.tail.hi == lo {
		lo, _ = s.tail.drain()
	}
	if lead := s.lead(); lead < hi {
		mark = max(min(mark, hi-lead), lo+1)
	}
	lo = max(lo, min(s.past, hi)) // Advance came while the range was on its way
	served := 0
	for _, w := range s.waiters {
		if w.span > hi-lo || w.past > s.high {
			break
		}
		w.done <- outcome{first: lo}
		lo += w.span
		served++
	}
	s.waiters = append(s.waiters[:0], s.waiters[served:]...)
	if lo < hi {
		s.appendBlock(newBlock(lo, hi, mark))
	}
}

func (s *Segment) appendBlock(b *block) {
	if s.tail == nil {
		s.head.Store(b)
	} else {
		s.tail.next = b
	}
	s.tail = b
	for h := s.head.Load(); h != b && h.drained(); h = h.next {
		s.head.Store(h.next)
	}
}

func (s *Segment) failWaiters(err *idsource.Error) {
	for _, w := range s.waiters {
		w.done <- outcome{err: err}
	}
	s.waiters = nil
}
