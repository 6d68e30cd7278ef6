package snowflake

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// checkRuns checks that ids ascend, stride apart inside a unit, and that a unit
// is left only where it has no room.
func checkRuns(t testing.TB, s *Snowflake, ids []uint64, stride uint64) {
	t.Helper()
	for i := 1; i < len(ids); i++ {
		a, b := s.layout.Decode(ids[i-1]), s.layout.Decode(ids[i])
		switch {
		case a.Time == b.Time && ids[i] == ids[i-1]+stride:
		case b.Time == a.Time+1 && b.Sequence == 0 && a.Sequence+stride > s.words.mask:
		default:
			t.Fatalf("ids %d and %d of %d: %+v and %+v, stride %d", i-1, i, len(ids), a, b, stride)
		}
	}
}

func TestSnowflakeRuns(t *testing.T) {
	for _, tt := range []struct {
		layout string
		n      int
		stride uint64
		units  int // how many units of time the ids of a call occupy
	}{
		{"41/10/12", 1, 1, 1},
		{"41/10/12", 1000, 1, 1},
		{"41/10/12", 4096, 1, 1},
		{"41/10/12", 4097, 1, 2},
		{"41/10/12", 10000, 1, 3},
		{"41/10/12", 1000, 4, 1},
		{"41/10/12", 1025, 4, 2},
		{"41/10/12", 3, 5000, 3},
		{"41/5/7", 300, 1, 3},
		{"32s/8/13", 8192, 1, 1},
	} {
		for _, sequence := range []string{"continue", "zero", "random", "random:7"} {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSnowflake(t, Config{Fences: usedFences(5), Layout: tt.layout, Worker: 5, Sequence: sequence}, new(testClock).clock())
				var all []uint64
				for range 5 {
					ids := sourcetest.Fill(t, s, tt.n, tt.stride)
					checkRuns(t, s, ids, tt.stride)
					first, last := s.layout.Decode(ids[0]), s.layout.Decode(ids[len(ids)-1])
					units := int(last.Time-first.Time) + 1
					assert.True(t, units == tt.units && first.Worker == 5, "%s, %s: %d ids, %d apart, from %+v occupy %d units, want %d", tt.layout, sequence, tt.n, tt.stride, first, units, tt.units)
					all = append(all, ids...)
				}
				assert.True(t, slices.IsSorted(all), "%s, %s: ids of successive calls do not ascend", tt.layout, sequence)
			})
		}
	}
}

func TestSnowflakeConcurrent(t *testing.T) {
	fences := newFaultFences()
	var taken sourcetest.Taken[uint64]
	for worker := range uint64(2) {
		s := newTestSnowflake(t, Config{
			Fences: fences, Worker: worker, Renew: time.Millisecond, Wait: sourcetest.Waits(10 * time.Second),
		}, new(testClock).clock())
		for g := range 6 {
			taken.Go(500, func(r int) []uint64 {
				ids := make([]uint64, 1+(r*13+g)%50)
				if err := s.Fill(t.Context(), ids, 1); err != nil {
					t.Errorf("Fill: %v", err)
					return nil
				}
				assert.Less(t, "a timestamp, below the stored fence,", s.layout.Decode(ids[len(ids)-1]).Time, fences.fence(worker))
				checkRuns(t, s, ids, 1)
				return ids
			})
		}
	}
	assert.LessOrEqual(t, "ids were issued twice", taken.Twice(), 0)
}

// More ids than the clock allows: timestamps run ahead by MaxAhead, then calls wait for the clock.
func TestSnowflakeOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSnowflake(t, Config{Fences: usedFences(0), Layout: "41/16/2", MaxAhead: 100 * time.Millisecond}, new(testClock).clock())
		sourcetest.Fill(t, s, 1, 1)
		start, most := time.Now(), uint64(0)
		var all []uint64
		for range 4000 { // one second's worth
			all = append(all, sourcetest.Fill(t, s, 1, 1)...)
			ts := s.layout.Decode(all[len(all)-1]).Time
			most = max(most, ts-s.time.now())
		}
		took := time.Since(start)
		assert.True(t, took >= 890*time.Millisecond && took <= 950*time.Millisecond, "4000 ids at 4 per ms took %v, want 1s less the 100ms borrowed", took)
		assert.True(t, most == 100, "timestamps ran %d ms ahead, want 100", most)
		sourcetest.Once(t, all)
		sourcetest.WantKind(t, "ids of more than MaxAhead", s.Fill(t.Context(), make([]uint64, 405), 1), idsource.TooMany)
	})
}

func TestSnowflakeExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clk testClock
		l := Layout{Time: 36, Worker: 10, Sequence: 12, Unit: time.Millisecond}
		s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: l.String()}, clk.clock())
		sourcetest.Fill(t, s, 1, 1)
		clk.jump(time.Until(l.End(testEpoch)))
		time.Sleep(10 * time.Second)
		sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Exhausted)
	})
}

