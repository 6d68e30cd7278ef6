package uuid

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// clock is a source's clock that a test sets.
type clock struct {
	mu sync.Mutex
	ms int64
}

func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ms
}

func (c *clock) set(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ms = ms
}

const start = 1_700_000_000_000 // ms

func withClock() (*Source, *clock) {
	c := &clock{ms: start}
	s := New()
	s.now = c.now
	return s, c
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

// TestVector is the example of RFC 9562, appendix A.6.
func TestVector(t *testing.T) {
	const text = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
	id := assert.Of(Parse(text)).Must(t)
	p, err := id.Parts()
	want := Parts{Time: time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC), Counter: 0xCC3, Random: 0x18C4DC0C0C07398F}
	assert.True(t, err == nil && p == want, "got %+v, %v; want %+v", p, err, want)
	assert.True(t, id.String() == text, "got %s, want %s", id, text)
	assert.Of(Parse("017F22E279B07CC398C4DC0C0C07398F")).Equal(t, "without dashes", id)
	for _, bad := range []string{"", "017f22e2", text + "0", "017f22e2_79b0-7cc3-98c4-dc0c0c07398f", "g17f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4dc0c0c07398f-"} {
		assert.Of(Parse(bad)).Fails(t, fmt.Sprintf("%q", bad), "")
	}
	for _, other := range []string{"919108f7-52d1-4320-9bac-f847db4148a8", "017f22e2-79b0-7cc3-d8c4-dc0c0c07398f"} { // version 4, another variant
		id, err := Parse(other)
		_, notSeven := id.Parts()
		assert.True(t, err == nil && notSeven != nil, "%s: %v, %v", other, err, notSeven)
	}
}

// wellFormed checks what every id must be, and returns the time in it.
func wellFormed(t *testing.T, id ID) int64 {
	t.Helper()
	p := assert.Of(id.Parts()).Must(t, id)
	again, err := Parse(id.String())
	assert.MustTrue(t, err == nil && again == id, "%s is read as %s, %v", id, again, err)
	return p.Time.UnixMilli()
}

func TestFirstOfAMillisecond(t *testing.T) {
	s, c := withClock()
	counters := map[uint64]bool{}
	for i := range int64(200) {
		c.set(start + i)
		id := draw(t, s, 1)[0]
		p, _ := id.Parts()
		at := wellFormed(t, id)
		assert.MustTrue(t, at == start+i && p.Counter < 1<<11, "at %d: time %d, counter %d", start+i, at, p.Counter)
		counters[p.Counter] = true
	}
	assert.True(t, len(counters) >= 150, "%d counters in 200 milliseconds are no random start", len(counters)) // of 2048 that are equally likely
}

// TestClock draws ids while the clock stands still, goes on, back and far ahead.
func TestClock(t *testing.T) {
	s, c := withClock()
	var last ID
	for _, ms := range []int64{start, start, start + 1, start - 10, start - 3_600_000, start + 5, start + 86_400_000, start, -5, start + 86_400_001} {
		c.set(ms)
		before, _ := last.Parts()
		for i, id := range draw(t, s, 3000) {
			assert.MustTrue(t, compare(last, id) < 0, "clock at %d: id %d, %s, is not above %s", ms, i, id, last)
			at := wellFormed(t, id)
			highest := max(ms, before.Time.UnixMilli()) + 2
			assert.MustTrue(t, at >= ms && at <= highest, "clock at %d: id %s has the time %d", ms, id, at) // 3000 ids carry once or twice
			last = id
		}
	}
}

func TestOneCallOfMany(t *testing.T) {
	s, _ := withClock()
	ids := draw(t, s, 100_000)
	assert.True(t, slices.IsSortedFunc(ids, compare), "they do not ascend")
	ahead := wellFormed(t, ids[len(ids)-1]) - start
	assert.True(t, ahead >= 23 && ahead <= 25, "the last lies %d ms ahead of the clock", ahead) // 100,000 / 4096
}

// TestNeverTwice has several sources make ids at the same time by one clock that stands still. The
// control is two sources with the same memory, as after a machine was cloned while it ran: until
// the random bytes in store are used up they make the same.
func TestNeverTwice(t *testing.T) {
	a, c := withClock()
	b, _ := withClock()
	b.now = c.now
	assert.Equal(t, "ids came twice", sourcetest.DrawnTwice(t, []*Source{a, b, New(), New()}, draw, compare), 0)
	one, _ := withClock()
	draw(t, one, 1)
	clone := &Source{now: one.now, last: one.last, random: one.random, used: one.used}
	same := 0
	mine := draw(t, one, 1000)
	for i, id := range draw(t, clone, 1000) {
		if id == mine[i] {
			same++
		}
	}
	assert.True(t, same != 0 && same <= reserve/8, "of a clone %d ids are the same: want some, and no more than were in store", same)
}

// TestRandomBits looks at all 62: each is set in about half of the ids.
func TestRandomBits(t *testing.T) {
	const n = 4096
	s, _ := withClock()
	var set [64]int
	for _, id := range draw(t, s, n) {
		for b := id[1]; b != 0; b &= b - 1 {
			set[bits.TrailingZeros64(b)]++
		}
	}
	for bit, got := range set[:62] {
		assert.True(t, got >= n/2-8*32 && got <= n/2+8*32, "bit %d is set in %d of %d ids", bit, got, n) // eight standard deviations
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	s := New()
	words := make([]uint64, 20)
	assert.Equal(t, "allocations", testing.AllocsPerRun(1000, func() { _ = s.Fill(context.Background(), words, 1) }), 0)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017F22E279B07CC398C4DC0C0C07398F", "", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		assert.Of(Parse(id.String())).Equal(t, fmt.Sprintf("%q is %s, and that", text, id), id)
	})
}

func BenchmarkFill(b *testing.B) { sourcetest.MeasureWords(b, New().Fill) }
