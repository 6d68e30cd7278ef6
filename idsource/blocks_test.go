package idsource

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"
)

// drawAlike takes ids from a source in many goroutines at once: runs of several sizes, and single
// ids with and without a stride. It returns all that it was given.
func drawAlike(t *testing.T, s Series, take func(ids []uint64, size uint64) error) (all []uint64) {
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

// TestBlocks has no id in two runs, or in a run and by itself, whatever else is drawn from the
// source.
func TestBlocks(t *testing.T) {
	flake := func(sequence string) func(t *testing.T) Series {
		return func(t *testing.T) Series {
			return newTestSnowflake(t, SnowflakeConfig{
				Fences: newFaultFences(), Layout: "41/10/8", Worker: 3, Sequence: sequence, Renew: time.Millisecond, MaxAhead: 20 * time.Second, Lead: 25 * time.Second, Wait: waits(10 * time.Second),
			}, new(testClock).clock())
		}
	}
	for name, source := range map[string]func(t *testing.T) Series{
		"segment": func(t *testing.T) Series {
			return newTestSegment(t, SegmentConfig{Store: newFaultStore(), Step: 500, MaxStep: 4000})
		},
		"segment in small parts": func(t *testing.T) Series {
			return newTestSegment(t, SegmentConfig{Store: newFaultStore(), Step: 50, MaxStep: 200, MaxBatch: 200})
		},
		"snowflake":               flake("continue"),
		"snowflake, random start": flake("random"),
	} {
		t.Run(name, func(t *testing.T) {
			s := source(t)
			all := drawAlike(t, s, func(ids []uint64, size uint64) error { return s.Blocks(t.Context(), ids, size) })
			if id, twice := repeated(all); twice || len(all) < 10_000 {
				t.Errorf("id %d is in two runs of %d ids: %v", id, len(all), twice)
			}
			if f, ok := s.(*Snowflake); ok {
				for _, id := range all {
					if p := f.layout.Decode(id); p.Worker != 3 {
						t.Fatalf("id %d has worker %d, want 3", id, p.Worker)
					}
				}
			}
		})
	}
	t.Run("negative control", func(t *testing.T) {
		s := flake("continue")(t)
		all := drawAlike(t, s, func(ids []uint64, size uint64) error { return s.Fill(t.Context(), ids, size) })
		if _, twice := repeated(all); !twice {
			t.Error("ids that lie apart are runs as well: the test finds nothing")
		}
	})
}

func TestBlocksRefused(t *testing.T) {
	segment := newTestSegment(t, SegmentConfig{Store: newFaultStore(), MaxBatch: 1000})
	flake := newTestSnowflake(t, SnowflakeConfig{Fences: newFaultFences(), Layout: "41/10/4"}, new(testClock).clock())
	for _, tt := range []struct {
		name string
		s    Series
		n    int
		size uint64
		want Kind
	}{
		{name: "a segment, of nothing", s: segment, n: 1, size: 0, want: BadConfig},
		{name: "a segment, too large", s: segment, n: 1, size: 1001, want: TooMany},
		{name: "a snowflake, of nothing", s: flake, n: 1, size: 0, want: BadConfig},
		{name: "a snowflake, larger than its sequence", s: flake, n: 1, size: 32, want: BadConfig},
		{name: "a snowflake, no power of two", s: flake, n: 1, size: 3, want: BadConfig},
		{name: "a snowflake, beyond max_ahead", s: flake, n: 4000, size: 16, want: TooMany},
		{name: "a snowflake, beyond all numbers", s: flake, n: 1 << 20, size: 16, want: TooMany},
	} {
		if err := tt.s.Blocks(t.Context(), make([]uint64, tt.n), tt.size); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want kind %v", tt.name, err, tt.want)
		}
	}
	for _, s := range []Series{segment, flake} {
		if err := s.Blocks(t.Context(), nil, 16); err != nil {
			t.Errorf("no runs: %v", err)
		}
	}
	if ids := fill(t, segment, 1, 1); ids[0] != 1 {
		t.Errorf("refused runs used ids up: the next one is %d", ids[0])
	}
}

// TestBlocksAtTheEnd takes the last ids of a segment, and no more.
func TestBlocksAtTheEnd(t *testing.T) {
	s := newTestSegment(t, SegmentConfig{Store: newFaultStore(), Start: math.MaxInt64 - 31, Last: math.MaxInt64})
	ids := make([]uint64, 2)
	if err := s.Blocks(t.Context(), ids, 16); err != nil || ids[1] != math.MaxInt64-15 {
		t.Errorf("%v, %v; want the last 32 ids", ids, err)
	}
	if err := s.Blocks(t.Context(), ids[:1], 16); !errors.Is(err, Exhausted) {
		t.Errorf("behind the last id: %v", err)
	}
}
