package snowflake

import (
	"time"

	"idproxy/idsource"
)

// tenant is a Snowflake as its pool sees it.
type tenant struct{ s *Snowflake }

// wall is the clock that ids get their time from: with a pool it is the pool's,
// carried on by the monotonic clock, so that nobody can set it.
func (s *Snowflake) wall() int64 {
	if b := s.base.Load(); b != nil {
		return b.wall + int64(s.clock.mono()-b.mono)
	}
	return s.clock.wall()
}

// follow sets the clock by a reading of the pool's that may be too low by late.
// Within that the clock is not moved: it would go back and forth.
func (s *Snowflake) follow(now int64, late time.Duration) {
	at := reading{wall: now * int64(time.Millisecond), mono: s.clock.mono()}
	if s.base.Load() != nil {
		// A millisecond is what the reading was rounded by.
		at.wall = min(max(s.wall(), at.wall), at.wall+int64(late+time.Millisecond))
	}
	s.base.Store(&at)
}

// Grant implements Tenant.
func (t tenant) Grant(term idsource.Term) {
	s := t.s
	s.follow(term.Now, term.Late)
	unit := s.layout.Unit.Milliseconds()
	epoch := s.epoch / int64(time.Millisecond)
	g := &grant{
		worker: term.Worker,
		start:  uint64(max(0, term.Start-epoch+unit-1) / unit),
		fence:  uint64(max(0, term.Fence-epoch) / unit), // a unit lies below the fence as a whole or not at all
	}
	if term.Fresh {
		// From here on claims under the old grant are dropped, so the word can be set. The
		// word goes back only where the clock did, which is what a swap is for.
		s.grant.Store(nil)
		from := max(g.start<<s.layout.Sequence, 1) - 1
		if p := s.word.Load(); p > from && p>>s.layout.Sequence <= s.now()+s.ahead {
			from = p
		}
		s.word.Store(from)
		s.seen.Store(s.now())
		select {
		case <-s.swap: // who asked while the number was being changed has got what he asked for
		default:
		}
	}
	s.grant.Store(g)
}

// Last implements Tenant.
func (t tenant) Last() int64 {
	if t.s.grant.Load() == nil {
		return 0
	}
	return t.s.millis(t.s.word.Load() >> t.s.layout.Sequence)
}

// Revoke implements Tenant. The grant goes before the word is read: what is
// claimed in between is dropped.
func (t tenant) Revoke() int64 {
	if t.s.grant.Swap(nil) == nil {
		return 0
	}
	return t.s.millis(t.s.word.Load() >> t.s.layout.Sequence)
}

// millis is the last millisecond of a unit.
func (s *Snowflake) millis(ts uint64) int64 {
	return s.epoch/int64(time.Millisecond) + int64(ts+1)*s.layout.Unit.Milliseconds() - 1
}

// Report implements Tenant.
func (t tenant) Report(err error) { t.s.report(err) }

// Swap implements Tenant.
func (t tenant) Swap() <-chan struct{} { return t.s.swap }

// Shape implements Tenant.
func (t tenant) Shape() (idsource.Shape, uint64) { return t.s.layout.Shape(t.s.cfg.Epoch) }

// Shape is what a pool of the layout is for, and how many worker numbers it may have.
func (l Layout) Shape(epoch time.Time) (s idsource.Shape, numbers uint64) {
	return idsource.Shape{Layout: l.pool(), Epoch: epoch}, 1 << l.WorkerBits()
}

func (s *Snowflake) swapNow() {
	select {
	case s.swap <- struct{}{}:
	default: // one is pending
	}
}
