package sources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/segment"
	"idproxy/integration/assert"
)

const eachTable = "{schema}.{table}"

// watched is a store that says what is about to be asked. An error is the answer.
type watched struct {
	idsource.SegmentStore
	asked func(what, key string, next uint64) error
}

func (w watched) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	if err := w.asked("Open", key, next); err != nil {
		return err
	}
	return w.SegmentStore.Open(ctx, key, next, seal)
}

func (w watched) Seal(ctx context.Context, key string, below uint64, seal idsource.Seal) (idsource.Position, error) {
	if err := w.asked("Seal", key, 0); err != nil {
		return idsource.Position{}, err
	}
	return w.SegmentStore.Seal(ctx, key, below, seal)
}

// moving is a process whose series of all tables goes on in another place: of each store, of the keys that stand somewhere.
type moving struct {
	a, b  *file.Store
	mu    sync.Mutex // of asked
	asked func(store, what, key string, next uint64) error
	given HighWater // to the process's predecessor
}

func newMoving(t *testing.T, stand map[string]uint64) *moving {
	m := &moving{asked: func(string, string, string, uint64) error { return nil }}
	for _, st := range []**file.Store{&m.a, &m.b} {
		*st = assert.Of(file.New(file.Config{Dir: t.TempDir() + "/ids"})).Must(t)
		t.Cleanup(func() { _ = (*st).Close() })
	}
	for key, next := range stand {
		assert.Must(t, m.a.Open(t.Context(), key, next, 0))
	}
	return m
}

func (m *moving) at(t *testing.T, s *file.Store, key string) idsource.Position {
	t.Helper()
	return assert.Of(s.Position(t.Context(), key)).Must(t)
}

// reload has a process with a series in store a reload a configuration that has it in store b.
func (m *moving) reload(t *testing.T, was, is string) error {
	t.Helper()
	cfg := func(store, key string) *config.Config {
		text := fmt.Sprintf(`
listeners: [{name: all, listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}]
stores: {a: {etcd: {endpoints: [a:2379]}}, b: {etcd: {endpoints: [b:2379]}}}
sources: {ids: {segment: {store: %s, key: "%s"}}}
rules: [{table: "shop.*", column: id, source: ids}]
`, store, key)
		return assert.Of(config.Parse("idproxy.yaml", []byte(text), func(string) (string, bool) { return "", false })).Must(t)
	}
	s := assert.Of(Open(cfg("a", was), Options{
		Logger:  slog.New(slog.DiscardHandler),
		Fetched: func(string, time.Duration) {},
		Store:   func(c *config.Store, _ *slog.Logger) (store.Store, error) { return m.store(c.Name), nil },
	})).Must(t)
	defer s.Close() //nolint:errcheck // the test is over
	s.Inherit(m.given)
	left, err := s.Reload(t.Context(), cfg("b", is))
	_ = left.Close()
	return err
}

// store is one of the stores, watched.
func (m *moving) store(name string) store.Store {
	of := map[string]*file.Store{"a": m.a, "b": m.b}[name]
	one := watched{of, func(what, key string, next uint64) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.asked(name, what, key, next)
	}}
	return store.Store{Segments: one, Keys: of, Place: name, Places: []string{name}, Close: func() error { return nil }}
}

// bare is what makes transfers, without a process.
func bare() *transferring {
	return &transferring{
		given:  func(row) uint64 { return 0 },
		moveOn: func(string, string, uint64) error { return nil },
		log:    slog.New(slog.DiscardHandler),
	}
}

// other is another process that moves the same series, which nobody watches.
func (m *moving) other() *moving {
	return &moving{a: m.a, b: m.b, asked: func(string, string, string, uint64) error { return nil }}
}

// take is what another process takes of a store.
func take(t *testing.T, s *file.Store, key string) (lo, hi uint64) {
	t.Helper()
	lo, hi, err := s.Reserve(t.Context(), idsource.Ask{Key: key, Count: 10, Last: math.MaxInt64})
	assert.Must(t, err)
	return lo, hi
}

// begin has another process, which has the new configuration, begin with a table.
func (m *moving) begin(t *testing.T, store idsource.SegmentStore, table string) error {
	p := assert.Of(segment.NewPerTable(segment.Config{Name: "ids", Store: store, Keys: m.b.Keys, Key: eachTable, Step: 10, MaxStep: 10})).Must(t)
	series := assert.Of(p.Series("shop", table)).Must(t)
	if err := series.Admit(t.Context(), "shop."+table+".id", 0); err != nil {
		return err
	}
	return series.Fill(t.Context(), make([]uint64, 1), 1)
}

