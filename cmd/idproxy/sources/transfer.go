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
		t := transfer{was: was.Name, is: is.Name, from: from, to: to, seals: seals(!slices.ContainsFunc(rows, from.is))}
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

// keyPair is where a series was, and where it goes on.
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

// first is the pair of a transfer that comes before those of tables.
func (t *transfer) first() keyPair { return keyPair{t.from.key, t.to.key} }

// tables returns the pairs of the series of each table that there are, before or after, but for those that sources name.
func (t *transfer) tables(ctx context.Context, named []row) (all []keyPair, err error) {
	of, many := t.from, segment.IsTemplate(t.from.key)
	if !many {
		of = t.to
	}
	if !segment.IsTemplate(of.key) {
		return nil, nil
	}
	there, err := of.store.Keys.Keys(ctx)
	if err != nil {
		return nil, err
	}
	made := segment.OfTemplate(of.key)
	for _, key := range there {
		switch {
		case key == of.key || !made(key) || slices.ContainsFunc(named, row{of.store, key}.is):
		case !many: // one that was moved away from
			all = append(all, keyPair{t.from.key, key})
		case segment.IsTemplate(t.to.key):
			all = append(all, keyPair{key, key})
		default:
			all = append(all, keyPair{key, t.to.key})
		}
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
	named  []row                                       // by the sources of before and after
	given  func(r row) uint64                          // up to where a series was given at least
	moveOn func(source, key string, next uint64) error // has a source that is in force drop what it holds below
	log    *slog.Logger
	by     idsource.Seal

	mu    sync.Mutex
	steps []*step
	moved []Moved
}

// step is the transfer of one key.
type step struct {
	*transfer
	from, to row
	target   idsource.Position // where the row after stood before that before was sealed
	at       idsource.Position // where the row before stands, sealed or not
	next     uint64            // where the series goes on; 0: there was none
	open     uint64            // where the row after is opened; 0: wherever its ids begin
	sealing  bool              // it may have been sealed
	opening  bool              // the row after may have been opened
}

// keysAtOnce is how many keys of a template are transferred at the same time.
const keysAtOnce = 32

// all makes the transfers: it seals all rows before, and then opens those after. A template is sealed before its keys are
// listed, and opened behind them all: a process that makes the key of a new table looks whether the template is open yet. After
// an error the caller undoes the transfers.
func (t *transferring) all(ctx context.Context, list []transfer) error {
	t.by = idsource.NewSeal()
	var first, tables []*step
	for i := range list {
		steps, err := t.leaveAll(ctx, &list[i])
		if err != nil {
			return fmt.Errorf("series of source %s: %w", list[i].was, err)
		}
		first, tables = append(first, steps[0]), append(tables, steps[1:]...)
	}
	above(slices.Concat(first, tables))
	err := atOnce(len(tables), func(i int) error { return t.enter(ctx, tables[i]) })
	for _, template := range []bool{false, true} {
		for _, one := range first {
			if err == nil && segment.IsTemplate(one.to.key) == template {
				err = t.enter(ctx, one)
			}
		}
	}
	return err
}

// leaveAll seals the rows before of one transfer. Where another process has sealed the first, it seals none: that one does.
func (t *transferring) leaveAll(ctx context.Context, of *transfer) (steps []*step, err error) {
	if err := t.complete(ctx, of); err != nil {
		return nil, err
	}
	first, err := t.leave(ctx, of, of.first(), of.seals)
	if err != nil {
		return nil, err
	}
	tables, err := of.tables(ctx, t.named)
	if err != nil {
		return nil, err
	}
	steps = append([]*step{first}, make([]*step, len(tables))...)
	return steps, atOnce(len(tables), func(i int) (err error) {
		steps[1+i], err = t.leave(ctx, of, tables[i], of.seals && !first.follows(t.by))
		if err == nil && first.follows(t.by) && steps[1+i].at.Sealed == 0 {
			err = &idsource.SealedError{Next: first.at.Next} // the other one has not come to it yet
		}
		return err
	})
}

// above has steps to one row open it above all of them, but for templates: their tables have rows of their own.
func above(steps []*step) {
	type place struct{ store, key string }
	next, open := map[place]uint64{}, map[place]uint64{}
	for _, one := range steps {
		to := place{one.to.store.Place, one.to.key}
		next[to], open[to] = max(next[to], one.next), max(open[to], one.open)
	}
	for _, one := range steps {
		if to := (place{one.to.store.Place, one.to.key}); one.next > 0 && !segment.IsTemplate(one.to.key) {
			one.next, one.open = next[to], open[to]
		}
	}
}

// atOnce does n things, keysAtOnce at the same time, and returns what failed.
func atOnce(n int, do func(i int) error) error {
	errs := slices.Repeat([]error{context.Canceled}, n) // of one that does not return
	var wg sync.WaitGroup
	free := make(chan struct{}, keysAtOnce)
	for i := range n {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// complete makes templates keys that were none: in a store of an earlier version an open one, where it has series of tables;
// else, for the row after, a sealed one: until the series of before are there, nobody begins with a table.
func (t *transferring) complete(ctx context.Context, of *transfer) error {
	from, err := stands(ctx, of.from)
	if err != nil || from.Next == 0 {
		return err
	}
	if !segment.IsTemplate(of.to.key) {
		return nil
	}
	to, err := of.to.store.Segments.Position(ctx, of.to.key)
	if err != nil || to.Next > 0 {
		return err
	}
	if _, err = of.to.store.Segments.Seal(ctx, of.to.key, math.MaxUint64, t.by); errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// stands returns where a row stands. A template that is open without being a key it makes one.
func stands(ctx context.Context, r row) (idsource.Position, error) {
	at, err := segment.Stands(ctx, r.key, r.store.Segments.Position, r.store.Keys.Keys)
	if err != nil || at.Next == 0 || at.Sealed != 0 || !segment.IsTemplate(r.key) {
		return at, err
	}
	if err = r.store.Segments.Open(ctx, r.key, 0, 0); errors.Is(err, idsource.ErrNoKey) { // which a table of another system answers
		err = nil
	}
	return at, err
}

// leave seals the row before. Where the row after stands it asks first: of two processes that move a series to and fro at
// once, each finds the other's seal then, or opens nothing.
func (t *transferring) leave(ctx context.Context, of *transfer, keys keyPair, seals bool) (one *step, err error) {
	one = &step{transfer: of, from: row{of.from.store, keys.from}, to: row{of.to.store, keys.to}}
	if one.target, err = one.to.store.Segments.Position(ctx, one.to.key); err != nil {
		return nil, err
	}
	if one.at, err = one.from.store.Segments.Position(ctx, one.from.key); err != nil {
		return nil, err
	}
	if given := t.given(one.from); given > one.at.Next {
		return nil, wentBack(ctx, one.from, given)
	}
	if seals && one.at.Next > 0 && (one.at.Sealed == 0 || one.at.Sealed == t.by) { // a key that was new has the template's
		one.sealing = true
		t.note(one)
		if err := t.seal(ctx, one); err != nil {
			return nil, err
		}
	}
	one.next = one.at.Next
	if !one.at.Unset {
		one.open = one.next
	}
	return one, nil
}

// wentBack seals a row that stands below what this process was given: others may have been given more. It returns why the
// series goes nowhere.
func wentBack(ctx context.Context, r row, given uint64) error {
	at, err := r.store.Segments.Position(ctx, r.key)
	if err == nil && at.Next > 0 {
		at, err = r.store.Segments.Seal(ctx, r.key, given, idsource.NewSeal())
	}
	if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(wentBackTo(r, at.Next, given), err)
}

func wentBackTo(r row, next, given uint64) error {
	return fmt.Errorf("the store went back: it has key %s at %d, and this process was given ids below %d before; idproxy source set moves it above every id in use", r.key, next, given)
}

// note has a step be undone after an error.
func (t *transferring) note(one *step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.steps, one) {
		t.steps = append(t.steps, one)
	}
}

// seal seals the row before, and notes where it stands then.
func (t *transferring) seal(ctx context.Context, one *step) (err error) {
	one.at, err = one.from.store.Segments.Seal(ctx, one.from.key, math.MaxUint64, t.by)
	if err == nil && one.at.Sealed == 0 {
		return errors.New("another process opened it again meanwhile")
	}
	if errors.Is(err, errors.ErrUnsupported) {
		one.sealing = false
		t.log.Warn("series not sealed: other programs may go on with it", "source", one.was, "key", one.from.key)
		one.at, err = one.from.store.Segments.Position(ctx, one.from.key)
	}
	return err
}

// enter opens the row after, at where the series goes on or above. Of one that another process sealed it must be open there.
func (t *transferring) enter(ctx context.Context, one *step) (err error) {
	if one.next == 0 { // it never was
		return nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("series of source %s: %w", one.was, err)
		}
	}()
	if one.follows(t.by) {
		err = one.wentOn(ctx)
	} else {
		one.opening = true
		t.note(one)
		err = one.to.store.Segments.Open(ctx, one.to.key, one.open, one.target.Sealed)
	}
	if err != nil {
		return err
	}
	if err := t.moveOn(one.is, one.to.key, one.next); err != nil {
		return err
	}
	t.say(ctx, one)
	return nil
}

// say tells of a series that goes on elsewhere. Of many series of a template it says it once in their stores.
func (t *transferring) say(ctx context.Context, one *step) {
	if one.from.key == one.transfer.from.key {
		if err := store.NoteMove(ctx, one.from.store, one.from.key, one.to.store, one.to.key, one.next); err != nil {
			t.log.Warn("a move of a series is not noted in its stores", "source", one.was, "key", one.from.key, "error.message", err)
		}
	}
	m := Moved{one.was, one.from.key, one.from.store.Place, one.to.key, one.to.store.Place, one.next, one.seals}
	t.mu.Lock()
	t.moved = append(t.moved, m)
	t.mu.Unlock()
	t.log.Info("series moved", "source", m.Source, "key", m.Key, "store", m.Store, "to.key", m.ToKey, "to.store", m.ToStore, "next", m.Next, "sealed", m.Sealed)
}

// follows reports whether another process has sealed the row before.
func (s *step) follows(by idsource.Seal) bool { return s.at.Sealed != 0 && s.at.Sealed != by }

// wentOn refuses a row that does not stand above one that was sealed before: of one that another process moved, the
// series goes on here already.
func (s *step) wentOn(ctx context.Context) error {
	at, err := s.to.store.Segments.Position(ctx, s.to.key)
	if err == nil && (at.Next < s.next || at.Sealed != 0) {
		err = &idsource.SealedError{Next: s.at.Next}
	}
	return err
}

// undo seals what was opened, and then opens what was sealed.
func (t *transferring) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	withdrawn, failed := make([]uint64, len(t.steps)), make([]error, len(t.steps))
	_ = atOnce(len(t.steps), func(i int) error {
		withdrawn[i], failed[i] = t.withdraw(ctx, t.steps[i])
		return failed[i]
	})
	return atOnce(len(t.steps), func(i int) error {
		one, next, err := t.steps[i], uint64(0), error(nil)
		for k, other := range t.steps {
			if other.from.is(one.from) || other.to.is(one.to) {
				next, err = max(next, withdrawn[k]), errors.Join(err, failed[k])
			}
		}
		if err == nil {
			err = t.reopen(ctx, one, next)
		}
		if err != nil && one.sealing {
			err = fmt.Errorf("series %s stays sealed in %s: %w; idproxy source set opens it, above every id in use", one.from.key, one.from.store.Place, err)
		}
		return err
	})
}

// withdraw sees to it that nobody can take ids of the row after, where that is a row of ours alone, and returns up to where
// anybody did. What was to open the row is made sure of, since it may happen later.
func (t *transferring) withdraw(ctx context.Context, one *step) (next uint64, err error) {
	switch {
	case !one.opening && !one.sealing:
		return 0, nil
	case !one.opening: // others may have followed to a row that was open before
		at, err := one.to.store.Segments.Position(ctx, one.to.key)
		if err == nil && at.Next > 0 && at.Sealed == 0 {
			err = fmt.Errorf("other sources have key %s of %s, and its columns may have been given ids there", one.to.key, one.to.store.Place)
		}
		return 0, err
	case one.target.Next > 0 && one.target.Sealed == 0:
		return 0, fmt.Errorf("other sources have key %s of %s, and its columns may have been given ids there", one.to.key, one.to.store.Place)
	}
	to := one.to.store.Segments
	err = to.Open(ctx, one.to.key, one.open, one.target.Sealed)
	if _, sealed := errors.AsType[*idsource.SealedError](err); err != nil && !sealed {
		return 0, err
	}
	at, err := to.Seal(ctx, one.to.key, math.MaxUint64, t.by)
	if err == nil && at.Sealed != t.by {
		err = fmt.Errorf("another process moved it on from %s meanwhile", one.to.store.Place)
	}
	if err == nil && segment.IsTemplate(one.to.key) {
		err = t.begun(ctx, one)
	}
	if at.Unset {
		return 0, err
	}
	return at.Next, err
}

// begun refuses a template with the series of a table that began since the template was opened.
func (t *transferring) begun(ctx context.Context, of *step) error {
	known := slices.Clone(t.named)
	for _, one := range t.steps {
		known = append(known, one.to)
	}
	there, err := of.to.store.Keys.Keys(ctx)
	made := segment.OfTemplate(of.to.key)
	for _, key := range there {
		r := row{of.to.store, key}
		if err != nil || !made(key) || slices.ContainsFunc(known, r.is) {
			continue
		}
		var at idsource.Position
		if at, err = r.store.Segments.Position(ctx, key); err == nil && (at.Sealed == 0 || at.Used && at.Sealed == t.by) {
			err = fmt.Errorf("another process began with key %s of %s meanwhile", key, of.to.store.Place)
		}
	}
	return err
}

// reopen opens the row before at next or above.
func (t *transferring) reopen(ctx context.Context, one *step, next uint64) error {
	from := one.from.store.Segments
	switch {
	case one.sealing:
		err := from.Open(ctx, one.from.key, max(one.open, next), t.by)
		if _, other := errors.AsType[*idsource.SealedError](err); other { // who did moves it
			return nil
		}
		return err
	case next > 0 && one.at.Next > 0 && one.at.Sealed == 0:
		return from.Advance(ctx, one.from.key, next)
	}
	return nil
}

// moveOn has a source that is in force, and fills other columns from a row, drop what it holds below next.
func (s *Sources) moveOn(ctx context.Context, source, key string, next uint64) error {
	switch one := s.Named()[source].(type) {
	case nil: // it is made later
		return nil
	case *segment.Segment:
		return one.Advance(ctx, next-1)
	case *segment.PerTable:
		if segment.IsTemplate(key) { // those of tables come by themselves
			return nil
		}
		of, err := one.OfKey(key)
		if err != nil {
			return err
		}
		return of.Advance(ctx, next-1)
	}
	return fmt.Errorf("source %s has given ids of its series already: restart", source)
}
