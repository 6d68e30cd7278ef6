package limit

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Bytes counts memory. The zero value is ready.
type Bytes struct {
	taken, garbage atomic.Int64
	collecting     sync.Mutex
}

// Take takes n bytes, unless there were more than most then. most 0: there is no bound.
func (b *Bytes) Take(n, most int) bool {
	for {
		now := b.taken.Load()
		if most > 0 && now+int64(n) > int64(most) {
			return false
		}
		if b.taken.CompareAndSwap(now, now+int64(n)) {
			return true
		}
	}
}

// Give gives n bytes back that were taken.
func (b *Bytes) Give(n int) { b.taken.Add(-int64(n)) }

// Discard notes n bytes that were given back, and stay memory until Go collects them.
func (b *Bytes) Discard(n int) { b.garbage.Add(int64(n)) }

// Collect sees to it that what is taken and what was discarded are not much more than most together.
// It may wait for Go's collector, which finds hardly anything to follow in such memory.
func (b *Bytes) Collect(most int) {
	if most == 0 || !b.littered(int64(most)) {
		return
	}
	b.collecting.Lock()
	defer b.collecting.Unlock()
	if b.littered(int64(most)) { // nobody has collected meanwhile
		n := b.garbage.Load()
		runtime.GC()
		b.garbage.Add(-n)
	}
}

// littered reports whether collecting is worth its while: all that is taken may be in use.
func (b *Bytes) littered(most int64) bool {
	garbage := b.garbage.Load()
	return garbage > most/8 && garbage+b.taken.Load() > most
}

// Taken returns how many are.
func (b *Bytes) Taken() int64 { return b.taken.Load() }
