package segment

import (
	"errors"
	"math"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
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
			id, twice := sourcetest.Repeated(all)
			assert.True(t, !twice && len(all) >= 10_000, "id %d is in two runs of %d ids: %v", id, len(all), twice)
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
		err := s.Blocks(t.Context(), make([]uint64, tt.n), tt.size)
		assert.True(t, errors.Is(err, tt.want), "%s: %v, want kind %v", tt.name, err, tt.want)
	}
	assert.NoError(t, s.Blocks(t.Context(), nil, 16), "no runs")
	assert.Equal(t, "refused runs used ids up: the next one", sourcetest.Fill(t, s, 1, 1)[0], 1)
}

// TestBlocksAtTheEnd takes the last ids of a segment, and no more.
func TestBlocksAtTheEnd(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), Start: math.MaxInt64 - 31, Last: math.MaxInt64})
	ids := make([]uint64, 2)
	err := s.Blocks(t.Context(), ids, 16)
	assert.True(t, err == nil && ids[1] == math.MaxInt64-15, "%v, %v; want the last 32 ids", ids, err)
	assert.ErrorIs(t, "behind the last id", s.Blocks(t.Context(), ids[:1], 16), idsource.Exhausted)
}
