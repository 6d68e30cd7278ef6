package segment

import (
	"math"
	"sync/atomic"
)

// block is a range of ids held in memory: [cur, hi) is not issued yet. Any
// goroutine may take; next changes under the mutex of the Segment that owns
// the block. Calls that come too late leave cur above hi.
type block struct {
	lo    uint64
	hi    uint64
	mark  uint64 // taking the id below it asks for the next range
	floor uint64 // where the series stands at least, though all of the block goes back
	next  *block
	_     [24]byte // what all read is not on the cache line that all write
	cur   atomic.Uint64
	_     [56]byte
}

func newBlock(lo, hi, mark, floor uint64) *block {
	b := &block{lo: lo, hi: hi, mark: mark, floor: floor}
	b.cur.Store(lo)
	return b
}

// takeOne claims one id. It adds without looking first, so several processors need no retries.
// It leaves to take a block whose ids end so high that late calls could wrap cur around.
func (b *block) takeOne() (id uint64, ok bool) {
	if b.hi > math.MaxInt64 {
		return b.take(1)
	}
	id = b.cur.Add(1) - 1
	return id, id < b.hi
}

// take claims span ids and returns the first one. A claim that does not fit
// takes nothing.
func (b *block) take(span uint64) (first uint64, ok bool) {
	for {
		v := b.cur.Load()
		if v >= b.hi || span > b.hi-v {
			return 0, false
		}
		if b.cur.CompareAndSwap(v, v+span) {
			return v, true
		}
	}
}

// position is the next id to be issued, hi when there is none.
func (b *block) position() uint64 { return min(b.cur.Load(), b.hi) }

// left counts the ids not issued yet.
func (b *block) left() uint64 { return b.hi - b.position() }

// crossed says whether taking span ids from first on reached the mark.
func (b *block) crossed(first, span uint64) bool { return first < b.mark && first+span >= b.mark }

func (b *block) pastMark() bool { return b.cur.Load() >= b.mark }

// untake gives back the ids from first up to end, or those of them that are its
// own, if they are the ones taken last.
func (b *block) untake(first, end uint64) bool {
	first = max(first, b.lo)
	return first < end && b.cur.CompareAndSwap(end, first)
}

// skip drops what is left below id.
func (b *block) skip(id uint64) {
	to := min(id, b.hi)
	for v := b.cur.Load(); v < to && !b.cur.CompareAndSwap(v, to); v = b.cur.Load() {
	}
}

func (b *block) drained() bool { return b.left() == 0 }

// drain claims all that is left and returns it.
func (b *block) drain() (lo, hi uint64) { return min(b.cur.Swap(b.hi), b.hi), b.hi }

// below returns where the series stands at least when the ids from lo on go back. When they are the whole block, another process
// may give back the range in front, too.
func (b *block) below(lo uint64) uint64 {
	if lo > b.lo {
		return lo
	}
	return b.floor
}