// TestFollowsTemplate: while another process moves a template, this one seals no series of a table, and opens none.
func TestFollowsTemplate(t *testing.T) {
	m := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100})
	assert.Of(m.a.Seal(t.Context(), eachTable, math.MaxUint64, idsource.NewSeal())).Must(t)
	m.asked = func(store, what, key string, _ uint64) error {
		if key == "shop.a" {
			t.Errorf("%s of %s in store %s", what, key, store)
		}
		return nil
	}
	assert.MustTrue(t, m.reload(t, eachTable, eachTable) != nil, "the reload fails")
}

// TestUndoOfTwo: two series become one, and another process takes ids of that before the second opening is known. Both go on
// above those ids.
func TestUndoOfTwo(t *testing.T) {
	m := newMoving(t, map[string]uint64{"one": 100, "two": 500})
	opened, hi := 0, uint64(0)
	m.asked = func(store, what, key string, next uint64) (err error) {
		if store != "b" || what != "Open" {
			return nil
		}
		if opened++; opened != 2 {
			return nil
		}
		assert.Must(t, m.b.Open(t.Context(), key, next, 0))
		_, hi, err = m.b.Reserve(t.Context(), idsource.Ask{Key: key, Count: 10, Last: math.MaxInt64})
		return errors.Join(errors.New("no answer"), err)
	}
	moves := bare()
	to := row{m.store("b"), "both"}
	list := []transfer{{from: row{m.store("a"), "one"}, to: to, seals: true}, {from: row{m.store("a"), "two"}, to: to, seals: true}}
	assert.MustTrue(t, moves.all(t.Context(), list) != nil, "the second move fails")
	assert.Must(t, moves.undo(t.Context()))
	for _, key := range []string{"one", "two"} {
		at := m.at(t, m.a, key)
		assert.True(t, at.Sealed == 0 && at.Next >= hi, "%s is at %+v, and ids below %d were given", key, at, hi)
	}
}

// TestUndoOfOthersMove: another process seals the series while this one does, and this one is not answered. What the other
// one moves stays sealed.
func TestUndoOfOthersMove(t *testing.T) {
	m, other := newMoving(t, map[string]uint64{"order_id": 100}), idsource.NewSeal()
	m.asked = func(_, what, key string, _ uint64) error {
		if what != "Seal" {
			return nil
		}
		_, err := m.a.Seal(t.Context(), key, math.MaxUint64, other)
		return errors.Join(errors.New("no answer"), err)
	}
	assert.MustTrue(t, m.reload(t, "order_id", "order_id") != nil, "the reload fails")
	assert.Equal(t, "sealed by", m.at(t, m.a, "order_id").Sealed, other)
}

// lostOnce has the first answer of an opening in store b be lost.
func (m *moving) lostOnce(t *testing.T) {
	lost := false
	m.asked = func(store, what, key string, next uint64) error {
		if store != "b" || what != "Open" || lost {
			return nil
		}
		lost = true
		return errors.Join(errors.New("no answer"), m.b.Open(t.Context(), key, next, 0))
	}
}

// TestUndoOfMovedOn: the series of tables become one, and before that is done another process has followed and moves it on. The
// template stays sealed, too: tables begin in the other place.
func TestUndoOfMovedOn(t *testing.T) {
	m, opened := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100, "shop.b": 900}), 0
	m.asked = func(store, what, key string, next uint64) (err error) {
		if store != "b" || what != "Open" {
			return nil
		}
		if opened++; opened == 1 {
			err = m.b.Open(t.Context(), key, next, 0)
			_, sealing := m.b.Seal(t.Context(), key, math.MaxUint64, idsource.NewSeal())
			err = errors.Join(err, sealing)
		}
		return err
	}
	err := m.reload(t, eachTable, "order_id")
	assert.True(t, err != nil && strings.Contains(err.Error(), eachTable+" stays sealed"), "the reload: %v", err)
	for _, key := range []string{eachTable, "shop.a", "shop.b"} {
		assert.True(t, m.at(t, m.a, key).Sealed != 0, "%s is open", key)
	}
}

