package sources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/snowflake"
)

// Left is what a reload took out of force. Sessions that are about to end may use it until it is
// closed.
type Left struct {
	Stores  []string // names of stores that are others now, or none
	sources map[string]idsource.Source
	stores  map[string]store.Store
}

// Sources returns those that are left, by name; nil has none.
func (l *Left) Sources() map[string]idsource.Source {
	if l == nil {
		return nil
	}
	return l.sources
}

// Close ends the sources and then their stores; nil has none.
func (l *Left) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(CloseAll(l.sources), closeStores(l.stores))
}

// Reload puts the stores and sources of another configuration in place of those that differ. Two
// sources never give ids of one series in this process: those that go are closed before any new one is
// made. Stores are asked before anything is closed. On an error the old sources are in force; those
// that were closed have been made anew, which Eras tells.
func (s *Sources) Reload(ctx context.Context, cfg *config.Config) (*Left, error) {
	next, p, moves, err := s.prepare(ctx, cfg, s.openAnswering)
	if err != nil {
		return nil, err
	}
	before := side{s.cfg, s.stores}
	ended := s.end(p.end)
	s.begin.Set(cfg) // behind that: of those that ended it knows nothing
	t := transferring{
		named: slices.Concat(before.rows(), side{cfg, next.all}.rows()), log: s.log,
		given:  func(r row) uint64 { return s.high.of(r.store.Place).Of(r.key) },
		moveOn: func(source, key string, next uint64) error { return s.moveOn(ctx, source, key, next) },
	}
	err = t.all(ctx, moves)
	old := s.setStores(next.all)
	var fresh map[string]idsource.Source
	if err == nil {
		s.openNew(ctx, before.cfg, cfg, p.moves)
		fresh, err = s.makeAll(cfg, p.made)
	}
	if err == nil {
		err = s.pass(ctx, p, ended, fresh)
		if err != nil {
			err = errors.Join(err, CloseAll(fresh))
		}
	}
	if err != nil {
		err = errors.Join(err, t.undo(ctx))
		s.setStores(old)
		s.begin.Set(s.cfg)
		again, failed := s.makeAll(s.cfg, p.end)
		if failed == nil {
			s.serve(s.cfg, again)
		}
		return nil, errors.Join(err, failed, closeStores(next.opened))
	}
	left := &Left{sources: map[string]idsource.Source{}, Stores: next.changed, stores: next.leftOf(old)}
	for _, name := range p.leave {
		left.sources[name] = s.take(name)
	}
	s.serve(cfg, fresh)
	return left, nil
}

// prepare finds out what a reload would do, and changes nothing but what open does.
func (s *Sources) prepare(ctx context.Context, cfg *config.Config, open opening) (next *nextStores, p plan, moves []transfer, err error) {
	if s.sharing() {
		if err := config.Handover(s.cfg, cfg); err != nil {
			return nil, p, nil, fmt.Errorf("the process before this one has sessions yet: try again when it has ended; %w", err)
		}
	}
	if next, err = s.newStores(ctx, cfg, open); err != nil {
		return nil, p, nil, err
	}
	p = s.plan(cfg, next)
	moves, err = transfers(side{s.cfg, s.stores}, side{cfg, next.all}, p.moves, func(source string) bool { return !slices.Contains(p.made, source) })
	if err == nil {
		err = ask(ctx, moves)
	}
	if err != nil {
		return nil, p, nil, errors.Join(err, closeStores(next.opened))
	}
	return next, p, moves, nil
}

// opening opens a store of another configuration.
type opening func(context.Context, *config.Store) (store.Store, error)

// openAnswering opens a store that answers.
func (s *Sources) openAnswering(ctx context.Context, c *config.Store) (store.Store, error) {
	st, err := s.openStore(c)
	if err != nil {
		return st, err
	}
	asking, cancel := context.WithTimeout(ctx, store.AskTime)
	defer cancel()
	if err := st.Ping(asking); err != nil {
		return st, errors.Join(fmt.Errorf("store %s: %w", c.Name, err), st.Close())
	}
	return st, nil
}

// nextStores are those of another configuration.
type nextStores struct {
	all     map[string]store.Store
	opened  map[string]store.Store // that none was there for
	kept    map[string]string      // the others: the name that each has had
	changed []string               // names whose store is another one, or gone
}

// leftOf returns those of the stores before that nobody has any more.
func (n *nextStores) leftOf(before map[string]store.Store) map[string]store.Store {
	left := maps.Clone(before)
	for _, had := range n.kept {
		delete(left, had)
	}
	return left
}

