package mysql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"idproxy/idsource"
)

// Position implements idsource.SegmentStore: where the furthest server stands, or
// is known by another to have stood.
func (g *Group) Position(ctx context.Context, key string) (idsource.Position, error) {
	if err := g.ensure(ctx, true); err != nil {
		return idsource.Position{}, err
	}
	return g.Look(ctx, key)
}

// Look is Position without making a group of servers that are none yet.
func (g *Group) Look(ctx context.Context, key string) (idsource.Position, error) {
	states, err := g.State(ctx, key)
	if err != nil {
		return idsource.Position{}, err
	}
	var all idsource.Position
	for _, s := range states {
		all.Next = max(all.Next, s.Next, s.Mark)
		all.Used = all.Used || s.Used || s.Mark > 0
		all.Sealed = max(all.Sealed, s.Sealed)
		all.Unset = all.Unset || s.Unset
	}
	all.Unset = all.Unset && !all.Used && all.Next == 1
	return all, nil
}

// State is where one server of a group stands.
type State struct {
	Server string // its address and database
	Next   uint64 // the lowest id it has not given, whether or not it owns that
	Used   bool
	Unset  bool
	Sealed idsource.Seal
	Mark   uint64 // where others saw it stand, 0: they did not
	Err    error  // why it is not used
}

// State asks all servers about a key and changes nothing. There are no states of
// servers that have not been used yet; the error is that none can be used.
func (g *Group) State(ctx context.Context, key string) ([]State, error) {
	if err := g.members[0].checkKey(key); err != nil {
		return nil, err
	}
	if err := g.ensure(ctx, false); errors.Is(err, errNotFormed) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	type answer struct {
		at    idsource.Position
		marks map[int]uint64
	}
	answers, errs := each(ctx, g, func(ctx context.Context, m *member) (a answer, err error) {
		if err = g.believe(ctx, m, m.db); err != nil {
			return a, err
		}
		if a.at, err = m.Store.Position(ctx, key); err != nil {
			return a, err
		}
		a.marks, err = readMarks(ctx, m.db, key)
		return a, err
	})
	states := make([]State, len(g.members))
	usable := false
	for i, m := range g.members {
		states[i] = State{Server: strings.TrimPrefix(m.where, "mysql store "), Next: answers[i].at.Next, Used: answers[i].at.Used, Unset: answers[i].at.Unset, Sealed: answers[i].at.Sealed, Err: errs[i]}
		usable = usable || errs[i] == nil
	}
	for _, a := range answers {
		for server, next := range a.marks {
			if server < len(states) {
				states[server].Mark = max(states[server].Mark, next)
			}
		}
	}
	if !usable {
		return nil, errors.Join(errs...)
	}
	return states, nil
}

// Advance implements idsource.SegmentStore. All servers must be there: one that
// was not would give ids below next when it is back.
func (g *Group) Advance(ctx context.Context, key string, next uint64) error {
	if p, err := g.Look(ctx, key); err != nil || p.Next == 0 {
		return cmp.Or(err, idsource.ErrNoKey)
	}
	if err := g.onAll(ctx, key, func(ctx context.Context, m *member) error {
		return insert(ctx, m.db, insertKey, key, next, next)
	}); err != nil {
		return err
	}
	if p, err := g.Look(ctx, key); err != nil || p.Sealed != 0 {
		return cmp.Or(err, error(&idsource.SealedError{Next: p.Next}))
	}
	return nil
}

// Open implements idsource.SegmentStore. All servers must be there, as for Advance. With an error some of them may have opened
// the key.
func (g *Group) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	return g.onAll(ctx, key, func(ctx context.Context, m *member) error { return open(ctx, m.db, key, next, seal) })
}

// onAll moves a key up on all servers.
func (g *Group) onAll(ctx context.Context, key string, move func(context.Context, *member) error) error {
	if err := errors.Join(g.members[0].checkKey(key), g.ensure(ctx, true)); err != nil {
		return err
	}
	_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
		if err := g.believe(ctx, m, m.db); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, move(ctx, m)
	})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("all servers of a group must be there to move a key: %w", err)
	}
	return nil
}

// Raise implements idsource.Raiser.
func (g *Group) Raise(ctx context.Context, key string, next uint64) error {
	return g.Advance(ctx, key, next)
}

// Set puts a key at next on all servers, also below where they stand: whoever
// calls it knows that no id from next on is in use.
func (g *Group) Set(ctx context.Context, key string, next uint64) error {
	if err := errors.Join(g.members[0].checkKey(key), g.ensure(ctx, true)); err != nil {
		return err
	}
	do := func(query string, args ...any) error {
		_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
			if err := g.believe(ctx, m, m.db); err != nil {
				return struct{}{}, err
			}
			_, err := m.db.ExecContext(ctx, query, args...)
			return struct{}{}, err
		})
		return errors.Join(errs...)
	}
	if err := do(dropMarks, key); err != nil {
		return fmt.Errorf("all servers of a group must be there to set a key: %w", err)
	}
	return do(setKey, next, key)
}

// GiveBack implements idsource.SegmentStore. It gives nothing back, because the marks of the
// other servers would have to go back too.
func (g *Group) GiveBack(context.Context, string, uint64, uint64) (bool, error) { return false, nil }

// Seal implements idsource.SegmentStore. With an error the servers that answered have sealed the key; the others
// may go on. Where somebody else has sealed it on a server, the position says so.
func (g *Group) Seal(ctx context.Context, key string, below uint64, by idsource.Seal) (idsource.Position, error) {
	p, err := g.Position(ctx, key)
	if err != nil || p.Next >= below {
		return p, err
	}
	sealed, errs := each(ctx, g, func(ctx context.Context, m *member) (idsource.Position, error) {
		if err := errors.Join(g.believe(ctx, m, m.db), seal(ctx, m.db, key, p.Next, math.MaxUint64, by)); err != nil {
			return idsource.Position{}, err
		}
		return m.Store.Position(ctx, key)
	})
	if err := errors.Join(errs...); err != nil {
		return p, err
	}
	if p, err = g.Look(ctx, key); err != nil {
		return p, err
	}
	p.Sealed = by
	for _, on := range sealed {
		p.Next = max(p.Next, on.Next)
		if on.Sealed != by {
			p.Sealed = on.Sealed
		}
	}
	return p, nil
}

// Keys lists the keys there are, on any server that answers.
func (g *Group) Keys(ctx context.Context) ([]string, error) {
	keys, errs := g.keys(ctx)
	if !slices.Contains(errs, nil) {
		return nil, errors.Join(errs...)
	}
	return keys, nil
}
