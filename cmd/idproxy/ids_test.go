package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/file"
	"idproxy/idsource/resp"
)

// awayStore is a store that does not list its keys while it is away.
type awayStore struct {
	*file.Store
	away bool
}

func (s *awayStore) Keys(ctx context.Context) ([]string, error) {
	if s.away {
		return nil, errors.New("connection refused")
	}
	return s.Store.Keys(ctx)
}

// TestKeyInTwoStores: a key that two stores have is served from neither, and above all not from the one that happens to
// answer when the program starts: another process goes on with the other one.
func TestKeyInTwoStores(t *testing.T) {
	src := &sources{stores: map[string]store{}, byName: map[string]idsource.Source{}, byKey: map[seriesKey]idsource.Source{}}
	both := map[string]*awayStore{}
	for name, own := range map[string]string{"old": "archive", "new": "events"} {
		st, err := file.New(file.Config{Dir: t.TempDir() + "/ids"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := errors.Join(st.Advance(t.Context(), "orders", 100), st.Advance(t.Context(), own, 1)); err != nil {
			t.Fatal(err)
		}
		both[name] = &awayStore{Store: st}
		src.stores[name] = store{segments: st, keys: both[name], close: st.Close}
	}
	s := &idServer{
		log: slog.New(slog.DiscardHandler), sources: func() *sources { return src }, end: func() {},
		extra: map[seriesKey]*idsource.Segment{}, listed: map[string]bool{},
	}
	s.known.Store(&map[string]resp.Source{})
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	for _, tt := range []struct {
		away bool
		want []string
	}{{true, nil}, {false, []string{"archive", "events"}}, {true, []string{"archive", "events"}}} {
		both["new"].away = tt.away
		if all := s.refresh(t.Context()); all == tt.away {
			t.Errorf("one away: %v; all have answered: %v", tt.away, all)
		}
		if got := sortedKeys(*s.known.Load()); !slices.Equal(got, tt.want) {
			t.Errorf("one away: %v; keys %q are served, want %q", tt.away, got, tt.want)
		}
	}
}
