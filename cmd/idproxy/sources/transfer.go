package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// row is a series as a store has it: its key, or the template of many.
type row struct {
	store store.Store
	key   string
}

// rowOf returns the row of a source, and whether it has one.
func rowOf(s *config.Source, stores map[string]store.Store) (r row, ok bool) {
	if s == nil || s.Segment == nil {
		return row{}, false
	}
	return row{stores[s.Segment.Store], store.KeyOf(s.Segment)}, true
}

// is reports whether two rows are one, by what their stores are called by.
func (r row) is(other row) bool { return r.store.Place == other.store.Place && r.key == other.key }

// transfer is a series that goes on in another row: above where the one before stands, which is sealed, so that a
// process that still has it, or starts with it again, gives no id of it.
type transfer struct {
	was, is  string // sources
	from, to row
	seals    bool // nothing of the new configuration has the row before
}

// side is a configuration and its stores, by name.
type side struct {
	cfg    *config.Config
	stores map[string]store.Store
}

// rows lists the rows of all sources.
func (s side) rows() (all []row) {
	for i := range s.cfg.Sources {
		if r, ok := rowOf(&s.cfg.Sources[i], s.stores); ok {
			all = append(all, r)
		}
	}
	return all
}

// transfers lists the series whose columns get their ids from another row: moves are those between two sources. Of sources in
// force it is too late to say where the series of each table begin.
func transfers(before, after side, moves []config.Move, inForce func(source string) bool) (all []transfer, err error) {
	rows := after.rows()
	add := func(was, is *config.Source) error {
		from, had := rowOf(was, before.stores)
		to, has := rowOf(is, after.stores)
		if !had || !has || from.is(to) || (was.Segment.Scramble == nil) != (is.Segment.Scramble == nil) {
			return nil
		}
		if was.Segment.Scramble != nil && was.Segment.Scramble.Key != is.Segment.Scramble.Key {
			return fmt.Errorf("source %s has another scramble.key in another store or under another key, and ids of two secrets can coincide: move it with its secret first", is.Name)
		}
		t := transfer{was: was.Name, is: is.Name, from: from, to: to, seals: !slices.ContainsFunc(rows, from.is)}
		if segment.IsTemplate(to.key) && from.key != to.key && (segment.IsTemplate(from.key) || inForce(is.Name)) {
			return fmt.Errorf("source %s has a series for each table, and what source %s gave to each is not known to it: restart", is.Name, was.Name)
		}
		if !slices.ContainsFunc(all, func(other transfer) bool { return other.from.is(from) && other.to.is(to) }) {
			all = append(all, t)
		}
		return nil
	}
	for i := range before.cfg.Sources {
		was := &before.cfg.Sources[i]
		if is := after.cfg.Source(was.Name); is != nil {
			if err := add(was, is); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range moves {
		if err := add(before.cfg.Source(m.From), after.cfg.Source(m.To)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// keyPair is where a series was, and where it goes on; nowhere: in series of each table, which are made later.
type keyPair struct{ from, to string }

// ask asks the stores of the rows that series go on from, before anything is closed.
func ask(ctx context.Context, all []transfer) error {
	asked := map[string]bool{}
	for _, t := range all {
		if asked[t.from.store.Place] {
			continue
		}
		asked[t.from.store.Place] = true
		asking, cancel := context.WithTimeout(ctx, store.AskTime)
		err := t.from.store.Ping(asking)
		cancel()
		if err != nil {
			return fmt.Errorf("how far the series of source %s were given its store does not say: %w; when the store is lost, restart, with \"start\" above every id in use", t.was, err)
		}
	}
	return nil
}

// keys returns the keys of a transfer: of a template itself and those that the store has, but for those that other sources name.
func (t *transfer) keys(ctx context.Context, named func(row) bool) (all []keyPair, err error) {
	many, become := segment.IsTemplate(t.from.key), segment.IsTemplate(t.to.key)
	switch {
	case !many && !become:
		return []keyPair{{t.from.key, t.to.key}}, nil
	case !many: // the series of each table begins above it
		return []keyPair{{t.from.key, ""}}, nil
	}
	there, err := t.from.store.Keys.Keys(ctx)
	if err != nil {
		return nil, err
	}
	made := segment.OfTemplate(t.from.key)
	for _, key := range there {
		if !made(key) || key != t.from.key && named(row{t.from.store, key}) {
			continue
		}
		pair := keyPair{key, t.to.key}
		if become {
			pair.to = key
		}
		all = append(all, pair)
	}
	return all, nil
}

// Moved is a series that goes on in another place.
type Moved struct {
	Source  string `json:"source"` // of before
	Key     string `json:"key"`
	Store   string `json:"store"` // where it is
	ToKey   string `json:"to_key"`
	ToStore string `json:"to_store"`
	Next    uint64 `json:"next"`   // where it stands
	Sealed  bool   `json:"sealed"` // whether no process takes ids of the old one any more
}

// transferring has series go on in other rows.
type transferring struct {
	before side
	given  func(r row) uint64                          // up to where a series was given at least
	moveOn func(source, key string, next uint64) error // has a source that is in force drop what it holds below
	log    *slog.Logger

	mu     sync.Mutex
	sealed []row
	opened []row // that nobody could have taken ids of before
	moved  []Moved
	floors map[string]uint64 // of sources with a series for each table: where each series begins at least
}

// keysAtOnce is how many keys of a template are transferred at the same time.
const keysAtOnce = 32

// all makes the transfers, one after the other. After an error the caller undoes them.
func (t *transferring) all(ctx context.Context, list []transfer) error {
	own := t.before.rows()
	for i := range list {
		if err := t.complete(ctx, list[i].from); err != nil {
			return fmt.Errorf("series of source %s: %w", list[i].was, err)
		}
		pairs, err := list[i].keys(ctx, func(r row) bool { return slices.ContainsFunc(own, r.is) })
		if err == nil {
			errs := make([]error, len(pairs))
			var wg sync.WaitGroup
			free := make(chan struct{}, keysAtOnce)
			for j, pair := range pairs {
				free <- struct{}{}
				wg.Go(func() {
					errs[j] = t.one(ctx, &list[i], pair)
					<-free
				})
			}
			wg.Wait()
			err = errors.Join(errs...)
		}
		if err != nil {
			return fmt.Errorf("series of source %s: %w", list[i].was, err)
		}
	}
	return nil
}

// complete makes a template a key that was none, in a store of an earlier version: sealed with the series of its tables, it
// keeps tables that are new from getting one.
func (t *transferring) complete(ctx context.Context, of row) error {
	if !segment.IsTemplate(of.key) {
		return nil
	}
	at, err := segment.Stands(ctx, of.key, of.store.Segments.Position, of.store.Keys.Keys)
	if err != nil || at.Next == 0 {
		return err
	}
	if err := of.store.Segments.Open(ctx, of.key, 0); !errors.Is(err, idsource.ErrNoKey) { // which a table of another system answers
		return err
	}
	return nil
}

// undo seals what was opened, and opens what was sealed.
func (t *transferring) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	var errs []error
	for _, r := range t.opened {
		errs = append(errs, r.store.Segments.Seal(ctx, r.key, math.MaxUint64))
	}
	for _, r := range t.sealed {
		errs = append(errs, reopen(ctx, r))
	}
	return errors.Join(errs...)
}

// reopen opens a row that was sealed, where it stands.
func reopen(ctx context.Context, r row) error {
	at, err := r.store.Segments.Position(ctx, r.key)
	if err == nil && at.Sealed {
		err = r.store.Segments.Open(ctx, r.key, 0)
	}
	return err
}

// one transfers the series of a key.
func (t *transferring) one(ctx context.Context, of *transfer, keys keyPair) error {
	from, to := row{of.from.store, keys.from}, row{of.to.store, keys.to}
	at, err := from.store.Segments.Position(ctx, from.key)
	if err != nil {
		return err
	}
	before := at.Sealed
	if of.seals && !before {
		if at, err = t.seal(ctx, of, from); err != nil {
			return err
		}
	}
	next := max(at.Next, t.given(from))
	switch {
	case next == 0: // it never was
		return nil
	case keys.to == "":
		t.mu.Lock()
		t.floors[of.is] = max(t.floors[of.is], next)
		t.mu.Unlock()
		return t.open(ctx, of.to, 0)
	case before:
		err = to.follows(ctx, next, at)
	case at.Unset:
		err = t.open(ctx, to, 0)
	default:
		err = t.open(ctx, to, next)
	}
	if err == nil {
		err = t.moveOn(of.is, to.key, next)
	}
	if err == nil && from.key == of.from.key { // of many series of a template it says it once
		if err := store.NoteMove(ctx, from.store, from.key, to.store, to.key, next); err != nil {
			t.log.Warn("a move of a series is not noted in its stores", "source", of.was, "key", from.key, "error.message", err)
		}
	}
	if err == nil {
		t.mu.Lock()
		t.moved = append(t.moved, Moved{of.was, from.key, from.store.Place, to.key, to.store.Place, next, of.seals})
		t.mu.Unlock()
		t.log.Info("series moved", "source", of.was, "key", from.key, "store", from.store.Place, "to.key", to.key, "to.store", to.store.Place, "next", next, "sealed", of.seals)
	}
	return err
}

// seal seals a row, and returns where it stands then.
func (t *transferring) seal(ctx context.Context, of *transfer, from row) (at idsource.Position, err error) {
	t.mu.Lock()
	t.sealed = append(t.sealed, from)
	t.mu.Unlock()
	err = from.store.Segments.Seal(ctx, from.key, math.MaxUint64)
	if errors.Is(err, errors.ErrUnsupported) {
		t.log.Warn("series not sealed: other programs may go on with it", "source", of.was, "key", from.key)
		err = nil
	}
	if err != nil {
		return at, err
	}
	return from.store.Segments.Position(ctx, from.key)
}

// follows refuses a row that does not stand above one that was sealed before: of one that another process moved, the
// series goes on here already.
func (r row) follows(ctx context.Context, next uint64, sealed idsource.Position) error {
	at, err := r.store.Segments.Position(ctx, r.key)
	if err == nil && at.Next < next {
		err = &idsource.SealedError{Next: sealed.Next}
	}
	return err
}

// moveOn has a source that is in force, and fills other columns from a row, drop what it holds below next.
func (s *Sources) moveOn(ctx context.Context, source, key string, next uint64) error {
	switch one := s.Named()[source].(type) {
	case nil: // it is made later
		return nil
	case *segment.Segment:
		return one.Advance(ctx, next-1)
	case *segment.PerTable:
		of, err := one.OfKey(key)
		if err != nil {
			return err
		}
		return of.Advance(ctx, next-1)
	}
	return fmt.Errorf("source %s has given ids of its series already: restart", source)
}

// open has a row stand at next or above.
func (t *transferring) open(ctx context.Context, r row, next uint64) error {
	at, err := r.store.Segments.Position(ctx, r.key)
	if err != nil {
		return err
	}
	if at.Sealed || at.Next == 0 {
		t.mu.Lock()
		t.opened = append(t.opened, r)
		t.mu.Unlock()
	}
	return r.store.Segments.Open(ctx, r.key, next)
}
