package segment

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// Late calls leave the counter behind the end of the block. Nothing that looks at it afterwards may
// take that for ids.
func TestBlockLateCalls(t *testing.T) {
	b := newBlock(100, 110, 101, 100)
	var wg sync.WaitGroup
	var given atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 100 {
				if id, ok := b.takeOne(); ok {
					given.Add(1)
				} else if id < 110 {
					t.Errorf("id %d was claimed and not given", id)
				}
			}
		})
	}
	wg.Wait()
	assert.True(t, given.Load() == 10 && b.cur.Load() == 500, "%d ids given, want 10; the counter stands at %d, want 500", given.Load(), b.cur.Load())
	for _, span := range []uint64{1, 10, math.MaxUint64} {
		first, ok := b.take(span)
		assert.True(t, !ok, "take(%d) = %d of a block that is used up", span, first)
	}
	assert.True(t, b.left() == 0 && b.position() == 110 && b.drained() && b.pastMark(), "left %d, position %d, drained %v, past the mark %v", b.left(), b.position(), b.drained(), b.pastMark())
	assert.True(t, !b.untake(109, 110), "an id was taken back behind later calls")
	b.skip(200)
	lo, hi := b.drain()
	assert.True(t, lo == 110 && hi == 110, "drain() = %d, %d, want nothing left of 110", lo, hi)
}

// Near 2^64 late calls would begin again at 0.
func TestBlockTopOfRange(t *testing.T) {
	const hi = math.MaxUint64 - 1
	b := newBlock(hi-2, hi, hi, hi-2)
	var got []uint64
	for range 10 {
		if id, ok := b.takeOne(); ok {
			got = append(got, id)
		}
	}
	assert.True(t, len(got) == 2 && got[0] == hi-2 && got[1] == hi-1 && b.cur.Load() == hi, "ids %d, the counter stands at %d, want two ids and %d", got, b.cur.Load(), uint64(hi))
}

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
			sourcetest.Once(t, all)
			assert.GreaterOrEqual(t, "ids", len(all), 10_000)
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
	}{{name: "of nothing", n: 1, size: 0, want: idsource.BadConfig}, {name: "too large", n: 1, size: 1001, want: idsource.TooMany}} {
		assert.ErrorIs(t, tt.name, s.Blocks(t.Context(), make([]uint64, tt.n), tt.size), tt.want)
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
