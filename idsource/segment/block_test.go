package segment

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
)

// Late calls leave the counter behind the end of the block. Nothing that looks at it afterwards may
// take that for ids.
func TestBlockLateCalls(t *testing.T) {
	b := newBlock(100, 110, 101)
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
	if given.Load() != 10 || b.cur.Load() != 500 {
		t.Errorf("%d ids given, want 10; the counter stands at %d, want 500", given.Load(), b.cur.Load())
	}
	for _, span := range []uint64{1, 10, math.MaxUint64} {
		first, ok := b.take(span)
		assert.True(t, !ok, "take(%d) = %d of a block that is used up", span, first)
	}
	if b.left() != 0 || b.position() != 110 || !b.drained() || !b.pastMark() {
		t.Errorf("left %d, position %d, drained %v, past the mark %v", b.left(), b.position(), b.drained(), b.pastMark())
	}
	assert.True(t, !b.untake(109, 110), "an id was taken back behind later calls")
	b.skip(200)
	lo, hi := b.drain()
	assert.True(t, lo == 110 && hi == 110, "drain() = %d, %d, want nothing left of 110", lo, hi)
}

// Near 2^64 late calls would begin again at 0.
func TestBlockTopOfRange(t *testing.T) {
	const hi = math.MaxUint64 - 1
	b := newBlock(hi-2, hi, hi)
	var got []uint64
	for range 10 {
		if id, ok := b.takeOne(); ok {
			got = append(got, id)
		}
	}
	if len(got) != 2 || got[0] != hi-2 || got[1] != hi-1 || b.cur.Load() != hi {
		t.Errorf("ids %d, the counter stands at %d, want two ids and %d", got, b.cur.Load(), uint64(hi))
	}
}
