package objectid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

const start = 1_700_000_000 // s

func withClock() (*Source, *atomic.Int64) {
	c := new(atomic.Int64)
	c.Store(start)
	return newSource(c.Load), c
}

func draw(t testing.TB, s *Source, n int) []ID {
	t.Helper()
	words := make([]uint64, 2*n)
	assert.Must(t, s.Fill(context.Background(), words, 1))
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = ID(words[2*i : 2*i+2])
	}
	return ids
}

func compare(a, b ID) int { return slices.Compare(a[:], b[:]) }

// TestVector is the example of MongoDB's manual.
func TestVector(t *testing.T) {
	const text = "507f1f77bcf86cd799439011"
	id, err := Parse(text)
	want := Parts{Time: time.Date(2012, 10, 17, 21, 13, 27, 0, time.UTC), Process: 0xbcf86cd799, Counter: 0x439011}
	assert.True(t, err == nil && id.Parts() == want && id.String() == text, "got %s, %+v, %v; want %s, %+v", id, id.Parts(), err, text, want)
	for _, bad := range []string{"", "507f1f77", text + "00", "507f1f77bcf86cd79943901g"} {
		assert.Of(Parse(bad)).Fails(t, fmt.Sprintf("%q", bad), "")
	}
}

// TestClock draws ids while the clock stands still, goes on, back and far ahead.
func TestClock(t *testing.T) {
	s, c := withClock()
	var last ID
	highest := int64(0)
	for _, sec := range []int64{start, start, start + 1, start - 10, start - 3600, start + 5, start + 86400, start, -5, start + 86401} {
		c.Store(sec)
		highest = max(highest, sec)
		for i, id := range draw(t, s, 3000) {
			p := id.Parts()
			assert.MustTrue(t, compare(last, id) < 0, "clock at %d: id %d, %s, is not above %s", sec, i, id, last)
			at := p.Time.Unix()
			assert.MustTrue(t, at >= highest && at <= highest+1 && p.Process == s.process, "clock at %d: id %s has time %d and process %x", sec, id, at, p.Process)
			again, err := Parse(id.String())
			assert.MustTrue(t, err == nil && again == id, "%s is read as %s, %v", id, again, err)
			last = id
		}
	}
}

// TestWrap carries the counter into the next second instead of beginning anew within one, and goes
// on from there.
func TestWrap(t *testing.T) {
	s, c := withClock()
	s.last = start<<counterBits | (1<<counterBits - 3)
	ids := draw(t, s, 4)
	for i, want := range []Parts{{Counter: 1<<counterBits - 2}, {Counter: 1<<counterBits - 1}, {Counter: 0}, {Counter: 1}} {
		p := ids[i].Parts()
		second := start + int64(i/2)
		assert.True(t, p.Counter == want.Counter && p.Time.Unix() == second, "id %d: %+v, want counter %d in second %d", i, p, want.Counter, second)
	}
	c.Store(start + 1)
	next := draw(t, s, 1)[0]
	assert.True(t, compare(ids[3], next) < 0 && next.Parts().Counter == 2, "%s behind %s", next, ids[3])
	c.Store(start + 2)
	more := draw(t, s, 1)[0].Parts()
	assert.True(t, more.Counter == 3 && more.Time.Unix() == start+2, "in the next second %+v: the counter goes on", more)
}

// TestBound refuses to run further ahead than maxAhead, gives nothing then, and goes on once the
// clock does.
func TestBound(t *testing.T) {
	s, c := withClock()
	draw(t, s, 1)
	s.last = (start+maxAhead)<<counterBits | (1<<counterBits - 3)
	last := draw(t, s, 1)[0]
	words := make([]uint64, 4)
	err := s.Fill(context.Background(), words, 1)
	assert.True(t, errors.Is(err, ErrAhead) && words[0] == 0, "got %v and %x", err, words)
	c.Store(start + 1)
	next := draw(t, s, 2)[0]
	assert.True(t, compare(last, next) < 0, "%s behind %s", next, last)
	c.Store(1<<32 - 2) // the last second but one that four bytes hold
	s.last = 0
	draw(t, s, 1)
	s.last = 1<<(32+counterBits) - 2
	assert.ErrorIs(t, "behind the last second of all", s.Fill(context.Background(), words, 1), ErrAhead)
}

// TestNeverTwice has several sources make ids at the same time by one clock that stands still. The
// control is two that share their random bytes, as after a machine was cloned while it ran.
func TestNeverTwice(t *testing.T) {
	a, c := withClock()
	assert.Equal(t, "ids came twice", sourcetest.DrawnTwice(t, []*Source{a, newSource(c.Load), New(), New()}, draw, compare), 0)
	one, c := withClock()
	clone := &Source{now: c.Load, process: one.process, last: one.last}
	assert.Greater(t, "the control: ids of a clone that came twice", sourcetest.DrawnTwice(t, []*Source{one, clone}, draw, compare), 0)
}

func TestProcessesDiffer(t *testing.T) {
	seen, counters := map[uint64]bool{}, map[uint64]bool{}
	for range 100 {
		s := New()
		seen[s.process] = true
		counters[s.last] = true
		assert.MustTrue(t, s.process < 1<<40 && s.last < 1<<counterBits, "process %x, counter %x", s.process, s.last)
	}
	assert.True(t, len(seen) == 100 && len(counters) >= 95, "%d processes and %d counters of 100", len(seen), len(counters))
}

func TestFillAllocatesNothing(t *testing.T) {
	s := New()
	words := make([]uint64, 20)
	assert.Equal(t, "allocations", testing.AllocsPerRun(1000, func() { _ = s.Fill(context.Background(), words, 1) }), 0)
}

func FuzzParse(f *testing.F) {
	f.Add("507f1f77bcf86cd799439011")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		assert.Of(Parse(id.String())).Equal(t, fmt.Sprintf("%q is %s, and that", text, id), id)
	})
}

func BenchmarkFill(b *testing.B) { sourcetest.MeasureWords(b, New().Fill) }
