// Package uuid makes UUIDs of version 7 (RFC 9562): 48 bits of milliseconds, 12 bits that count
// within one, and 62 random bits. They ascend within a process, whatever the clock does.
package uuid

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"idproxy/idsource"
)

// ID is a UUID as two numbers, the first bytes in the first. Their order is that of the ids.
type ID [2]uint64

// counterBits are those of rand_a, RFC 9562 section 6.2, method 1: a counter that a new millisecond
// starts at a random number whose top bit is 0.
const counterBits = 12

// reserve is how many random bytes are fetched at once: 12 to 16 ids. What is left of them is in
// memory, and so in its copy when a virtual machine is cloned; more would be little faster.
const reserve = 128

// Source makes ids. It is safe for concurrent use.
type Source struct {
	idsource.NoPosition

	now func() int64 // Unix milliseconds

	mu     sync.Mutex
	last   uint64 // milliseconds and counter of the last id: 60 bits
	random [reserve]byte
	used   int // of random
}

// New returns a source that goes by the host's clock.
func New() *Source {
	return &Source{now: func() int64 { return time.Now().UnixMilli() }, used: reserve}
}

// Series implements idsource.Source.
func (s *Source) Series(string, string) (idsource.Series, error) { return s, nil }

// Fill makes ids of two words each, every one above all before it. It waits for nothing and never
// fails: where the clock stands still, goes back or gives too little room for so many ids, the
// counter is carried into the time, which then runs ahead.
func (s *Source) Fill(_ context.Context, words []uint64, _ uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := uint64(max(s.now(), 0)) & (1<<48 - 1)
	for i := 0; i+1 < len(words); i += 2 {
		if now > s.last>>counterBits {
			s.last = now<<counterBits | uint64(binary.BigEndian.Uint16(s.take(2)))&(1<<(counterBits-1)-1)
		} else {
			s.last++
		}
		const version, variant = 7 << 12, 1 << 63
		words[i] = s.last>>counterBits<<16 | version | s.last&(1<<counterBits-1)
		words[i+1] = variant | binary.BigEndian.Uint64(s.take(8))>>2
	}
	s.Gave(len(words) / 2)
	return nil
}

// take returns n random bytes, never the same twice.
func (s *Source) take(n int) []byte {
	if s.used+n > reserve {
		_, _ = rand.Read(s.random[:]) // it never fails: the program ends instead
		s.used = 0
	}
	b := s.random[s.used : s.used+n]
	s.used += n
	return b
}

// Parts is what a UUID of version 7 tells.
type Parts struct {
	Time    time.Time
	Counter uint64 // rand_a, 12 bits
	Random  uint64 // rand_b, 62 bits
}

// Parts takes an id apart. An error says that it is none of version 7.
func (id ID) Parts() (Parts, error) {
	if id[0]>>12&15 != 7 || id[1]>>62 != 2 {
		return Parts{}, errors.New("no UUID of version 7")
	}
	return Parts{
		Time:    time.UnixMilli(int64(id[0] >> 16)).UTC(),
		Counter: id[0] & (1<<counterBits - 1),
		Random:  id[1] & (1<<62 - 1),
	}, nil
}

// String returns the 36 characters of the RFC.
func (id ID) String() string {
	b := hex.EncodeToString(id.bytes())
	return strings.Join([]string{b[:8], b[8:12], b[12:16], b[16:20], b[20:]}, "-")
}

func (id ID) bytes() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, id[0]), id[1])
}

// Parse reads 32 hexadecimal digits, with the four dashes of the RFC or without.
func Parse(text string) (id ID, err error) {
	digits := text
	if len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' {
		digits = text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	}
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) != 16 {
		return id, errors.New("not 32 hexadecimal digits, with dashes or without")
	}
	return ID{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}
