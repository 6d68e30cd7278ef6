package sources

import (
	"sync"

	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// highWater is how far series were given, by where their stores are.
type highWater struct {
	mu       sync.Mutex
	byPlaces map[string]*idsource.HighWater
}

func (h *highWater) of(place string) *idsource.HighWater {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byPlaces == nil {
		h.byPlaces = map[string]*idsource.HighWater{}
	}
	if h.byPlaces[place] == nil {
		h.byPlaces[place] = &idsource.HighWater{}
	}
	return h.byPlaces[place]
}

// HighWater is how far series were given to this process, by where their stores are, and by their keys. It is
// for a successor, see [Sources.Inherit].
type HighWater map[string]map[string]uint64

// HighWater returns how far series were given until now.
func (s *Sources) HighWater() HighWater {
	all := HighWater{}
	s.high.mu.Lock()
	for place, h := range s.high.byPlaces {
		all[place] = h.All()
	}
	s.high.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, source := range s.byName {
		for key, next := range segment.Issued(source) { // else what it holds, and may give back, would count
			place := s.stores[s.cfg.Source(name).StoreName()].Place
			all[place][key] = next
		}
	}
	return all
}

// Inherit notes how far series were given to a predecessor.
func (s *Sources) Inherit(all HighWater) {
	for place, next := range all {
		s.high.of(place).Inherit(next)
	}
}
