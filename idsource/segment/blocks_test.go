package segment

import (
	"errors"
	"math"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
)

// TestBlocks has no id in two runs, or in a run and by itself, whatever else is drawn from the
// source.
func TestBlocks(t *testing.T) {
	for name, c := range map[string]Config{
		"segment":                {Step: 500, MaxStep: 4000},
		"segment in small parts": {Step: 50, MaxStep: 200, MaxBatch: 200},
	} {
		t.Run(name, func(t *testing.T) {
			c.Store = newFaultStore()
			s := newTestSegment(t, c)
			all := sourcetest.DrawAlike(t, s, func(ids []uint64, size uint64) error { return s.Blocks(t.Context(), ids, size) })
			if id, twice := sourcetest.Repeated(all); twice || len(all) < 10_000 {
				t.Errorf("id %d is in two runs of %d ids: %v", id, len(all), twice)
			}
		})
	}
}

func TestBlocksRefused(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), MaxBatch: 1000})
	for _, tt := range []struct {
		name string
		n    int
		size uint64
		want idsource.Kind
	}{
		{name: "of nothing", n: 1, size: 0, want: idsource.BadConfig},
		{name: "too large", n: 1, size: 1001, want: idsource.TooMany},
	} {
		if err := s.Blocks(t.Context(), make([]uint64, tt.n), tt.size); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want kind %v", tt.name, err, tt.want)
		}
	}
	if err := s.Blocks(t.Context(), nil, 16); err != nil {
		t.Errorf("no runs: %v", err)
	}
	if ids := sourcetest.Fill(t, s, 1, 1); ids[0] != 1 {
		t.Errorf("refused runs used ids up: the next one is %d", ids[0])
	}
}

// TestBlocksAtTheEnd takes the last ids of a segment, and no more.
func TestBlocksAtTheEnd(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), Start: math.MaxInt64 - 31, Last: math.MaxInt64})
	ids := make([]uint64, 2)
	if err := s.Blocks(t.Context(), ids, 16); err != nil || ids[1] != math.MaxInt64-15 {
		t.Errorf("%v, %v; want the last 32 ids", ids, err)
	}
	if err := s.Blocks(t.Context(), ids[:1], 16); !errors.Is(err, idsource.Exhausted) {
		t.Errorf("behind the last id: %v", err)
	}
}
