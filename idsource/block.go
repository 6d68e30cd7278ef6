package idsource

import "sync/atomic"

// block is a range of ids held in memory: [cur, hi) is not issued yet. cur and
// hi only grow. Any goroutine may take; the other fields change under the
// mutex of the Segment that owns the block.
type block struct {
	cur  atomic.Uint64
	hi   atomic.Uint64
	mark atomic.Uint64 // taking the id below it asks for the next range
	next *block
}

func newBlock(lo, hi, mark uint64) *block {
	b := new(block)
	b.cur.Store(lo)
	b.hi.Store(hi)
	b.mark.Store(mark)
	return b
}

// take claims span ids and returns the first one. A claim that does not fit
// takes nothing.
func (b *block) take(span uint64) (first uint64, ok bool) {
	for {
		v := b.cur.Load()
		if span > b.hi.Load()-v {
			return 0, false
		}
		if b.cur.CompareAndSwap(v, v+span) {
			return v, true
		}
	}
}

// crossed says whether taking span ids from first on reached the mark. It must
// be asked after the taking: extend stores a new mark before it looks at cur,
// so that one of the two sides sees the other.
func (b *block) crossed(first, span uint64) bool {
	m := b.mark.Load()
	return first < m && first+span >= m
}

func (b *block) pastMark() bool { return b.cur.Load() >= b.mark.Load() }

func (b *block) drained() bool { return b.cur.Load() == b.hi.Load() }

// extend appends the range [b.hi, hi).
func (b *block) extend(hi, mark uint64) {
	b.hi.Store(hi)
	b.mark.Store(mark)
}

// drain claims all that is left and returns it.
func (b *block) drain() (lo, hi uint64) {
	hi = b.hi.Load()
	return b.cur.Swap(hi), hi
}
