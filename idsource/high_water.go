package idsource

import "sync"

// HighWater is where the series of a store stood when this process was last given ids of them. It outlives
// the sources, so that one that is made anew notices that its store went back. The zero HighWater knows
// no series.
type HighWater struct {
	mu   sync.Mutex
	next map[string]uint64
}

// Of returns the lowest id of a series that this process knows not to be given: no range may begin below.
// It is 0 where this process was given none.
func (h *HighWater) Of(key string) (next uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next[key]
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
