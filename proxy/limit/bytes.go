package limit

import "sync/atomic"

// Bytes counts memory. The zero value is ready.
type Bytes struct{ taken atomic.Int64 }

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

// Taken returns how many are.
func (b *Bytes) Taken() int64 { return b.taken.Load() }