// TestUndoOfBegunTables: the answer of the last opening, that of a template, is lost, and another process begins with a table
// there. The template before, or the one series, stays sealed.
func TestUndoOfBegunTables(t *testing.T) {
	for was, stand := range map[string]map[string]uint64{eachTable: {eachTable: 0, "shop.a": 100}, "order_id": {"order_id": 100}} {
		t.Run(was, func(t *testing.T) {
			m := newMoving(t, stand)
			m.asked = func(store, what, key string, next uint64) error {
				if store != "b" || what != "Open" || key != eachTable || m.at(t, m.b, "shop.c").Next != 0 {
					return nil
				}
				err := m.b.Open(t.Context(), key, next, m.at(t, m.b, key).Sealed)
				return errors.Join(errors.New("no answer"), err, m.begin(t, m.b, "c"))
			}
			err := m.reload(t, was, eachTable)
			assert.True(t, err != nil && strings.Contains(err.Error(), "stays sealed"), "the reload: %v", err)
			assert.True(t, m.at(t, m.b, "shop.c").Next > 1, "another process began with a table")
			assert.True(t, m.at(t, m.a, was).Sealed != 0, "it is open")
		})
	}
}

// TestUndoOfUnused: a series of which nobody said where it begins is so again.
func TestUndoOfUnused(t *testing.T) {
	m := newMoving(t, map[string]uint64{"order_id": 0})
	m.lostOnce(t)
	assert.MustTrue(t, m.reload(t, "order_id", "order_id") != nil, "the reload fails")
	assert.Equal(t, "it was at", m.at(t, m.a, "order_id"), idsource.Position{Next: 1, Unset: true})
	assert.True(t, m.at(t, m.b, "order_id").Sealed != 0, "the row after is sealed")
}

// TestUndoBesideOthers: the row after is of other sources, too. Whoever followed may have given ids of it: the one before stays
// sealed.
func TestUndoBesideOthers(t *testing.T) {
	m := newMoving(t, map[string]uint64{"order_id": 100})
	assert.Must(t, m.b.Open(t.Context(), "order_id", 50, 0))
	m.lostOnce(t)
	err := m.reload(t, "order_id", "order_id")
	assert.True(t, err != nil && strings.Contains(err.Error(), "other sources have key order_id of b"), "the reload: %v", err)
	assert.True(t, m.at(t, m.a, "order_id").Sealed != 0 && m.at(t, m.b, "order_id").Sealed == 0, "the row before is open")
}

// TestMoveOfPutBack: a series whose store stands below what this process was given, or lost it, goes nowhere: others may have
// been given more. It is sealed where it is there.
func TestMoveOfPutBack(t *testing.T) {
	for name, stand := range map[string]map[string]uint64{"put back": {"order_id": 100}, "emptied": {}} {
		t.Run(name, func(t *testing.T) {
			m := newMoving(t, stand)
			m.given = HighWater{"a": {"order_id": 200}}
			err := m.reload(t, "order_id", "order_id")
			assert.True(t, err != nil && strings.Contains(err.Error(), "the store went back"), "the reload: %v", err)
			assert.True(t, (m.at(t, m.a, "order_id").Sealed != 0) == (len(stand) > 0), "the series is at %+v", m.at(t, m.a, "order_id"))
			assert.Equal(t, "it goes on", m.at(t, m.b, "order_id"), idsource.Position{})
		})
	}
}

// TestOneSeriesOfTables: the series of tables become one, whose first id is above those of all.
func TestOneSeriesOfTables(t *testing.T) {
	m := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100, "shop.b": 900, "shop.c": 500})
	opened := 0
	m.asked = func(store, what, key string, next uint64) error {
		if store == "b" && what == "Open" && key == "order_id" {
			opened++
			assert.True(t, next >= 900, "it is opened at %d", next)
			for _, key := range []string{eachTable, "shop.a", "shop.b", "shop.c"} {
				assert.True(t, m.at(t, m.a, key).Sealed != 0, "%s is open then", key)
			}
		}
		return nil
	}
	assert.Must(t, m.reload(t, eachTable, "order_id"))
	assert.True(t, opened > 0, "it was opened")
	assert.Equal(t, "stands at", m.at(t, m.b, "order_id").Next, 900)
}

// TestTemplateGoesLast: a process that has the new configuration begins with no table before the series of all are there.
func TestTemplateGoesLast(t *testing.T) {
	m := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100, "shop.b": 900})
	tables := 0
	m.asked = func(store, what, key string, _ uint64) error {
		if store != "b" || what != "Open" || key == eachTable {
			return nil
		}
		tables++
		if m.at(t, m.b, "shop.b").Next == 0 {
			assert.ErrorIs(t, "Admit before the series is there", m.begin(t, m.b, "b"), idsource.Behind)
		}
		return nil
	}
	assert.Must(t, m.reload(t, eachTable, eachTable))
	assert.Equal(t, "tables", tables, 2)
	for key, next := range map[string]uint64{eachTable: 1, "shop.a": 100, "shop.b": 900} {
		at := m.at(t, m.b, key)
		assert.True(t, at.Sealed == 0 && at.Next == next, "%s is at %+v", key, at)
	}
}

