// Package objectid makes the 12-byte ids of MongoDB: 4 bytes of seconds, 5 that are random for each
// process, and 3 that count. They ascend within a process, whatever the clock does.
package objectid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"idproxy/idsource"
)

// ID is an ObjectId as two numbers: its first eight bytes, and the last four in the upper half of
// the second.
type ID [2]uint64

const (
	counterBits = 24
	// maxAhead is how many seconds ids may run ahead of the latest time the clock has shown: 16.8
	// million ids each.
	maxAhead = 60
)

// ErrAhead says that ids ran out: far more were asked for than the counter has room for.
var ErrAhead = fmt.Errorf("more than %d ids a second for too long: the time in them would be over %d s ahead of the clock", 1<<counterBits, maxAhead)

// Source makes ids. It is safe for concurrent use.
type Source struct {
	idsource.NoPosition

	now     func() int64 // Unix seconds
	process uint64       // 5 bytes

	mu     sync.Mutex
	last   uint64 // second and counter of the last id: 56 bits
	latest uint64 // the latest second that the clock has shown
}

// New returns a source that goes by the host's clock.
func New() *Source {
	return newSource(func() int64 { return time.Now().Unix() })
}

func newSource(now func() int64) *Source {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails: the program ends instead
	n := binary.BigEndian.Uint64(b[:])
	// The second is 0: the first id takes the clock's, and goes on from the random counter.
	return &Source{now: now, process: n >> counterBits, last: n & (1<<counterBits - 1)}
}

// Series implements idsource.Source.
func (s *Source) Series(string, string) (idsource.Series, error) { return s, nil }

// Fill makes ids of two words each, every one above all before it, or none and returns ErrAhead.
// The counter goes on from one second to the next; where it would begin anew within one, it is
// carried into the next second. So it is with a clock that went back.
func (s *Source) Fill(_ context.Context, words []uint64, _ uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := uint64(max(s.now(), 0)) & (1<<32 - 1)
	s.latest = max(s.latest, now)
	const counter = 1<<counterBits - 1
	first := s.last + 1
	if now > s.last>>counterBits {
		first = now<<counterBits | (s.last+1)&counter
	}
	if end := (first + uint64(len(words)/2)) >> counterBits; end > s.latest+maxAhead || end >= 1<<32 {
		return ErrAhead
	}
	for i := 0; i+1 < len(words); i += 2 {
		s.last = first + uint64(i/2)
		words[i] = s.last>>counterBits<<32 | s.process>>8
		words[i+1] = s.process&255<<56 | s.last&counter<<32
	}
	s.Gave(len(words) / 2)
	return nil
}

// Parts is what an ObjectId tells.
type Parts struct {
	Time    time.Time
	Process uint64 // 5 random bytes
	Counter uint64 // 24 bits
}

// Parts takes an id apart.
func (id ID) Parts() Parts {
	return Parts{
		Time:    time.Unix(int64(id[0]>>32), 0).UTC(),
		Process: id[0]&(1<<32-1)<<8 | id[1]>>56,
		Counter: id[1] >> 32 & (1<<counterBits - 1),
	}
}

// String returns the 24 hexadecimal digits.
func (id ID) String() string { return fmt.Sprintf("%016x%08x", id[0], id[1]>>32) }

// Parse reads 24 hexadecimal digits.
func Parse(text string) (id ID, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 12 {
		return id, errors.New("not 24 hexadecimal digits")
	}
	return ID{binary.BigEndian.Uint64(b), uint64(binary.BigEndian.Uint32(b[8:])) << 32}, nil
}