func TestSnowflakeConfigErrors(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name string
		c    Config
		want string
	}{
		{"no name", Config{Fences: newFaultFences()}, "name"},
		{"no store", Config{Name: "a"}, "store"},
		{"layout", Config{Layout: "42/10/12"}, "64 bits"},
		{"worker too large", Config{Worker: 1024}, "1023"},
		{"split worker too large", Config{Layout: "41/5+5/12", Worker: 32}, "31"},
		{"datacenter too large", Config{Layout: "41/5+5/12", Datacenter: 32}, "datacenter 32"},
		{"datacenter without bits", Config{Datacenter: 1}, "datacenter 1"},
		{"swap", Config{ClockBack: BackSwap}, "needs worker numbers from a pool"},
		{"sequence", Config{Sequence: "random:0"}, "random:0"},
		{"sequence unknown", Config{Sequence: "zeros"}, "zeros"},
		{"max_ahead beyond lead", Config{MaxAhead: 7 * time.Second}, "lead"},
		{"epoch ahead", Config{Epoch: now.Add(time.Hour)}, "future"},
		{"half a year left", Config{Layout: "38/15/10", Epoch: now.Add(-8*year - 100*24*time.Hour)}, "less than a year"},
	} {
		if tt.name != "no name" {
			tt.c.Name = "a"
		}
		if tt.name != "no store" {
			tt.c.Fences = newFaultFences()
		}
		_, err := New(tt.c)
		sourcetest.WantKind(t, tt.name, err, idsource.BadConfig)
		assert.True(t, err != nil && strings.Contains(err.Error(), tt.want), "%s: error %q lacks %q", tt.name, err, tt.want)
	}
}

func TestSnowflakeSplitWorker(t *testing.T) {
	s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: "41/5+5/12", Datacenter: 3, Worker: 7}, new(testClock).clock())
	assert.Equal(t, "worker number", s.layout.Decode(sourcetest.Fill(t, s, 1, 1)[0]).Worker, 3<<5|7)
}

func TestSnowflakeAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSnowflake(t, Config{Fences: newFaultFences()}, new(testClock).clock())
		id := sourcetest.Fill(t, s, 1, 1)[0]
		minute := uint64(60_000) << 22
		for _, tt := range []struct {
			name    string
			highest uint64
			kind    idsource.Kind
		}{
			{"empty", 0, 0},
			{"own", id, 0},
			{"another worker a bit ahead", id + minute/10, 0},
			{"a minute ahead", id + minute, idsource.Behind},
			{"not of this layout", math.MaxInt64, idsource.Behind},
		} {
			err := s.Admit(t.Context(), "shop.events.id", tt.highest)
			assert.True(t, (tt.kind == 0) == (err == nil) && (err == nil || errors.Is(err, tt.kind)), "%s: Admit(%d) = %v, want kind %v", tt.name, tt.highest, err, tt.kind)
		}
	})
}

func TestSnowflakeAllocs(t *testing.T) {
	s := newTestSnowflake(t, Config{Fences: newFaultFences()}, new(testClock).clock())
	ids := make([]uint64, 10)
	sourcetest.Fill(t, s, 1, 1)
	assert.Equal(t, "allocations per Fill", testing.AllocsPerRun(1000, func() { _ = s.Fill(t.Context(), ids, 1) }), 0)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The default layout has 4,096 ids per millisecond: 244 ns per id is its
// limit. A wide sequence shows what the code costs.
func BenchmarkSnowflake(b *testing.B) {
	for _, layout := range []string{DefaultLayout, "41/2/20"} {
		b.Run(layout, func(b *testing.B) {
			s, err := New(Config{Name: "event_id", Fences: newFaultFences(), Layout: layout})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close(b.Context()) }) // the store is in memory
			sourcetest.MeasureFill(b, s)
		})
	}
}

// TestBlocks has no id in two runs, or in a run and by itself, whatever else is drawn from the
// source.
func TestBlocksOfSnowflakes(t *testing.T) {
	flake := func(t *testing.T, sequence string) *Snowflake {
		return newTestSnowflake(t, Config{
			Fences: newFaultFences(), Layout: "41/10/8", Worker: 3, Sequence: sequence, Renew: time.Millisecond, MaxAhead: 20 * time.Second, Lead: 25 * time.Second, Wait: sourcetest.Waits(10 * time.Second),
		}, new(testClock).clock())
	}
	for _, sequence := range []string{"continue", "random"} {
		t.Run(sequence, func(t *testing.T) {
			s := flake(t, sequence)
			all := sourcetest.DrawAlike(t, s, func(ids []uint64, size uint64) error { return s.Blocks(t.Context(), ids, size) })
			sourcetest.Once(t, all)
			assert.GreaterOrEqual(t, "ids", len(all), 10_000)
			for _, id := range all {
				assert.MustEqual(t, fmt.Sprintf("id %d has worker", id), s.layout.Decode(id).Worker, 3)
			}
		})
	}
	t.Run("negative control", func(t *testing.T) {
		s := flake(t, "continue")
		all := sourcetest.DrawAlike(t, s, func(ids []uint64, size uint64) error { return s.Fill(t.Context(), ids, size) })
		sourcetest.Twice(t, all, "runs of ids that lie apart")
	})
}

func TestBlocksOfSnowflakesRefused(t *testing.T) {
	s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: "41/10/4"}, new(testClock).clock())
	for _, tt := range []struct {
		name string
		n    int
		size uint64
		want idsource.Kind
	}{
		{name: "of nothing", n: 1, size: 0, want: idsource.BadConfig},
		{name: "larger than its sequence", n: 1, size: 32, want: idsource.BadConfig},
		{name: "no power of two", n: 1, size: 3, want: idsource.BadConfig},
		{name: "beyond max_ahead", n: 4000, size: 16, want: idsource.TooMany},
		{name: "beyond all numbers", n: 1 << 20, size: 16, want: idsource.TooMany},
	} {
		assert.ErrorIs(t, tt.name, s.Blocks(t.Context(), make([]uint64, tt.n), tt.size), tt.want)
	}
	assert.NoError(t, s.Blocks(t.Context(), nil, 16), "no runs")
}
