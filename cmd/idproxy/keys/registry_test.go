package keys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/segment"
	"idproxy/idsource/uuid"
	"idproxy/integration/assert"
)

// fewSources are sources that stay as they are.
type fewSources struct {
	stores map[string]sources.Keyed
	named  map[string]idsource.Source
}

func (s *fewSources) Stores() map[string]sources.Keyed  { return s.stores }
func (s *fewSources) Named() map[string]idsource.Source { return s.named }

// awayStore is a store that does not list its keys while it is away.
type awayStore struct {
	*file.Store
	away  bool
	asked atomic.Int32
}

func (s *awayStore) Keys(ctx context.Context) ([]string, error) {
	s.asked.Add(1)
	if s.away {
		return nil, errors.New("connection refused")
	}
	return s.Store.Keys(ctx)
}

// TestKeyInTwoStores: a key that two stores have is served from neither, and above all not from the
// one that happens to answer when the program starts: another process goes on with the other one.
func TestKeyInTwoStores(t *testing.T) {
	src := &fewSources{stores: map[string]sources.Keyed{}}
	both := map[string]*awayStore{}
	for name, own := range map[string]string{"old": "archive", "new": "events"} {
		st := openFile(t)
		assert.Must(t, errors.Join(st.Open(t.Context(), "orders", 100, 0), st.Open(t.Context(), own, 1, 0)))
		both[name] = &awayStore{Store: st}
		src.stores[name] = sources.Keyed{Store: store.Store{Segments: st, Keys: both[name], Close: st.Close}}
	}
	s := New(slog.New(slog.DiscardHandler), src)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	for _, tt := range []struct {
		away bool
		want []string
	}{{true, nil}, {false, []string{"archive", "events"}}, {true, []string{"archive", "events"}}} {
		both["new"].away = tt.away
		all := s.Refresh(t.Context())
		assert.True(t, all != tt.away, "one away: %v; all have answered: %v", tt.away, all)
		got := slices.Sorted(maps.Keys(*s.known.Load()))
		assert.True(t, slices.Equal(got, tt.want), "one away: %v; keys %q are served, want %q", tt.away, got, tt.want)
	}
}

// TestKeysAskedAgain: a store that did not answer is soon asked again, also when it was away at the
// start.
func TestKeysAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &awayStore{away: true}
		src := &fewSources{stores: map[string]sources.Keyed{"s": {Store: store.Store{Keys: st}}}}
		s := New(slog.New(slog.DiscardHandler), src)
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go s.KeepFresh(ctx, s.Refresh(ctx))
		for want := int32(2); want < 5; want++ {
			time.Sleep(keysRetry)
			synctest.Wait()
			assert.MustEqual(t, "asked, times", st.asked.Load(), want)
		}
	})
}

// serveTables serves the keys of a store, of which a source has a series for each table,
// ids_{table}.
func serveTables(t *testing.T, st store.Store) (*Registry, *segment.PerTable) {
	t.Helper()
	p := assert.Of(segment.NewPerTable(segment.Config{Name: "each", Store: st.Segments, Key: "ids_{table}"})).Must(t)
	src := &fewSources{
		stores: map[string]sources.Keyed{"local": {Store: st, Templates: map[string]*segment.PerTable{"ids_{table}": p}}},
		named:  map[string]idsource.Source{"each": p},
	}
	s := New(slog.New(slog.DiscardHandler), src)
	t.Cleanup(func() { assert.NoError(t, errors.Join(s.Close(), p.Close(context.Background()))) })
	return s, p
}

// idOf draws an id of a key, which must be served.
func idOf(t *testing.T, r *Registry, key string) (uint64, error) {
	t.Helper()
	s, ok := r.Lookup(key)
	assert.MustTrue(t, ok, "key %s is not served", key)
	var id [1]uint64
	err := s.Fill(t.Context(), id[:], 1)
	return id[0], err
}

