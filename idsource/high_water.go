package idsource

import (
	"maps"
	"sync"
)

// HighWater is how far the series of a store were given to this process and to its predecessors. It outlives
// the sources, so that one that is made anew notices that its store went back. The zero HighWater knows
// no series.
type HighWater struct {
	mu        sync.Mutex
	next      map[string]uint64
	inherited map[string]uint64
}

// Of returns where a series stands at least: no range may begin below. It is 0 where nothing of it was given.
func (h *HighWater) Of(key string) (next uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return max(h.next[key], h.inherited[key])
}

// Set notes where a series stands.
func (h *HighWater) Set(key string, next uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		h.next = map[string]uint64{}
	}
	h.next[key] = next
}

// Inherit notes where series stand, by their keys, as a predecessor says. What it said before does not count
// any more: it may have given ids back.
func (h *HighWater) Inherit(next map[string]uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inherited = next
}

// All returns where the series stand, by their keys.
func (h *HighWater) All() map[string]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]uint64{}
	maps.Copy(all, h.inherited)
	for key, next := range h.next {
		all[key] = max(all[key], next)
	}
	return all
}
