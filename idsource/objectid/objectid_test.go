package objectid

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
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
	if err := s.Fill(context.Background(), words, 1); err != nil {
		t.Fatal(err)
	}
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
	if err != nil || id.Parts() != want || id.String() != text {
		t.Errorf("got %s, %+v, %v; want %s, %+v", id, id.Parts(), err, text, want)
	}
	for _, bad := range []string{"", "507f1f77", text + "00", "507f1f77bcf86cd79943901g"} {
		if id, err := Parse(bad); err == nil {
			t.Errorf("%q is read as %s", bad, id)
		}
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
			if compare(last, id) >= 0 {
				t.Fatalf("clock at %d: id %d, %s, is not above %s", sec, i, id, last)
			}
			if at := p.Time.Unix(); at < highest || at > highest+1 || p.Process != s.process {
				t.Fatalf("clock at %d: id %s has time %d and process %x", sec, id, at, p.Process)
			}
			if again, err := Parse(id.String()); err != nil || again != id {
				t.Fatalf("%s is read as %s, %v", id, again, err)
			}
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
		if second := start + int64(i/2); p.Counter != want.Counter || p.Time.Unix() != second {
			t.Errorf("id %d: %+v, want counter %d in second %d", i, p, want.Counter, second)
		}
	}
	c.Store(start + 1)
	if next := draw(t, s, 1)[0]; compare(ids[3], next) >= 0 || next.Parts().Counter != 2 {
		t.Errorf("%s behind %s", next, ids[3])
	}
	c.Store(start + 2)
	if next := draw(t, s, 1)[0].Parts(); next.Counter != 3 || next.Time.Unix() != start+2 {
		t.Errorf("in the next second %+v: the counter goes on", next)
	}
}

// TestBound refuses to run further ahead than maxAhead, gives nothing then, and goes on once the
// clock does.
func TestBound(t *testing.T) {
	s, c := withClock()
	draw(t, s, 1)
	s.last = (start+maxAhead)<<counterBits | (1<<counterBits - 3)
	last := draw(t, s, 1)[0]
	words := make([]uint64, 4)
	if err := s.Fill(context.Background(), words, 1); !errors.Is(err, ErrAhead) || words[0] != 0 {
		t.Errorf("got %v and %x", err, words)
	}
	c.Store(start + 1)
	if next := draw(t, s, 2)[0]; compare(last, next) >= 0 {
		t.Errorf("%s behind %s", next, last)
	}
	c.Store(1<<32 - 2) // the last second but one that four bytes hold
	s.last = 0
	draw(t, s, 1)
	s.last = 1<<(32+counterBits) - 2
	if err := s.Fill(context.Background(), words, 1); !errors.Is(err, ErrAhead) {
		t.Errorf("behind the last second of all: %v", err)
	}
}

// TestNeverTwice has several sources make ids at the same time by one clock that stands still. The
// control is two that share their random bytes, as after a machine was cloned while it ran.
func TestNeverTwice(t *testing.T) {
	a, c := withClock()
	if n := sourcetest.DrawnTwice(t, []*Source{a, newSource(c.Load), New(), New()}, draw, compare); n != 0 {
		t.Errorf("%d ids came twice", n)
	}
	one, c := withClock()
	clone := &Source{now: c.Load, process: one.process, last: one.last}
	if n := sourcetest.DrawnTwice(t, []*Source{one, clone}, draw, compare); n == 0 {
		t.Error("a clone makes other ids")
	}
}

func TestProcessesDiffer(t *testing.T) {
	seen, counters := map[uint64]bool{}, map[uint64]bool{}
	for range 100 {
		s := New()
		seen[s.process] = true
		counters[s.last] = true
		if s.process >= 1<<40 || s.last >= 1<<counterBits {
			t.Fatalf("process %x, counter %x", s.process, s.last)
		}
	}
	if len(seen) != 100 || len(counters) < 95 {
		t.Errorf("%d processes and %d counters of 100", len(seen), len(counters))
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	s := New()
	words := make([]uint64, 20)
	if n := testing.AllocsPerRun(1000, func() { _ = s.Fill(context.Background(), words, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("507f1f77bcf86cd799439011")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(id.String()); err != nil || again != id {
			t.Errorf("%q is %s, and that is %s, %v", text, id, again, err)
		}
	})
}

func BenchmarkFill(b *testing.B) {
	s := New()
	b.RunParallel(func(pb *testing.PB) {
		words := make([]uint64, 2)
		for pb.Next() {
			_ = s.Fill(context.Background(), words, 1)
		}
	})
	b.ReportAllocs()
}
