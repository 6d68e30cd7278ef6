package keys

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
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
		assert.Must(t, errors.Join(st.Advance(t.Context(), "orders", 100), st.Advance(t.Context(), own, 1)))
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
			asked := st.asked.Load()
			assert.MustTrue(t, asked == want, "asked %d times, want %d", asked, want)
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

// TestKeyOfTable: by the key of a table's series programs ask for ids of that series: what an
// INSERT has moved past is not given to them either.
func TestKeyOfTable(t *testing.T) {
	st := openFile(t)
	away := &awayStore{Store: st}
	s, p := serveTables(t, store.Store{Segments: st, Keys: away, Close: st.Close})
	assert.Must(t, errors.Join(st.Advance(t.Context(), "ids_orders", 100), st.Advance(t.Context(), "other", 1)))
	next := func() uint64 {
		t.Helper()
		one, ok := s.Lookup("ids_orders")
		assert.MustTrue(t, ok, "the key is not served")
		var ids [1]uint64
		assert.Must(t, one.Fill(t.Context(), ids[:], 1))
		return ids[0]
	}
	s.Refresh(t.Context())
	assert.Equal(t, "the first id", next(), 100)
	table := assert.Of(p.Series("shop", "Orders")).Must(t)
	assert.Must(t, table.Advance(t.Context(), 500))
	away.away = true
	s.Refresh(t.Context())
	assert.Equal(t, "the id behind 500", next(), 501)
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
	assert.Must(t, errors.Join(full.Advance(t.Context(), "orders", 100), full.Advance(t.Context(), "ids_items", 100)))
	now := &standIn{SegmentStore: full}
	s, _ := serveTables(t, store.Store{Segments: now, Keys: full, Close: full.Close})
	s.Refresh(t.Context())
	for _, gone := range []bool{true, false} { // then it is put back
		now.SegmentStore = full
		if gone {
			now.SegmentStore = empty
		}
		for _, key := range []string{"orders", "ids_items"} {
			one, ok := s.Lookup(key)
			assert.MustTrue(t, ok, "key %s is not served", key)
			var ids [1]uint64
			err := one.Fill(t.Context(), ids[:], 1)
			assert.True(t, (err != nil) == gone && (gone || ids[0] == 100), "store emptied %v: id %d of %s, %v", gone, ids[0], key, err)
		}
	}
	keys, err := empty.Keys(t.Context())
	assert.True(t, err == nil && len(keys) == 0, "keys %q were made, %v", keys, err)
}

// TestPosition: that of a segment is what its store says; other keys have none.
func TestPosition(t *testing.T) {
	st := openFile(t)
	assert.Must(t, st.Advance(t.Context(), "orders", 100))
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
