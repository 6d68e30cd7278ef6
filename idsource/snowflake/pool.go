package snowflake

import (
	"time"

	"idproxy/idsource"
)

// tenant is a Snowflake as its pool sees it.
type tenant struct{ s *Snowflake }

// Unused implements Tenant.
func (t tenant) Unused(worker uint64) int64 {
	before := t.s.cfg.UsedTimes.Before(t.s.shape(), worker)
	if before == 0 {
		return 0
	}
	return t.s.time.millis(before-1) + 1
}

// Grant implements Tenant.
func (t tenant) Grant(term idsource.Term) {
	s := t.s
	s.time.follow(term.Now, term.Late)
	unit := s.layout.Unit.Milliseconds()
	epoch := s.time.epoch / int64(time.Millisecond)
	g := &grant{
		worker: term.Worker,
		start:  uint64(max(0, term.Start-epoch+unit-1) / unit),
		fence:  uint64(max(0, term.Fence-epoch) / unit), // a unit lies below the fence as a whole or not at all
	}
	if term.Fresh {
		s.fresh.Add(1)
		s.words.restart(g.start)
		select {
		case <-s.swap: // who asked while the number was being changed has got what he asked for
		default:
		}
	}
	s.words.grant.Store(g)
}

// Last implements Tenant.
func (t tenant) Last() int64 {
	if t.s.words.grant.Load() == nil {
		return 0
	}
	return t.s.time.millis(t.s.words.last.Load() >> t.s.layout.Sequence)
}

// Revoke implements Tenant.
func (t tenant) Revoke() int64 {
	last, granted := t.s.revoke()
	if !granted {
		return 0
	}
	return t.s.time.millis(last)
}

// Report implements Tenant.
func (t tenant) Report(err error) { t.s.report(err) }

// Swap implements Tenant.
func (t tenant) Swap() <-chan string { return t.s.swap }

// Shape implements Tenant.
func (t tenant) Shape() (idsource.Shape, uint64) { return t.s.layout.Shape(t.s.cfg.Epoch) }

func (s *Snowflake) swapNow(why string) {
	select {
	case s.swap <- why:
	default: // one is pending
	}
}
