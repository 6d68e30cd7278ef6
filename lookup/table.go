package lookup

import (
	"encoding/binary"
	"sync/atomic"
)

// Table holds answers by their keys. The zero Table is empty. It may be used by many goroutines.
type Table[T any] struct {
	places [Most]atomic.Pointer[entry[T]]
}

type entry[T any] struct {
	key   string
	value T
}

const (
	Most = 1024 // answers that a Table holds
	near = 4    // places where a key may stand
)

// Get returns the answer that was put for a key.
func (t *Table[T]) Get(key []byte) (answer T, ok bool) {
	at := hash(key)
	for i := range uint64(near) {
		if e := t.places[(at+i)%Most].Load(); e != nil && e.key == string(key) {
			return e.value, true
		}
	}
	return answer, false
}

// Put remembers an answer. Of answers that are put for one key at the same time any may stay.
func (t *Table[T]) Put(key string, answer T) {
	at := hash([]byte(key))
	free := at % Most // the one that stands there gives way where no place is free
	for i := near - 1; i >= 0; i-- {
		place := (at + uint64(i)) % Most
		switch e := t.places[place].Load(); {
		case e == nil:
			free = place
		case e.key == key:
			free = place
			i = 0
		}
	}
	t.places[free].Store(&entry[T]{key, answer})
}

// hash is good enough to keep names apart that people give to tables: each byte of a key counts.
func hash(key []byte) uint64 {
	const odd = 0x9E3779B97F4A7C15
	h := uint64(len(key))
	for ; len(key) >= 8; key = key[8:] {
		h = (h ^ binary.LittleEndian.Uint64(key)) * odd
		h ^= h >> 32
	}
	last := uint64(0)
	for _, c := range key {
		last = last<<8 | uint64(c)
	}
	h = (h ^ last) * odd
	return h >> 32
}