// TestKeyOfTable: by the key of a table's series programs ask for ids of that series: what an
// INSERT has moved past is not given to them either.
func TestKeyOfTable(t *testing.T) {
	st := openFile(t)
	away := &awayStore{Store: st}
	s, p := serveTables(t, store.Store{Segments: st, Keys: away, Close: st.Close})
	assert.Must(t, errors.Join(st.Open(t.Context(), "ids_orders", 100, 0), st.Open(t.Context(), "other", 1, 0)))
	s.Refresh(t.Context())
	assert.Of(idOf(t, s, "ids_orders")).Equal(t, "the first id", 100)
	table := assert.Of(p.Series("shop", "Orders")).Must(t)
	assert.Must(t, table.Advance(t.Context(), 500))
	away.away = true
	s.Refresh(t.Context())
	assert.Of(idOf(t, s, "ids_orders")).Equal(t, "the id behind 500", 501)
	_, ok := s.Lookup("other")
	assert.True(t, ok, "a key of no table is not served")
}

// standIn is a store in whose place another one comes.
type standIn struct{ idsource.SegmentStore }

func openFile(t *testing.T) *file.Store {
	t.Helper()
	st := assert.Of(file.New(file.Config{Dir: t.TempDir() + "/ids"})).Must(t)
	t.Cleanup(func() { assert.NoError(t, st.Close()) })
	return st
}

// TestKeyOfEmptiedStore: a key that was listed, and is gone when the first id is asked for, is not
// begun anew.
func TestKeyOfEmptiedStore(t *testing.T) {
	full, empty := openFile(t), openFile(t)
	assert.Must(t, errors.Join(full.Open(t.Context(), "orders", 100, 0), full.Open(t.Context(), "ids_items", 100, 0)))
	now := &standIn{SegmentStore: full}
	s, _ := serveTables(t, store.Store{Segments: now, Keys: full, Close: full.Close})
	s.Refresh(t.Context())
	for _, gone := range []bool{true, false} { // then it is put back
		now.SegmentStore = full
		if gone {
			now.SegmentStore = empty
		}
		for _, key := range []string{"orders", "ids_items"} {
			id, err := idOf(t, s, key)
			assert.True(t, (err != nil) == gone && (gone || id == 100), "store emptied %v: id %d of %s, %v", gone, id, key, err)
		}
	}
	keys, err := empty.Keys(t.Context())
	assert.True(t, err == nil && len(keys) == 0, "keys %q were made, %v", keys, err)
}

// TestPosition: that of a segment is what its store says; other keys have none.
func TestPosition(t *testing.T) {
	st := openFile(t)
	assert.Must(t, st.Open(t.Context(), "orders", 100, 0))
	r := New(slog.New(slog.DiscardHandler), &fewSources{
		stores: map[string]sources.Keyed{"local": {Store: store.Store{Segments: st, Keys: st, Close: st.Close}}},
		named:  map[string]idsource.Source{"links": uuid.New()},
	})
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	r.Refresh(t.Context())
	assert.Of(r.Position(t.Context(), "orders")).Equal(t, "orders stands at", 100)
	for _, key := range []string{"links", "none"} {
		assert.Of(r.Position(t.Context(), key)).Fails(t, key+" has a position", "")
	}
}

