package segment

import "sync/atomic"

// chain is the blocks of ids held in memory, in the order in which they are used up. Any goroutine
// may take from the first; all else needs the mutex of the Segment that owns the chain.
type chain struct {
	ordered bool // ids ascend in the order in which they are taken

	head atomic.Pointer[block] // what the fast path takes from
	tail *block
}

// takeOne claims one id of the first block: one load and one addition. marked reports
// whether that reached the block's mark.
func (c *chain) takeOne() (id uint64, ok, marked bool) {
	b := c.head.Load()
	if b == nil {
		return 0, false, false
	}
	id, ok = b.takeOne()
	return id, ok, id+1 == b.mark && ok
}

// take claims span ids of the first block. marked reports whether that reached the block's mark.
func (c *chain) take(span uint64) (first uint64, ok, marked bool) {
	b := c.head.Load()
	if b == nil {
		return 0, false, false
	}
	first, ok = b.take(span)
	return first, ok, ok && b.crossed(first, span)
}

// takeOrdered is takeAny for a chain whose ids are to ascend: before it claims ids of a block it
// drops those in front.
func (c *chain) takeOrdered(span uint64) (first uint64, ok bool) {
	for b := c.head.Load(); b != nil; b = b.next {
		if span > b.left() {
			continue
		}
		c.dropUntil(b)
		if first, ok := b.take(span); ok {
			return first, true
		}
	}
	return 0, false
}

// dropUntil drops all ids in front of a block.
func (c *chain) dropUntil(b *block) {
	for h := c.head.Load(); h != b; h = h.next {
		h.drain()
		c.head.Store(h.next)
	}
}

// takeAny claims span ids of the first block that has them and forgets the
// blocks in front that have none.
func (c *chain) takeAny(span uint64) (first uint64, ok bool) {
	if c.ordered {
		return c.takeOrdered(span)
	}
	for b := c.head.Load(); b != nil; b = b.next {
		if first, ok := b.take(span); ok {
			return first, true
		}
		if b.next != nil && b.drained() && c.head.Load() == b {
			c.head.Store(b.next)
		}
	}
	return 0, false
}

// add appends a block and forgets those in front that have no ids left.
func (c *chain) add(b *block) {
	if c.tail == nil {
		c.head.Store(b)
	} else {
		c.tail.next = b
	}
	c.tail = b
	for h := c.head.Load(); h != b && h.drained(); h = h.next {
		c.head.Store(h.next)
	}
}

// used reports whether there is no block, or the mark of the newest one is reached.
func (c *chain) used() bool { return c.tail == nil || c.tail.pastMark() }

// held counts the ids.
func (c *chain) held() (n uint64) {
	for b := c.head.Load(); b != nil; b = b.next {
		n += b.left()
	}
	return n
}

// reaches reports whether there is an id up to highest.
func (c *chain) reaches(highest uint64) bool {
	for b := c.head.Load(); b != nil; b = b.next {
		if b.left() > 0 && b.position() <= highest {
			return true
		}
	}
	return false
}

// around returns the ids [lo, hi) of the block that id is among.
func (c *chain) around(id uint64) (lo, hi uint64, held bool) {
	for b := c.head.Load(); b != nil; b = b.next {
		lo, hi = b.position(), b.hi
		if lo <= id && id < hi {
			return lo, hi, true
		}
	}
	return 0, 0, false
}

// skip drops what is below id.
func (c *chain) skip(id uint64) {
	for b := c.head.Load(); b != nil; b = b.next {
		b.skip(id)
	}
}

// untake gives back the ids from first up to end, if they are the ones taken last of a block.
func (c *chain) untake(first, end uint64) {
	for b := c.head.Load(); b != nil; b = b.next {
		if b.untake(first, end) {
			return
		}
	}
}

// join takes what is left of the newest block, if it ends at lo, and returns where that begins, and where the series stands at
// least when the ids from there on go back; otherwise lo and floor.
func (c *chain) join(lo, floor uint64) (uint64, uint64) {
	if c.tail != nil && c.tail.hi == lo {
		lo, _ = c.tail.drain()
		floor = c.tail.below(lo)
	}
	return lo, floor
}

// drain claims all ids, and returns those of the newest block, and where the series stands at least when they go back.
func (c *chain) drain() (lo, hi, floor uint64) {
	for b := c.head.Load(); b != nil; b = b.next {
		lo, hi = b.drain()
		floor = b.below(lo)
	}
	c.head.Store(nil)
	c.tail = nil
	return lo, hi, floor
}
