package idsource

import "sync"

// UsedTimes is up to which times this process used worker numbers. It outlives the sources, so that one that is
// made anew with such a number, perhaps from another store, does not use a time again. The zero UsedTimes
// knows no number.
type UsedTimes struct {
	mu     sync.Mutex
	before map[usedNumber]uint64
}

type usedNumber struct {
	layout string
	epoch  int64 // Unix time in ns
	worker uint64
}

func numberOf(s Shape, worker uint64) usedNumber {
	return usedNumber{s.Layout, s.Epoch.UnixNano(), worker}
}

// Before returns the lowest time, in units since the epoch, that this process has not used with a number.
func (u *UsedTimes) Before(s Shape, worker uint64) uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.before[numberOf(s, worker)]
}

// Use notes that the times below before may be used.
func (u *UsedTimes) Use(s Shape, worker, before uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.before == nil {
		u.before = map[usedNumber]uint64{}
	}
	n := numberOf(s, worker)
	u.before[n] = max(u.before[n], before)
}