// TestCreate makes keys where there is none, and nowhere else.
func TestCreate(t *testing.T) {
	main, other := openFile(t), openFile(t)
	assert.Must(t, errors.Join(other.Open(t.Context(), "elsewhere", 5, 0), main.Open(t.Context(), "here", 5, 0)))
	each := assert.Of(segment.NewPerTable(segment.Config{Name: "each", Store: main, Key: "ids_{table}"})).Must(t)
	own := assert.Of(segment.New(segment.Config{Name: "orders", Store: main, Key: "own"})).Must(t)
	src := &fewSources{
		stores: map[string]sources.Keyed{
			"main": {
				Store: store.Store{Segments: main, Keys: main, Close: main.Close}, ByKey: map[string]idsource.Source{"own": own},
				Templates: map[string]*segment.PerTable{"ids_{table}": each},
			},
			"other": {Store: store.Store{Segments: other, Keys: other, Close: other.Close}},
		},
		named: map[string]idsource.Source{"orders": own, "names": uuid.New()},
	}
	r := New(slog.New(slog.DiscardHandler), src)
	all := map[string]idsource.Source{"orders": own, "each": each}
	t.Cleanup(func() { assert.NoError(t, errors.Join(r.Close(), sources.CloseAll(all))) })
	r.Refresh(t.Context())
	create := r.Creator("main")
	for key, want := range map[string]string{
		"here": "there is a key", "elsewhere": "there is a key", "orders": "the name of a source", "names": "the name of a source",
		"own": "one of a source", "ids_orders": "one of a source",
	} {
		assert.Fails(t, key, create(t.Context(), key, 1, 0), want)
	}
	assert.Must(t, create(t.Context(), "new", 700, 0))
	assert.Of(idOf(t, r, "new")).Equal(t, "the first id", 700)
	r.Refresh(t.Context())
	assert.Of(idOf(t, r, "new")).Equal(t, "the next id of the same series", 701)
	assert.Fails(t, "a key was created twice", create(t.Context(), "new", 1, 0), "")
	assert.NoError(t, create(t.Context(), "stepped", 1, 50), "with a step")
	to, err := main.Tuning(t.Context(), "stepped")
	assert.True(t, to.Step == 50 && err == nil, "the step is kept as %+v, %v", to, err)
	assert.True(t, New(slog.New(slog.DiscardHandler), src).Creator("") == nil, "keys can be created in no store")
	assert.Fails(t, "a key was created in a store that is not there", r.Creator("nowhere")(t.Context(), "x", 1, 0), "")
}

// slowStore is a store that says that it is asked where a key stands, and waits with its answer.
type slowStore struct {
	*file.Store
	asked chan string
	going chan struct{}
}

func (s *slowStore) Position(ctx context.Context, key string) (idsource.Position, error) {
	p, err := s.Store.Position(ctx, key)
	s.asked <- key
	select {
	case <-s.going:
		return p, err
	case <-ctx.Done():
		return idsource.Position{}, ctx.Err()
	}
}

