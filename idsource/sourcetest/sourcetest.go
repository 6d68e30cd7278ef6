// Package sourcetest has what the tests of several id sources need.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource"
)

// Fill asks for n ids, stride apart.
func Fill(t testing.TB, s idsource.Series, n int, stride uint64) []uint64 {
	t.Helper()
	ids := make([]uint64, n)
	if err := s.Fill(t.Context(), ids, stride); err != nil {
		t.Fatalf("Fill of %d ids, %d apart: %v", n, stride, err)
	}
	return ids
}

// Repeated returns an id that occurs twice.
func Repeated(ids []uint64) (uint64, bool) {
	seen := make(map[uint64]struct{}, len(ids))
	for _, id := range ids {
		if _, ok := seen[id]; ok {
			return id, true
		}
		seen[id] = struct{}{}
	}
	return 0, false
}

// Once reports an id that occurs twice. What it is about stands in front.
func Once(t testing.TB, ids []uint64, about ...any) {
	if id, twice := Repeated(ids); twice {
		t.Helper()
		t.Error(append(about, "id", id, "was issued twice")...)
	}
}

// Twice reports that no id occurs twice, so that the control of a test shows nothing.
func Twice(t testing.TB, ids []uint64, control string) {
	if _, twice := Repeated(ids); !twice {
		t.Helper()
		t.Errorf("%s: of %d ids none was issued twice: the test proves nothing", control, len(ids))
	}
}

// Taken collects the ids that goroutines take at once. The zero value is ready.
type Taken[ID comparable] struct {
	wg  sync.WaitGroup
	mu  sync.Mutex
	all [][]ID
}

// Go takes ids in a goroutine, once for each round, until take returns none.
func (c *Taken[ID]) Go(rounds int, take func(round int) []ID) {
	c.wg.Go(func() {
		var mine [][]ID
		for r := range rounds {
			ids := take(r)
			if ids == nil {
				break
			}
			mine = append(mine, ids)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, mine...)
	})
}

// Twice waits for all goroutines and returns how many ids came twice.
func (c *Taken[ID]) Twice() (n int) {
	c.wg.Wait()
	seen := map[ID]struct{}{}
	for _, ids := range c.all {
		for _, id := range ids {
			if _, ok := seen[id]; ok {
				n++
			}
			seen[id] = struct{}{}
		}
	}
	return n
}

// DrawnTwice has several goroutines draw from each source at once, checks that the ids of each
// ascend, and returns how many came twice.
func DrawnTwice[S any, ID comparable](t *testing.T, sources []S, draw func(t testing.TB, s S, n int) []ID, compare func(a, b ID) int) int {
	t.Helper()
	var taken Taken[ID]
	for _, s := range sources {
		for g := range 4 {
			var last ID
			taken.Go(200, func(int) []ID {
				ids := draw(t, s, 1+g*7)
				if compare(last, ids[0]) >= 0 || !slices.IsSortedFunc(ids, compare) {
					t.Errorf("%v and what follows are not above %v", ids[0], last)
				}
				last = ids[len(ids)-1]
				return ids
			})
		}
	}
	return taken.Twice()
}

// WantKind checks that err is an *idsource.Error of the kind.
func WantKind(t testing.TB, what string, err error, kind idsource.Kind) {
	t.Helper()
	if _, ok := errors.AsType[*idsource.Error](err); !ok || !errors.Is(err, kind) {
		t.Errorf("%s: %v, want an *idsource.Error of kind %q", what, err, kind)
	}
}

// Waits is for Wait of a configuration.
func Waits(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// DrawAlike takes ids from a source in many goroutines at once: runs of several sizes, and single
// ids with and without a stride. It returns all that it was given.
func DrawAlike(t *testing.T, s idsource.Series, take func(ids []uint64, size uint64) error) (all []uint64) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			var mine []uint64
			for r := range 150 {
				ids, size := make([]uint64, 1+(r*7+g)%9), uint64(1)<<((r+g)%7)
				var err error
				switch (r + g) % 3 {
				case 0:
					err = s.Fill(t.Context(), ids, uint64(1+r%3))
					size = 1
				default:
					err = take(ids, size)
				}
				if err != nil {
					t.Errorf("%d runs of %d: %v", len(ids), size, err)
					return
				}
				if !slices.IsSorted(ids) {
					t.Errorf("runs of %d do not ascend: %v", size, ids)
				}
				for _, first := range ids {
					for i := range size {
						mine = append(mine, first+i)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	wg.Wait()
	return all
}

// Took calls n times at once and returns how many calls took how long.
func Took(n int, call func() error, kind idsource.Kind) (map[time.Duration]int, error) {
	times := map[time.Duration]int{}
	var wrong error
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			began := time.Now()
			err := call()
			mu.Lock()
			defer mu.Unlock()
			times[time.Since(began)]++
			if _, ok := errors.AsType[*idsource.Error](err); !ok || !errors.Is(err, kind) {
				wrong = fmt.Errorf("%v, want an *idsource.Error of kind %q", err, kind)
			}
		})
	}
	wg.Wait()
	return times, wrong
}

// MeasureFill measures one goroutine and all of them, for one id and for a
// thousand.
func MeasureFill(b *testing.B, s idsource.Series) {
	Fill(b, s, 1, 1)
	for _, n := range []int{1, 1000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			ids := make([]uint64, n)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Fill(b.Context(), ids, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			ids := make([]uint64, 1)
			for pb.Next() {
				if err := s.Fill(b.Context(), ids, 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// MeasureWords measures goroutines that ask for one id, of two words, each.
func MeasureWords(b *testing.B, fill func(ctx context.Context, words []uint64, stride uint64) error) {
	b.RunParallel(func(pb *testing.PB) {
		words := make([]uint64, 2)
		for pb.Next() {
			_ = fill(context.Background(), words, 1)
		}
	})
	b.ReportAllocs()
}

// Advance moves a series past an id.
func Advance(t testing.TB, s idsource.Series, id uint64) {
	t.Helper()
	if err := s.Advance(t.Context(), id); err != nil {
		t.Fatalf("Advance(%d): %v", id, err)
	}
}

// Raise makes a number at least id.
func Raise(to *atomic.Uint64, id uint64) {
	for v := to.Load(); v < id && !to.CompareAndSwap(v, id); v = to.Load() {
	}
}

// ErrDown is what stores of tests say that are down.
var ErrDown = errors.New("connection refused")