// TestOneSeriesBecomesMany: a template that the series of tables were moved away from goes on above the one series.
func TestOneSeriesBecomesMany(t *testing.T) {
	m := newMoving(t, map[string]uint64{"order_id": 1000})
	for _, key := range []string{eachTable, "shop.a"} {
		assert.Must(t, m.b.Open(t.Context(), key, 10, 0))
		assert.Of(m.b.Seal(t.Context(), key, math.MaxUint64, idsource.NewSeal())).Must(t)
	}
	assert.Must(t, m.reload(t, "order_id", eachTable))
	for _, key := range []string{eachTable, "shop.a"} {
		at := m.at(t, m.b, key)
		assert.True(t, at.Sealed == 0 && at.Next == 1000, "%s is at %+v", key, at)
	}
}

// TestFollowsOneThatWasOpen: the place after is open for other sources, too, and this process reloads while another one has
// sealed the template and not yet the series of a table. It does not follow.
func TestFollowsOneThatWasOpen(t *testing.T) {
	for _, is := range []string{eachTable, "order_id"} {
		t.Run(is, func(t *testing.T) {
			m, met := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100}), false
			assert.Must(t, m.b.Open(t.Context(), is, 50, 0))
			m.asked = func(store, what, key string, _ uint64) error {
				if store == "a" && what == "Seal" && key == "shop.a" && !met {
					met = true
					assert.True(t, m.other().reload(t, eachTable, is) != nil, "it follows while shop.a is at %+v", m.at(t, m.a, key))
				}
				return nil
			}
			assert.Must(t, m.reload(t, eachTable, is))
			assert.True(t, met, "the two reloads met")
		})
	}
}

// TestKeyOfNoTable: a key that another source names does not open a template that could have made it.
func TestKeyOfNoTable(t *testing.T) {
	m := newMoving(t, map[string]uint64{"billing.seq": 10})
	cfg := assert.Of(config.Parse("idproxy.yaml", []byte(`
listeners: [{name: all, listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}]
stores: {a: {etcd: {endpoints: [a:2379]}}}
sources: {ids: {segment: {store: a, key: "{schema}.{table}"}}, bills: {segment: {store: a, key: billing.seq}}}
rules: [{table: "shop.*", column: id, source: ids}, {table: "billing.*", column: id, source: bills}]
`), func(string) (string, bool) { return "", false })).Must(t)
	s := assert.Of(Open(cfg, Options{
		Logger: slog.New(slog.DiscardHandler),
		Store:  func(c *config.Store, _ *slog.Logger) (store.Store, error) { return m.store(c.Name), nil },
	})).Must(t)
	defer s.Close() //nolint:errcheck // the test is over
	series := assert.Of(s.Named()["ids"].Series("shop", "a")).Must(t)
	assert.ErrorIs(t, "Admit", series.Admit(t.Context(), "shop.a.id", 99), idsource.ErrNoKey)
}

// TestAllSealedBeforeAnyOpens: of two series that become one both are sealed before that is open.
func TestAllSealedBeforeAnyOpens(t *testing.T) {
	m, sealed := newMoving(t, map[string]uint64{"one": 100, "two": 500}), 0
	m.asked = func(store, what, _ string, _ uint64) error {
		if store == "a" && what == "Seal" {
			sealed++
			assert.Equal(t, "both is at", m.at(t, m.b, "both"), idsource.Position{})
		}
		return nil
	}
	to := row{m.store("b"), "both"}
	assert.Must(t, bare().all(t.Context(), []transfer{{from: row{m.store("a"), "one"}, to: to, seals: true}, {from: row{m.store("a"), "two"}, to: to, seals: true}}))
	assert.Equal(t, "sealed", sealed, 2)
	assert.Equal(t, "both stands at", m.at(t, m.b, "both").Next, 500)
}

// hooked is a store with something done behind an opening or a seal, whose error is the answer.
type hooked struct {
	idsource.SegmentStore
	opened, sealed func(key string) error
}

func (h hooked) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	err := h.SegmentStore.Open(ctx, key, next, seal)
	if err == nil && h.opened != nil {
		err = h.opened(key)
	}
	return err
}

func (h hooked) Seal(ctx context.Context, key string, below uint64, seal idsource.Seal) (idsource.Position, error) {
	at, err := h.SegmentStore.Seal(ctx, key, below, seal)
	if err == nil && h.sealed != nil {
		err = h.sealed(key)
	}
	return at, err
}