func (n *nextStores) keeps(had string) bool {
	return slices.Contains(slices.Collect(maps.Values(n.kept)), had)
}

// same reports whether two sources have one store, by the names that it has had and has.
func (n *nextStores) same(was, is string) bool {
	had, kept := n.kept[is]
	return was == "" && is == "" || kept && had == was
}

// newStores opens those that a configuration defines otherwise. A store that only has another name is kept: what it has locked stays locked.
func (s *Sources) newStores(ctx context.Context, cfg *config.Config, open opening) (*nextStores, error) {
	n := &nextStores{all: map[string]store.Store{}, opened: map[string]store.Store{}, kept: map[string]string{}}
	for i := range cfg.Stores {
		c := &cfg.Stores[i]
		if had := s.cfg.LikeStore(c); had != nil && !n.keeps(had.Name) {
			n.all[c.Name], n.kept[c.Name] = s.stores[had.Name], had.Name
			continue
		}
		st, err := open(ctx, c)
		if err != nil {
			return nil, errors.Join(err, closeStores(n.opened))
		}
		n.all[c.Name], n.opened[c.Name] = st, st
	}
	for i := range s.cfg.Stores {
		if name := s.cfg.Stores[i].Name; n.kept[name] != name {
			n.changed = append(n.changed, name)
		}
	}
	return n, nil
}

// plan is what becomes of sources.
type plan struct {
	end   []string      // before others are made
	leave []string      // once no session is left that uses them
	made  []string      // of the new configuration
	moves []config.Move // of columns, and of sources that get another series
}

func (s *Sources) plan(cfg *config.Config, next *nextStores) (p plan) {
	p.moves = config.Moves(s.cfg, cfg)
	for i := range s.cfg.Sources {
		was := &s.cfg.Sources[i]
		is := cfg.Source(was.Name)
		switch {
		case is == nil:
			p.leave = append(p.leave, was.Name)
		case !was.Like(is) || !next.same(was.StoreName(), is.StoreName()):
			p.end = append(p.end, was.Name)
			if !was.SameSeries(is) {
				p.moves = append(p.moves, config.Move{From: was.Name, To: was.Name})
			}
		case slices.ContainsFunc(p.moves, func(m config.Move) bool { return m.From == was.Name }):
			p.end = append(p.end, was.Name) // statements that were decided on must not draw from it any more
		}
	}
	for _, name := range names(cfg.Sources) {
		if s.cfg.Source(name) == nil || slices.Contains(p.end, name) {
			p.made = append(p.made, name)
		}
	}
	if len(p.made)+len(p.moves) > 0 { // one that goes might give what another one gives from now on
		p.end, p.leave = slices.Concat(p.end, p.leave), nil
	}
	return p
}

// end closes sources, and returns them by name. From now on their callers are told so.
func (s *Sources) end(replaced []string) (ending map[string]idsource.Source) {
	ending = map[string]idsource.Source{}
	for _, name := range replaced {
		source := s.take(name)
		if source == nil {
			continue
		}
		ending[name] = source
	}
	if err := CloseAll(ending); err != nil { // what it does not give back is a gap
		s.log.Warn("a source that is replaced did not give its ids back", "error.message", err)
	}
	return ending
}

// take takes a source out of force.
func (s *Sources) take(name string) idsource.Source {
	s.mu.Lock()
	defer s.mu.Unlock()
	source := s.byName[name]
	delete(s.byName, name)
	return source
}

// pass sees to it that what a column gets from now on lies above what the source before gave, where no row of a
// store tells: rows with such ids may not be committed yet.
func (s *Sources) pass(ctx context.Context, p plan, ended, fresh map[string]idsource.Source) error {
	for _, m := range p.moves {
		from, is := ended[m.From].(*snowflake.Snowflake)
		if !is {
			continue
		}
		first, ok := from.Above()
		if !ok {
			return fmt.Errorf("ids of source %s are in no order, and rows with them may not be committed yet: restart", m.From)
		}
		to := fresh[m.To]
		if to == nil {
			to = s.Named()[m.To]
		}
		switch to := to.(type) {
		case *segment.Segment:
			if first == 0 {
				continue
			}
			if err := to.Admit(ctx, "what source "+m.From+" gave before", first-1); err != nil {
				return err
			}
		case *segment.PerTable:
			if fresh[m.To] == nil {
				return fmt.Errorf("source %s has a series for each table, and what source %s gave to each is not known to it: restart", m.To, m.From)
			}
			if err := to.Start(ctx, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// setStores has sources be made with other stores, and returns those before.
func (s *Sources) setStores(all map[string]store.Store) (before map[string]store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.stores = s.stores, all
	return before
}
