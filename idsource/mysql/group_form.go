package mysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
)

// errNotFormed is what looking at servers answers that are no group yet.
var errNotFormed = errors.New("the servers have not been used yet")

// ensure finds out which group this is, and forms it at its very first use: all
// servers must answer then, and none may be part of a group already. Whoever
// only looks does not form it.
func (g *Group) ensure(ctx context.Context, form bool) error {
	if g.ensured.Load() {
		return nil
	}
	select {
	case g.turn <- struct{}{}:
		defer func() { <-g.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if g.ensured.Load() {
		return nil
	}
	all, errs := each(ctx, g, func(ctx context.Context, m *member) (map[string]string, error) { return facts(ctx, m.db) })
	down := errors.Join(errs...)
	ready, named := 0, 0
	for _, known := range all {
		if known[factGroup] != "" {
			named++
		}
		if known[factReady] != "" {
			ready++
		}
	}
	switch {
	case ready > 0 && (ready == named || down != nil):
		// A server that is part of no group was emptied or replaced; belongs says so.
		g.ensured.Store(ready == named)
		return nil
	case down != nil:
		return fmt.Errorf("all servers must answer once, to form the group: %w", down)
	case !form:
		return errNotFormed
	}
	if err := g.form(ctx, ""); err != nil {
		return fmt.Errorf("form a group of %d servers: %w", len(g.members), err)
	}
	g.ensured.Store(true)
	return nil
}

// Adopt has servers used again that were emptied, replaced or restored: all keys
// of all servers are moved to where the furthest stands, or was seen to stand. It
// is for someone to decide who knows that those are all ids in use, as they are
// unless the other servers were down when ids were given. All must answer.
func (g *Group) Adopt(ctx context.Context) error {
	if err := g.ensure(ctx, true); err != nil {
		return err
	}
	all, errs := each(ctx, g, func(ctx context.Context, m *member) (map[string]string, error) { return facts(ctx, m.db) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("all servers must answer: %w", err)
	}
	name := ""
	for _, known := range all {
		if known[factReady] != "" {
			name = known[factGroup]
		}
	}
	return g.form(ctx, name)
}

// form makes a group of the servers, a new one when it has no name. Several
// processes may form the same group at once: each step can be done twice, and
// no server is used before the last.
func (g *Group) form(ctx context.Context, name string) (err error) {
	if name == "" {
		if name, err = g.newName(ctx); err != nil {
			return g.members[0].wrap(err)
		}
	}
	if err := g.name(ctx, name); err != nil {
		return err
	}
	if err := g.level(ctx); err != nil {
		return err
	}
	_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
		_, err := m.db.ExecContext(ctx, insertFact, factReady, "1")
		return struct{}{}, err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	g.logger.Info("group of servers formed", "servers", len(g.members), "block", g.block, "group", name)
	return nil
}

// newName names the group: whoever is first with the first server does.
func (g *Group) newName(ctx context.Context) (string, error) {
	first := g.members[0].db
	if err := create(ctx, first); err != nil {
		return "", err
	}
	if _, err := first.ExecContext(ctx, insertFact, factGroup, rand.Text()); err != nil {
		return "", err
	}
	known, err := facts(ctx, first)
	return known[factGroup], err
}

// name has every server say which of the group it is. From then on a process
// that knows the server alone gets no more ranges from it.
func (g *Group) name(ctx context.Context, group string) error {
	_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
		if err := create(ctx, m.db); err != nil {
			return struct{}{}, err
		}
		want := g.want(m, group)
		for _, fact := range []string{factGroup, factServers, factServer, factBlock} {
			if _, err := m.db.ExecContext(ctx, insertFact, fact, want[fact]); err != nil {
				return struct{}{}, err
			}
		}
		known, err := facts(ctx, m.db)
		for _, fact := range []string{factVersion, factGroup, factServers, factServer, factBlock} {
			if err == nil && known[fact] != want[fact] {
				err = fmt.Errorf("the server says %s %s, %s was expected: do two processes name the servers in different orders?", fact, known[fact], want[fact])
			}
		}
		return struct{}{}, err
	})
	return errors.Join(errs...)
}

// level moves every key of any server to where the furthest stands: ids below
// may have been given by a server that was alone, in any block.
func (g *Group) level(ctx context.Context) error {
	keys, errs := g.keys(ctx)
	if err := errors.Join(errs...); err != nil { // it may have keys that no other server has
		return err
	}
	for _, key := range keys {
		at, errs := each(ctx, g, func(ctx context.Context, m *member) (uint64, error) {
			p, err := m.Store.Position(ctx, key)
			if err != nil {
				return 0, err
			}
			marks, err := readMarks(ctx, m.db, key)
			for _, mark := range marks { // of servers that are no longer in the list
				p.Next = max(p.Next, mark)
			}
			return p.Next, err
		})
		if err := errors.Join(errs...); err != nil {
			return err
		}
		var next uint64
		for _, n := range at {
			next = max(next, n)
		}
		_, errs = each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
			return struct{}{}, insert(ctx, m.db, insertKey, key, next, next)
		})
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}
