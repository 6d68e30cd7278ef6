package snowflake

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestBlocks has no id in two runs, or in a run and by itself, whatever else is drawn from the
// source.
func TestBlocksOfSnowflakes(t *testing.T) {
	flake := func(t *testing.T, sequence string) *Snowflake {
		return newTestSnowflake(t, Config{
			Fences: newFaultFences(), Layout: "41/10/8", Worker: 3, Sequence: sequence, Renew: time.Millisecond, MaxAhead: 20 * time.Second, Lead: 25 * time.Second, Wait: sourcetest.Waits(10 * time.Second),
		}, new(testClock).clock())
	}
	for _, sequence := range []string{"continue", "random"} {
		t.Run(sequence, func(t *testing.T) {
			s := flake(t, sequence)
			all := sourcetest.DrawAlike(t, s, func(ids []uint64, size uint64) error { return s.Blocks(t.Context(), ids, size) })
			id, twice := sourcetest.Repeated(all)
			assert.True(t, !twice && len(all) >= 10_000, "id %d is in two runs of %d ids: %v", id, len(all), twice)
			for _, id := range all {
				assert.MustEqual(t, fmt.Sprintf("id %d has worker", id), s.layout.Decode(id).Worker, 3)
			}
		})
	}
	t.Run("negative control", func(t *testing.T) {
		s := flake(t, "continue")
		all := sourcetest.DrawAlike(t, s, func(ids []uint64, size uint64) error { return s.Fill(t.Context(), ids, size) })
		_, twice := sourcetest.Repeated(all)
		assert.True(t, twice, "ids that lie apart are runs as well: the test finds nothing")
	})
}

func TestBlocksOfSnowflakesRefused(t *testing.T) {
	s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: "41/10/4"}, new(testClock).clock())
	for _, tt := range []struct {
		name string
		n    int
		size uint64
		want idsource.Kind
	}{
		{name: "of nothing", n: 1, size: 0, want: idsource.BadConfig},
		{name: "larger than its sequence", n: 1, size: 32, want: idsource.BadConfig},
		{name: "no power of two", n: 1, size: 3, want: idsource.BadConfig},
		{name: "beyond max_ahead", n: 4000, size: 16, want: idsource.TooMany},
		{name: "beyond all numbers", n: 1 << 20, size: 16, want: idsource.TooMany},
	} {
		err := s.Blocks(t.Context(), make([]uint64, tt.n), tt.size)
		assert.True(t, errors.Is(err, tt.want), "%s: %v, want kind %v", tt.name, err, tt.want)
	}
	assert.NoError(t, s.Blocks(t.Context(), nil, 16), "no runs")
}