// TestUndoOfFollowed: the answer of the first seal is lost, and another process follows to a place that was open. The series
// stays sealed where it was.
func TestUndoOfFollowed(t *testing.T) {
	m := newMoving(t, map[string]uint64{"order_id": 100})
	assert.Must(t, m.b.Open(t.Context(), "order_id", 500, 0))
	from, moves := m.store("a"), bare()
	from.Segments = hooked{SegmentStore: m.a, sealed: func(key string) error {
		assert.Must(t, m.other().reload(t, key, key))
		take(t, m.b, key)
		return errors.New("no answer")
	}}
	assert.MustTrue(t, moves.all(t.Context(), []transfer{{from: row{from, "order_id"}, to: row{m.store("b"), "order_id"}, seals: true}}) != nil, "the move fails")
	assert.True(t, moves.undo(t.Context()) != nil, "it is undone")
	assert.True(t, m.at(t, m.a, "order_id").Sealed != 0, "it is open")
}

// unsealable is a store that knows no seals.
type unsealable struct{ idsource.SegmentStore }

func (unsealable) Seal(context.Context, string, uint64, idsource.Seal) (idsource.Position, error) {
	return idsource.Position{}, errors.ErrUnsupported
}

// TestUndoOfUnsealed: a series that could not be sealed goes on above what was given in the other place.
func TestUndoOfUnsealed(t *testing.T) {
	m := newMoving(t, map[string]uint64{"order_id": 100})
	from, to, hi, moves := m.store("a"), m.store("b"), uint64(0), bare()
	from.Segments = unsealable{m.a}
	to.Segments = hooked{SegmentStore: m.b, opened: func(key string) error {
		if hi > 0 {
			return nil
		}
		_, hi = take(t, m.b, key)
		return errors.New("no answer")
	}}
	assert.MustTrue(t, moves.all(t.Context(), []transfer{{from: row{from, "order_id"}, to: row{to, "order_id"}, seals: true}}) != nil, "the move fails")
	assert.Must(t, moves.undo(t.Context()))
	assert.True(t, m.at(t, m.a, "order_id").Next >= hi, "it is at %+v, and ids below %d were given", m.at(t, m.a, "order_id"), hi)
}

// TestUndoOfTableThatWasSealed: a table began where the template was open for a moment, ids of it were given, and who began with
// it sealed it when the template was sealed again.
func TestUndoOfTableThatWasSealed(t *testing.T) {
	m := newMoving(t, map[string]uint64{eachTable: 0, "shop.a": 100})
	to, met, moves := m.store("b"), false, bare()
	to.Segments = hooked{SegmentStore: m.b, opened: func(key string) error {
		if key != eachTable || met {
			return nil
		}
		met = true
		assert.Must(t, m.begin(t, m.b, "c"))
		_, err := m.b.Seal(t.Context(), "shop.c", math.MaxUint64, moves.by)
		return errors.Join(errors.New("no answer"), err)
	}}
	assert.MustTrue(t, moves.all(t.Context(), []transfer{{from: row{m.store("a"), eachTable}, to: row{to, eachTable}, seals: true}}) != nil, "the move fails")
	assert.True(t, moves.undo(t.Context()) != nil, "it is undone")
	assert.True(t, m.at(t, m.a, eachTable).Sealed != 0, "the template is open")
}

// TestUndoOfKeyWithTheTemplatesSeal: who makes the key of a new table while the template is sealed seals it likewise. Undoing
// opens it, too.
func TestUndoOfKeyWithTheTemplatesSeal(t *testing.T) {
	m := newMoving(t, map[string]uint64{eachTable: 0})
	from, to, moves := m.store("a"), m.store("b"), bare()
	from.Segments = hooked{SegmentStore: m.a, sealed: func(key string) error {
		if key != eachTable {
			return nil
		}
		_, err := m.a.Seal(t.Context(), "shop.c", math.MaxUint64, moves.by)
		return err
	}}
	to.Segments = hooked{SegmentStore: m.b, opened: func(string) error { return errors.New("no answer") }}
	assert.MustTrue(t, moves.all(t.Context(), []transfer{{from: row{from, eachTable}, to: row{to, eachTable}, seals: true}}) != nil, "the move fails")
	to.Segments = m.b
	for _, one := range moves.steps {
		one.to.store.Segments = m.b
	}
	assert.Must(t, moves.undo(t.Context()))
	assert.Equal(t, "shop.c is sealed by", m.at(t, m.a, "shop.c").Sealed, 0)
}
