package sources

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
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

// transfers lists the series whose columns get their ids from another row.
func (s *Sources) transfers(cfg *config.Config, p plan, next *nextStores) (all []transfer, err error) {
	var rows []row
	for i := range cfg.Sources {
		if r, ok := rowOf(&cfg.Sources[i], next.all); ok {
			rows = append(rows, r)
		}
	}
	add := func(was, is *config.Source) error {
		from, had := rowOf(was, s.stores)
		to, has := rowOf(is, next.all)
		if !had || !has || from.is(to) || (was.Segment.Scramble == nil) != (is.Segment.Scramble == nil) {
			return nil
		}
		if was.Segment.Scramble != nil && was.Segment.Scramble.Key != is.Segment.Scramble.Key {
			return fmt.Errorf("source %s has another scramble.key in another store or under another key, and ids of two secrets can coincide: move it with its secret first", is.Name)
		}
		t := transfer{was: was.Name, is: is.Name, from: from, to: to, seals: !slices.ContainsFunc(rows, from.is)}
		if segment.IsTemplate(to.key) && from.key != to.key && (segment.IsTemplate(from.key) || !slices.Contains(p.made, is.Name)) {
			return fmt.Errorf("source %s has a series for each table, and what source %s gave to each is not known to it: restart", is.Name, was.Name)
		}
		if !slices.ContainsFunc(all, func(other transfer) bool { return other.from.is(from) && other.to.is(to) }) {
			all = append(all, t)
		}
		return nil
	}
	for i := range s.cfg.Sources {
		was := &s.cfg.Sources[i]
		if is := cfg.Source(was.Name); is != nil {
			if err := add(was, is); err != nil {
				return nil, err
			}
		}
	}
	for _, m := range p.moves {
		if err := add(s.cfg.Source(m.From), cfg.Source(m.To)); err != nil {
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

// keys returns the keys of a transfer: of a template those that the store has, but for those that other sources name.
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
	made := regexp.MustCompile("^" + strings.NewReplacer(`\{schema\}`, ".+", `\{table\}`, ".+").Replace(regexp.QuoteMeta(t.from.key)) + "$")
	for _, key := range there {
		if !made.MatchString(key) || named(row{t.from.store, key}) {
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

// transferring is a reload that has series go on in other rows.
type transferring struct {
	*Sources
	mu     sync.Mutex
	sealed []row
	opened []row             // that nobody could have taken ids of before
	floors map[string]uint64 // of sources with a series for each table: where each series begins at least
}

// keysAtOnce is how many keys of a template are transferred at the same time.
const keysAtOnce = 32

// all makes the transfers, one after the other. After an error the caller undoes them.
func (t *transferring) all(ctx context.Context, list []transfer) error {
	for i := range list {
		pairs, err := list[i].keys(ctx, t.names)
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

// undo seals what was opened, and opens what was sealed.
func (t *transferring) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	var errs []error
	for _, r := range t.opened {
		errs = append(errs, r.store.Segments.Seal(ctx, r.key, math.MaxUint64))
	}
	for _, r := range t.sealed {
		at, err := r.store.Segments.Position(ctx, r.key)
		if err == nil && at.Sealed {
			err = r.store.Keys.Set(ctx, r.key, at.Next)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
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
	next := max(at.Next, t.high.of(from.store.Place).Of(from.key))
	switch {
	case next == 0: // it never was
		return nil
	case keys.to == "":
		t.mu.Lock()
		defer t.mu.Unlock()
		t.floors[of.is] = max(t.floors[of.is], next)
		return nil
	case before:
		err = to.follows(ctx, next, at)
	default:
		err = t.open(ctx, to, next)
	}
	if err == nil {
		err = t.moveOn(ctx, of.is, to.key, next)
	}
	if err == nil {
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
	if at.Sealed || at == (idsource.Position{}) {
		t.mu.Lock()
		t.opened = append(t.opened, r)
		t.mu.Unlock()
	}
	switch {
	case at.Sealed:
		return r.store.Keys.Set(ctx, r.key, max(next, at.Next))
	case at.Next >= next:
		return nil
	}
	return r.store.Segments.Advance(ctx, r.key, next)
}

// names reports whether a source in force has a row as its own, by its key.
func (s *Sources) names(r row) bool {
	for i := range s.cfg.Sources {
		if own, ok := rowOf(&s.cfg.Sources[i], s.stores); ok && own.is(r) {
			return true
		}
	}
	return false
}
