package segment

import (
	"context"
	"fmt"

	"idproxy/idsource"
)

// Begin finds the greatest id of all columns that a series is for, wherever they
// are. Once something was reserved of the series the store's position is what counts, but
// for columns that join the series then: of others it returns the zero Greatest.
type Begin func(ctx context.Context, b Beginning) (Greatest, error)

// Beginning is what is known of a series that was never used.
type Beginning struct {
	Key    string
	Column string // what Admit was asked for; its greatest id is known
	Told   bool   // the store has a position: someone said where the series begins, or began it
	Used   bool   // something was reserved of the series
}

// Greatest is the greatest id of a column.
type Greatest struct {
	ID     uint64
	Column string
}

// Admit compares the store's position with the greatest value of a column. A
// key never used starts above it, and above all that Begin finds. See Source.
//
// What counts is the store's position, not the next id of this process:
// another process may have taken later ranges and used them. Where no id of
// this process has been reserved yet, as at the first call, the comparison is
// complete; later, ids reserved from a store that had gone back hide it, so a
// value among the ids held and not issued is refused too. After a nil return all
// ids of this process lie above highest. What it held below is dropped, because the
// store may have moved on between the comparisons with two columns.
func (s *Segment) Admit(ctx context.Context, column string, highest uint64) error {
	s.mu.Lock()
	ended := s.ended()
	s.mu.Unlock()
	if ended != nil {
		return ended
	}
	top := Greatest{highest, column}
	if err := s.room(top); err != nil {
		return err
	}
	var p idsource.Position
	if err := s.ask(ctx, func(ctx context.Context) (err error) {
		p, err = s.cfg.Store.Position(ctx, s.cfg.Key)
		return err
	}); err != nil {
		return err
	}
	floor := s.cfg.Start
	top, fresh, err := s.begin(ctx, top, p)
	if err != nil {
		return err
	}
	if fresh {
		floor = max(floor, top.ID+1)
	}
	if max(p.Next, floor) <= top.ID {
		return s.behind(top, fmt.Sprintf("the store stands at %d", p.Next))
	}
	if lo, hi, held := s.holds(top.ID); held && !fresh {
		return s.behind(top, fmt.Sprintf("ids %d to %d are reserved and not issued yet", lo, hi-1))
	}
	if p.Next < floor {
		if err := s.ask(ctx, func(ctx context.Context) error { return s.cfg.Store.Advance(ctx, s.cfg.Key, floor) }); err != nil {
			return err
		}
	}
	s.above(top.ID)
	return nil
}

// begin returns the greatest id that the column's ids have to begin above: that of the
// column, or a greater one. fresh is false where the store's position has to be above it
// already.
func (s *Segment) begin(ctx context.Context, column Greatest, p idsource.Position) (top Greatest, fresh bool, err error) {
	if s.cfg.Begin == nil || beginOff {
		return column, !p.Used, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.patience.Limit())
	defer cancel()
	all, err := s.cfg.Begin(ctx, Beginning{Key: s.cfg.Key, Column: column.Column, Told: p.Next > 0, Used: p.Used})
	if err != nil {
		return column, false, s.fail(idsource.NotReady, fmt.Errorf("where key %q begins: %w", s.cfg.Key, err), "")
	}
	fresh = !p.Used || all.Column != ""
	if all.ID <= column.ID {
		return column, fresh, nil
	}
	return all, fresh, s.room(all)
}

// room refuses a column behind whose greatest id the series has none.
func (s *Segment) room(g Greatest) error {
	if g.ID < s.cfg.Last {
		return nil
	}
	return s.fail(idsource.Exhausted, fmt.Errorf("%s holds %d, the greatest id allowed is %d", g.Column, g.ID, s.cfg.Last), "")
}

// ask asks the store, for as long as patience allows.
func (s *Segment) ask(ctx context.Context, what func(ctx context.Context) error) error {
	t, ok := s.cfg.patience.Begin()
	if !ok {
		return s.storeDown(s.cfg.patience.Why())
	}
	defer t.End()
	limited, cancel := context.WithTimeout(ctx, t.Most)
	defer cancel()
	err := what(limited)
	if err != nil && ctx.Err() != nil { // the client has gone, which tells nothing of the store
		return s.storeDown(err)
	}
	s.cfg.patience.Answered(err)
	if err != nil {
		return s.storeDown(err)
	}
	return nil
}

// above drops what is held of ids up to highest, and what is on its way: the column
// has rows there that another process was given ids for, or that were there before
// the source. When the store has several parts, some of them may yet give ids below.
func (s *Segment) above(highest uint64) {
	_, parts := s.cfg.Store.(idsource.Raiser)
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

func (s *Segment) behind(g Greatest, stands string) *idsource.Error {
	return s.fail(idsource.Behind, fmt.Errorf("%s holds %d already, %s (key %q)", g.Column, g.ID, stands, s.cfg.Key),
		fmt.Sprintf("set start: %d for source %s in the configuration and restart", g.ID+1, s.cfg.Name))
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
	s.failWaiters(s.fail(idsource.Closed, nil, ""))
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
		return s.fail(idsource.StoreDown, fmt.Errorf("give back ids %d to %d: %w", lo, hi-1, err), "")
	}
	s.cfg.Logger.Info("id source closed", "source", s.cfg.Name, "unused", hi-lo, "given_back", back)
	return nil
}