func registryOf(t *testing.T, stores map[string]idsource.SegmentStore, lists map[string]*file.Store) *Registry {
	t.Helper()
	src := &fewSources{stores: map[string]sources.Keyed{}}
	for name, st := range stores {
		src.stores[name] = sources.Keyed{Store: store.Store{Segments: st, Keys: lists[name]}}
	}
	r := New(slog.New(slog.DiscardHandler), src)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// TestCreateHoldsNobodyUp: while stores are asked about a key, all of them at the same time, other
// keys are read and made, and the key is made once.
func TestCreateHoldsNobodyUp(t *testing.T) {
	files := map[string]*file.Store{"a": openFile(t), "b": openFile(t)}
	slow, asking := map[string]idsource.SegmentStore{}, make(chan string)
	going := make(chan struct{})
	for name, st := range files {
		slow[name] = &slowStore{st, asking, going}
	}
	r := registryOf(t, slow, files)
	made := make(chan error, 2)
	for _, key := range []string{"one", "two"} {
		go func() { made <- r.Create(t.Context(), "a", key, 5, 0) }()
	}
	asked := map[string]int{}
	for range 4 { // two keys, two stores; none of them has answered
		select {
		case key := <-asking:
			asked[key]++
		case <-time.After(2 * time.Minute):
			t.Fatalf("asked of two stores at the same time: %v, want each key of both", asked)
		}
	}
	assert.Fails(t, "a key that is being created, again", r.Create(t.Context(), "a", "one", 9, 0), "is being created")
	assert.True(t, r.Refresh(t.Context()), "the keys were not read")
	go func() {
		for range asking { //nolint:revive // nobody is to wait to be heard
		}
	}()
	defer close(asking)
	close(going)
	assert.NoError(t, errors.Join(<-made, <-made))
	_, one := r.Lookup("one")
	assert.True(t, one, "the key is not served")
	assert.True(t, r.Refresh(t.Context()), "the keys were not read")
	_, two := r.Lookup("two")
	assert.True(t, two, "the key is not served once the keys were read")
}

// lateLister is a store whose list of keys is from before what happens during it.
type lateLister struct {
	*file.Store
	during func()
}

func (s *lateLister) Keys(ctx context.Context) ([]string, error) {
	keys, err := s.Store.Keys(ctx)
	s.during()
	return keys, err
}

// TestCreatedWhileRead: a key that is made while the keys are read stays, whatever the list says.
func TestCreatedWhileRead(t *testing.T) {
	st := openFile(t)
	late := &lateLister{Store: st}
	r := New(slog.New(slog.DiscardHandler), &fewSources{stores: map[string]sources.Keyed{"main": {Store: store.Store{Segments: st, Keys: late}}}})
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	late.during = func() { assert.NoError(t, r.Create(t.Context(), "main", "new", 5, 0)) }
	r.Refresh(t.Context())
	assert.Of(idOf(t, r, "new")).Equal(t, "the first id", 5)
}

// secondLook is a store that says where a key stands before something happens, the second time.
type secondLook struct {
	*file.Store
	looks  int
	during func()
}

func (s *secondLook) Position(ctx context.Context, key string) (idsource.Position, error) {
	p, err := s.Store.Position(ctx, key)
	if s.looks++; s.looks == 2 {
		s.during()
	}
	return p, err
}

// TestCreateBesideReading: a key that is about to be served from one store is not served from
// another one, where a process made it behind the last look and the keys are read then.
func TestCreateBesideReading(t *testing.T) {
	a, b, before := openFile(t), openFile(t), openFile(t)
	look := &secondLook{Store: b}
	r := registryOf(t, map[string]idsource.SegmentStore{"a": a, "b": look}, map[string]*file.Store{"a": before, "b": b}) // a's list is from before
	look.during = func() {
		assert.NoError(t, b.Open(t.Context(), "one", 5, 0))
		r.Refresh(t.Context())
		_, ok := r.Lookup("one")
		assert.True(t, !ok, "the key is served before it is known from where")
	}
	assert.Must(t, r.Create(t.Context(), "a", "one", 5, 0))
	_, ok := r.Lookup("one")
	assert.True(t, ok && look.looks == 2, "served: %t, behind %d looks", ok, look.looks)
}

// TestCreateInTwoStores: two processes that make one key in two stores at the same time never both
// serve it, and neither does once it has read the keys.
func TestCreateInTwoStores(t *testing.T) {
	files := map[string]*file.Store{"a": openFile(t), "b": openFile(t)}
	slow, asking, going := map[string]idsource.SegmentStore{}, make(chan string, 100), make(chan struct{})
	for name, st := range files {
		slow[name] = &slowStore{st, asking, going}
	}
	processes := map[string]*Registry{"a": registryOf(t, slow, files), "b": registryOf(t, slow, files)}
	made := make(chan error, len(processes))
	for in, r := range processes {
		go func() { made <- r.Create(t.Context(), in, "one", 5, 0) }()
	}
	for range 4 { // both have found the key nowhere
		<-asking
	}
	close(going)
	refused := 0
	for range processes {
		if err := <-made; err != nil {
			refused++
			assert.True(t, strings.Contains(err.Error(), "is served once no other store has it"), "%v", err)
		}
	}
	assert.True(t, refused != 0, "both have made the key")
	serving := func() (n int) {
		for _, r := range processes {
			if _, ok := r.Lookup("one"); ok {
				n++
			}
		}
		return n
	}
	assert.Equal(t, fmt.Sprintf("serve the key, and %d were refused", refused), serving(), 2-refused)
	for _, r := range processes {
		r.Refresh(t.Context())
	}
	assert.Equal(t, "serve a key that is in two stores", serving(), 0)
}
