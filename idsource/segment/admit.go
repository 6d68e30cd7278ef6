package segment

import (
	"context"
	"fmt"
	"math"

	"idproxy/idsource"
)

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
	if err := s.cfg.room(top); err != nil {
		return err
	}
	var p idsource.Position
	if err := s.ask(ctx, func(ctx context.Context) (err error) {
		p, err = s.cfg.Store.Position(ctx, s.cfg.Key)
		return err
	}); err != nil {
		return err
	}
	if p.Sealed != 0 {
		return s.fail(idsource.Behind, &idsource.SealedError{Next: p.Next}, "")
	}
	var least idsource.Position
	if !p.Used { // who made the key may not have come to look again
		var err error
		if least, err = s.mayOpen(ctx, p); err != nil {
			return err
		}
	}
	top, fresh, err := s.begin(ctx, top, p)
	if err != nil {
		return err
	}
	floor, err := s.cfg.Floor(top, fresh, p)
	if err != nil {
		return err
	}
	floor = max(floor, least.Next)
	s.mu.Lock()
	lo, hi, held := s.chain.around(top.ID)
	s.mu.Unlock()
	if held && !fresh {
		return s.cfg.behind(top, fmt.Sprintf("ids %d to %d are reserved and not issued yet", lo, hi-1))
	}
	switch {
	case p.Next == 0:
		err = s.make(ctx, floor)
	case p.Next < floor:
		err = s.ask(ctx, func(ctx context.Context) error { return s.cfg.Store.Advance(ctx, s.cfg.Key, floor) })
	}
	if err != nil {
		return err
	}
	s.above(top.ID)
	return nil
}

// mayOpen returns where the template stands that makes a key that stands at p, and of which no id was given: there it begins
// at least. The error is why it is not for this source to open.
func (s *Segment) mayOpen(ctx context.Context, p idsource.Position) (at idsource.Position, err error) {
	if s.cfg.template == nil {
		if p.Next == 0 {
			return at, NotOpen(&s.cfg)
		}
		return at, nil
	}
	if err := s.ask(ctx, func(ctx context.Context) (err error) {
		at, err = s.cfg.template(ctx)
		return err
	}); err != nil {
		return at, err
	}
	switch {
	case at.Sealed != 0:
		return at, s.fail(idsource.Behind, &idsource.SealedError{Next: at.Next}, "")
	case at.Next == 0:
		return at, NotOpen(&s.cfg)
	}
	return at, nil
}

// make makes the key. Who moves the template seals that, and then the keys that there are: a template that is open still
// says that the new one is among them.
func (s *Segment) make(ctx context.Context, floor uint64) error {
	if err := s.ask(ctx, func(ctx context.Context) error { return s.cfg.Store.Open(ctx, s.cfg.Key, floor, 0) }); err != nil {
		return err
	}
	at, err := s.mayOpen(ctx, idsource.Position{})
	switch {
	case err == nil && at.Next > floor:
		return s.ask(ctx, func(ctx context.Context) error { return s.cfg.Store.Advance(ctx, s.cfg.Key, at.Next) })
	case at.Sealed != 0: // as who moves the template does with those that it finds
		_ = s.ask(ctx, func(ctx context.Context) error { // where it fails, the next Admit looks at the template, too
			_, err := s.cfg.Store.Seal(ctx, s.cfg.Key, math.MaxUint64, at.Sealed)
			return err
		})
	}
	return err
}

// notOpenError is an idsource.ErrNoKey that names the key.
type notOpenError struct{ key string }

func (e notOpenError) Error() string { return fmt.Sprintf("series %s is not open in its store", e.key) }

// Is implements what errors.Is asks.
func (notOpenError) Is(target error) bool { return target == idsource.ErrNoKey }

// NotOpen is the error of a series that its store does not have.
func NotOpen(c *Config) *idsource.Error {
	return idsource.NewError(c.Name, idsource.NotReady, notOpenError{c.Key},
		"idproxy source create --all where it never gave ids; idproxy source import --format idproxy --from OLD.yaml where it gave ids in another store or under another key")
}

// begin is Above, for as long as the source is not closed.
func (s *Segment) begin(ctx context.Context, column Greatest, p idsource.Position) (top Greatest, fresh bool, err error) {
	top, fresh, err = s.cfg.Above(ctx, column, p, s.cfg.patience.Limit())
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ended := s.ended(); ended != nil { // by a reload, perhaps: another source may have the column
			err = ended
		}
	}
	return top, fresh, err
}

// above drops what is held of ids up to highest, and what is on its way: the column
// has rows there that another process was given ids for, or that were there before
// the source. When the store has several parts, some of them may yet give ids below.
func (s *Segment) above(highest uint64) {
	_, parts := s.cfg.Store.(idsource.Raiser)
	s.mu.Lock()
	defer s.mu.Unlock()
	if parts || s.loading || s.chain.reaches(highest) {
		s.skip(highest + 1)
	}
}
