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
		if err := errors.Join(st.Advance(t.Context(), "orders", 100), st.Advance(t.Context(), own, 1)); err != nil {
			t.Fatal(err)
		}
		both[name] = &awayStore{Store: st}
		src.stores[name] = sources.Keyed{Store: store.Store{Segments: st, Keys: both[name], Close: st.Close}}
	}
	s := New(slog.New(slog.DiscardHandler), src)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		away bool
		want []string
	}{{true, nil}, {false, []string{"archive", "events"}}, {true, []string{"archive", "events"}}} {
		both["new"].away = tt.away
		if all := s.Refresh(t.Context()); all == tt.away {
			t.Errorf("one away: %v; all have answered: %v", tt.away, all)
		}
		if got := slices.Sorted(maps.Keys(*s.known.Load())); !slices.Equal(got, tt.want) {
			t.Errorf("one away: %v; keys %q are served, want %q", tt.away, got, tt.want)
		}
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
			if asked := st.asked.Load(); asked != want {
				t.Fatalf("asked %d times, want %d", asked, want)
			}
		}
	})
}

// serveTables serves the keys of a store, of which a source has a series for each table,
// ids_{table}.
func serveTables(t *testing.T, st store.Store) (*Registry, *segment.PerTable) {
	t.Helper()
	p, err := segment.NewPerTable(segment.Config{Name: "each", Store: st.Segments, Key: "ids_{table}"})
	if err != nil {
		t.Fatal(err)
	}
	src := &fewSources{
		stores: map[string]sources.Keyed{"local": {Store: st, Templates: map[string]*segment.PerTable{"ids_{table}": p}}},
		named:  map[string]idsource.Source{"each": p},
	}
	s := New(slog.New(slog.DiscardHandler), src)
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), p.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return s, p
}

// TestKeyOfTable: by the key of a table's series programs ask for ids of that series: what an
// INSERT has moved past is not given to them either.
func TestKeyOfTable(t *testing.T) {
	st := openFile(t)
	away := &awayStore{Store: st}
	s, p := serveTables(t, store.Store{Segments: st, Keys: away, Close: st.Close})
	if err := errors.Join(st.Advance(t.Context(), "ids_orders", 100), st.Advance(t.Context(), "other", 1)); err != nil {
		t.Fatal(err)
	}
	next := func() uint64 {
		t.Helper()
		one, ok := s.Lookup("ids_orders")
		if !ok {
			t.Fatal("the key is not served")
		}
		var ids [1]uint64
		if err := one.Fill(t.Context(), ids[:], 1); err != nil {
			t.Fatal(err)
		}
		return ids[0]
	}
	s.Refresh(t.Context())
	if got := next(); got != 100 {
		t.Errorf("the first id is %d, want 100", got)
	}
	table, err := p.Series("shop", "Orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Advance(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	away.away = true
	s.Refresh(t.Context())
	if got := next(); got != 501 {
		t.Errorf("the id behind 500 is %d", got)
	}
	if _, ok := s.Lookup("other"); !ok {
		t.Error("a key of no table is not served")
	}
}

// standIn is a store in whose place another one comes.
type standIn struct{ idsource.SegmentStore }

func openFile(t *testing.T) *file.Store {
	t.Helper()
	st, err := file.New(file.Config{Dir: t.TempDir() + "/ids"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// TestKeyOfEmptiedStore: a key that was listed, and is gone when the first id is asked for, is not
// begun anew.
func TestKeyOfEmptiedStore(t *testing.T) {
	full, empty := openFile(t), openFile(t)
	if err := errors.Join(full.Advance(t.Context(), "orders", 100), full.Advance(t.Context(), "ids_items", 100)); err != nil {
		t.Fatal(err)
	}
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
			if !ok {
				t.Fatalf("key %s is not served", key)
			}
			var ids [1]uint64
			if err := one.Fill(t.Context(), ids[:], 1); (err != nil) != gone || !gone && ids[0] != 100 {
				t.Errorf("store emptied %v: id %d of %s, %v", gone, ids[0], key, err)
			}
		}
	}
	if keys, err := empty.Keys(t.Context()); err != nil || len(keys) > 0 {
		t.Errorf("keys %q were made, %v", keys, err)
	}
}

// TestPosition: that of a segment is what its store says; other keys have none.
func TestPosition(t *testing.T) {
	st := openFile(t)
	if err := st.Advance(t.Context(), "orders", 100); err != nil {
		t.Fatal(err)
	}
	r := New(slog.New(slog.DiscardHandler), &fewSources{
		stores: map[string]sources.Keyed{"local": {Store: store.Store{Segments: st, Keys: st, Close: st.Close}}},
		named:  map[string]idsource.Source{"links": uuid.New()},
	})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Refresh(t.Context())
	if next, err := r.Position(t.Context(), "orders"); err != nil || next != 100 {
		t.Errorf("orders stands at %d, %v", next, err)
	}
	for _, key := range []string{"links", "none"} {
		if _, err := r.Position(t.Context(), key); err == nil {
			t.Errorf("%s has a position", key)
		}
	}
}
