package keys

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/uuid"
)

// TestCreate makes keys where there is none, and nowhere else.
func TestCreate(t *testing.T) {
	main, other := openFile(t), openFile(t)
	if err := errors.Join(other.Advance(t.Context(), "elsewhere", 5), main.Advance(t.Context(), "here", 5)); err != nil {
		t.Fatal(err)
	}
	each, err := segment.NewPerTable(segment.Config{Name: "each", Store: main, Key: "ids_{table}"})
	if err != nil {
		t.Fatal(err)
	}
	own, err := segment.New(segment.Config{Name: "orders", Store: main, Key: "own"})
	if err != nil {
		t.Fatal(err)
	}
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
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), sources.CloseAll(map[string]idsource.Source{"orders": own, "each": each})); err != nil {
			t.Error(err)
		}
	})
	r.Refresh(t.Context())
	create := r.Creator("main")
	for key, want := range map[string]string{
		"here": "there is a key", "elsewhere": "there is a key", "orders": "the name of a source", "names": "the name of a source",
		"own": "one of a source", "ids_orders": "one of a source",
	} {
		if err := create(t.Context(), key, 1, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
	if err := create(t.Context(), "new", 700, 0); err != nil {
		t.Fatal(err)
	}
	draw := func(want uint64) {
		t.Helper()
		s, ok := r.Lookup("new")
		if !ok {
			t.Fatal("the key is not served")
		}
		var id [1]uint64
		if err := s.Fill(t.Context(), id[:], 1); err != nil || id[0] != want {
			t.Errorf("id %d, %v, want %d", id[0], err, want)
		}
	}
	draw(700)
	r.Refresh(t.Context())
	draw(701) // it is the same series
	if err := create(t.Context(), "new", 1, 0); err == nil {
		t.Error("a key was created twice")
	}
	if err := create(t.Context(), "stepped", 1, 50); err == nil || !strings.Contains(err.Error(), "keeps no step") {
		t.Errorf("a step in a file store: %v", err)
	}
	if New(slog.New(slog.DiscardHandler), src).Creator("") != nil {
		t.Error("keys can be created in no store")
	}
	if err := r.Creator("nowhere")(t.Context(), "x", 1, 0); err == nil {
		t.Error("a key was created in a store that is not there")
	}
}
