package grammar

import "sync/atomic"

// shapes is a set of numbers, all but 0, that forgets some of them when it is full. It takes no
// lock and never grows.
type shapes []atomic.Uint64

// ways is the number of places that a shape can have.
const ways = 8

// places returns those of a shape. The size of the set is a power of two.
func (s shapes) places(shape uint64) shapes {
	at := int(shape) & (len(s) - 1) &^ (ways - 1)
	return s[at : at+ways]
}

func (s shapes) has(shape uint64) bool {
	places := s.places(shape)
	for i := range places {
		if places[i].Load() == shape {
			return true
		}
	}
	return false
}

func (s shapes) hasAll(shapes []uint64) bool {
	for _, shape := range shapes {
		if !s.has(shape) {
			return false
		}
	}
	return true
}

// add takes a free place, or else one that the shape itself chooses.
func (s shapes) add(shape uint64) {
	places := s.places(shape)
	for i := range places {
		if v := places[i].Load(); v == shape || v == 0 && places[i].CompareAndSwap(0, shape) {
			return
		}
	}
	places[shape>>32%ways].Store(shape)
}
