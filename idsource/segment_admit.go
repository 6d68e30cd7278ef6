package idsource

import (
	"context"
	"fmt"
)

// Admit compares the store's position with the greatest value of a column. A
// key never used starts above it. See Source.
//
// What counts is the store's position, not the next id of this process:
// another process may have taken later ranges and used them. Where no id of
// this process has been reserved yet, as at the first call, the comparison is
// complete; later, ids reserved from a store that had gone back hide it, so a
// value among the ids held and not issued is refused too. After a nil return all
// ids of this process lie above highest: what it held below is dropped, for the
// store may have moved on between the comparison with one column and another.
func (s *Segment) Admit(ctx context.Context, column string, highest uint64) error {
	s.mu.Lock()
	ended := s.ended()
	s.mu.Unlock()
	if ended != nil {
		return ended
	}
	if highest >= s.cfg.Last {
		return s.fail(Exhausted, fmt.Errorf("%s holds %d, the greatest id allowed is %d", column, highest, s.cfg.Last), "")
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	p, err := s.cfg.Store.Position(ctx, s.cfg.Key)
	if err != nil {
		return s.storeDown(err)
	}
	floor := s.cfg.Start
	if !p.Used {
		floor = max(floor, highest+1)
	}
	if max(p.Next, floor) <= highest {
		return s.behind(column, highest, fmt.Sprintf("the store stands at %d", p.Next))
	}
	if lo, hi, held := s.holds(highest); held {
		return s.behind(column, highest, fmt.Sprintf("ids %d to %d are reserved and not issued yet", lo, hi-1))
	}
	if p.Next < floor {
		if err := s.cfg.Store.Advance(ctx, s.cfg.Key, floor); err != nil {
			return s.storeDown(err)
		}
	}
	s.above(highest)
	return nil
}

// above drops what is held of ids up to highest, and what is on its way: the column
// has rows there that another process was given ids for, or that were there before
// the source. Of a store of several parts some may yet give ids below.
func (s *Segment) above(highest uint64) {
	_, parts := s.cfg.Store.(Raiser)
	s.mu.Lock()
	defer s.mu.Unlock()
	low := parts || s.loading
	for b := s.head.Load(); b != nil; b = b.next {
		low = low || b.left() > 0 && b.position() <= highest
	}
	if low {
		s.skip(highest + 1)
	}
}

func (s *Segment) behind(column string, highest uint64, stands string) *Error {
	return s.fail(Behind, fmt.Errorf("%s holds %d already, %s (key %q)", column, highest, stands, s.cfg.Key),
		fmt.Sprintf("set start: %d for source %s in the configuration and restart", highest+1, s.cfg.Name))
}

// holds says whether id is among those reserved and not issued yet.
func (s *Segment) holds(id uint64) (lo, hi uint64, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := s.head.Load(); b != nil; b = b.next {
		lo, hi = b.position(), b.hi
		if lo <= id && id < hi {
			return lo, hi, true
		}
	}
	return 0, 0, false
}

// Close ends the source. Ids left of the newest range go back to the store if
// nobody has reserved later ones; the others are a gap. An error of kind
// StoreDown means that they are a gap, too; nothing else is lost.
func (s *Segment) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.failWaiters(s.fail(Closed, nil, ""))
	s.mu.Unlock()
	s.end()
	s.wg.Wait()

	var lo, hi uint64
	s.mu.Lock()
	for b := s.head.Load(); b != nil; b = b.next {
		lo, hi = b.drain()
	}
	s.head.Store(nil)
	s.tail = nil
	if s.past > 0 {
		lo = max(lo, s.low+1)
	}
	s.mu.Unlock()
	if lo >= hi {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	back, err := s.cfg.Store.GiveBack(ctx, s.cfg.Key, lo, hi)
	if err != nil {
		return s.fail(StoreDown, fmt.Errorf("give back ids %d to %d: %w", lo, hi-1, err), "")
	}
	s.cfg.Logger.Info("id source closed", "source", s.cfg.Name, "unused", hi-lo, "given_back", back)
	return nil
}
