package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestSegmentRuns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		stride uint64
		want   []uint64 // first of three calls in a row
	}{
		{"one", 1, 1, []uint64{1, 2, 3}},
		{"several", 4, 1, []uint64{1, 5, 9}},
		{"spaced", 3, 10, []uint64{1, 31, 61}},
		{"a whole step", 100, 1, []uint64{1, 101, 201}},
		{"more than a step", 250, 1, []uint64{1, 251, 501}},
		{"spaced beyond a step", 3, 70, []uint64{1, 211, 421}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestSegment(t, Config{Store: newFaultStore(), Step: 100, StepPolicy: StepFixed})
			for _, first := range tt.want {
				for i, id := range sourcetest.Fill(t, s, tt.n, tt.stride) {
					assert.MustEqual(t, fmt.Sprintf("id %d", i), id, first+uint64(i)*tt.stride)
				}
			}
		})
	}
}

// Ranges of two processes interleave, so a run that does not fit in what is
// left gets a range of its own and the rest serves smaller ones.
func TestSegmentDedicatedRange(t *testing.T) {
	st := newFaultStore()
	s := newTestSegment(t, Config{Store: st, Step: 10, StepPolicy: StepFixed, Prefetch: 1})
	assert.MustEqual(t, "first id", sourcetest.Fill(t, s, 7, 1)[0], 1)
	st.set(func(st *faultStore) { st.keys["order_id"] = idsource.Position{Next: 100, Used: true} })
	got := sourcetest.Fill(t, s, 25, 1)
	assert.True(t, got[0] == 100 && got[24] == 124, "25 ids are %d to %d, want 100 to 124", got[0], got[24])
	got = sourcetest.Fill(t, s, 3, 1)
	assert.True(t, slices.Equal(got, []uint64{8, 9, 10}), "3 ids are %v, want the rest of the first range", got)
}

// checkedStore notes what is durable, so that a test can see whether an id left
// before its range was.
type checkedStore struct {
	idsource.SegmentStore
	mu     sync.Mutex
	ranges [][2]uint64
}

func (s *checkedStore) Reserve(ctx context.Context, a idsource.Ask) (uint64, uint64, error) {
	lo, hi, err := s.SegmentStore.Reserve(ctx, a)
	if err == nil {
		s.mu.Lock()
		s.ranges = append(s.ranges, [2]uint64{lo, hi})
		s.mu.Unlock()
	}
	return lo, hi, err
}

func (s *checkedStore) durable(lo, hi uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := lo; id <= hi; {
		i := slices.IndexFunc(s.ranges, func(r [2]uint64) bool { return r[0] <= id && id < r[1] })
		if i < 0 {
			return false
		}
		id = s.ranges[i][1]
	}
	return true
}

func TestSegmentConcurrent(t *testing.T) {
	st := newFaultStore()
	const sources, goroutines, rounds = 3, 8, 400
	var taken sourcetest.Taken[uint64]
	for range sources {
		checked := &checkedStore{SegmentStore: st}
		s := newTestSegment(t, Config{Store: checked, Step: 50, MaxStep: 200})
		for g := range goroutines {
			taken.Go(rounds, func(r int) []uint64 {
				n, stride := 1+(r*7+g)%60, uint64(1+r%3)
				ids := make([]uint64, n)
				if err := s.Fill(t.Context(), ids, stride); err != nil {
					t.Errorf("Fill: %v", err)
					return nil
				}
				assert.True(t, checked.durable(ids[0], ids[n-1]), "ids %d to %d left before their range was stored", ids[0], ids[n-1])
				for i := range ids {
					assert.True(t, ids[i] == ids[0]+uint64(i)*stride, "id %d of %d is %d, first %d, stride %d", i, n, ids[i], ids[0], stride)
				}
				return ids
			})
		}
	}
	assert.LessOrEqual(t, "ids were issued twice", taken.Twice(), 0)
}

func TestSegmentPrefetch(t *testing.T) {
	for _, tt := range []struct {
		name     string
		prefetch float64
		used     int // ids taken when the second range must be there, and not before
	}{{"default", 0, 10}, {"half", 0.5, 50}, {"all", 1, 100}, {"tiny", 0.001, 1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newFaultStore()
				s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: tt.prefetch})
				for used := 1; used <= tt.used; used++ {
					sourcetest.Fill(t, s, 1, 1)
					synctest.Wait()
					assert.MustEqual(t, fmt.Sprintf("ranges after %d ids", used), len(st.calls()), 1+used/tt.used)
				}
			})
		})
	}
}

func TestSegmentStep(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy StepPolicy
		lasts  []time.Duration
		want   []uint64
	}{
		{"busy", StepLeaf, []time.Duration{0, time.Minute, time.Minute, time.Minute, time.Minute}, []uint64{100, 200, 400, 500, 500}},
		{"steady", StepLeaf, []time.Duration{0, 20 * time.Minute, 29 * time.Minute}, []uint64{100, 100, 100}},
		{"busy, then idle", StepLeaf, []time.Duration{0, time.Minute, time.Minute, time.Hour, time.Hour, time.Hour}, []uint64{100, 200, 400, 200, 100, 100}},
		{"busy, then steady", StepLeaf, []time.Duration{0, time.Minute, 16 * time.Minute}, []uint64{100, 200, 200}},
		{"fixed", StepFixed, []time.Duration{0, time.Minute, time.Hour}, []uint64{100, 100, 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newFaultStore()
				st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
				s := newTestSegment(t, Config{Store: st, Step: 100, MaxStep: 500, StepPolicy: tt.policy, Prefetch: 1})
				var got []uint64
				for i, last := range tt.lasts {
					time.Sleep(last)
					if i > 0 { // use up the range before
						sourcetest.Fill(t, s, int(got[i-1])-1, 1)
						synctest.Wait()
					} else {
						sourcetest.Fill(t, s, 1, 1)
					}
					assert.MustTrue(t, i <= 0 || len(st.calls()) == i+1, "%d ranges, want %d", len(st.calls()), i+1)
					got = append(got, st.calls()[i].Count)
					if i > 0 {
						sourcetest.Fill(t, s, 1, 1)
					}
				}
				assert.True(t, slices.Equal(got, tt.want), "steps %v, want %v", got, tt.want)
			})
		})
	}
}

func TestSegmentSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
		st.block = make(chan struct{})
		s := newTestSegment(t, Config{Store: st, Step: 1000, StepPolicy: StepFixed})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { sourcetest.Fill(t, s, 3, 1) })
		}
		synctest.Wait()
		close(st.block)
		wg.Wait()
		synctest.Wait()
		assert.Equal(t, "fetches at once", st.most, 1)
		// The first range serves all; taking 300 of it asks for the next one.
		assert.Equal(t, "fetches for 100 waiters", len(st.calls()), 2)
	})
}

func TestSegmentBoundedWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
		st.block = make(chan struct{})
		s := newTestSegment(t, Config{Store: st})
		start := time.Now()
		err := s.Fill(t.Context(), make([]uint64, 1), 1)
		sourcetest.WantKind(t, "store that does not answer", err, idsource.StoreDown)
		assert.Equal(t, "waited", time.Since(start), idsource.DefaultWait)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		err = s.Fill(ctx, make([]uint64, 1), 1)
		sourcetest.WantKind(t, "context that ended", err, idsource.NotReady)
		assert.True(t, errors.Is(err, context.DeadlineExceeded) && time.Since(start) == time.Second, "after %v: %v, want the context's error after 1s", time.Since(start), err)
		close(st.block)
		synctest.Wait()
		sourcetest.Fill(t, s, 1, 1)
	})
}

// A store that is down at the start: an error that names it after the bounded
// wait, and ids as soon as it is up.
func TestSegmentStoreComesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.down = sourcetest.ErrDown
		s := newTestSegment(t, Config{Store: st})
		sourcetest.WantKind(t, "Admit", s.Admit(t.Context(), "shop.orders.id", 0), idsource.StoreDown)
		err := s.Fill(t.Context(), make([]uint64, 1), 1)
		sourcetest.WantKind(t, "Fill", err, idsource.StoreDown)
		assert.True(t, errors.Is(err, sourcetest.ErrDown) && strings.Contains(err.Error(), `"order_id"`), "error %q, want source and cause in it", err)
		st.set(func(st *faultStore) { st.down = nil })
		time.Sleep(idsource.MaxPause)
		synctest.Wait()
		assert.Equal(t, "first id", sourcetest.Fill(t, s, 1, 1)[0], 1)
	})
}

// While the store is down, what is in memory is issued.
func TestSegmentOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed})
		sourcetest.Fill(t, s, 20, 1)
		synctest.Wait()
		st.set(func(st *faultStore) { st.down = sourcetest.ErrDown })
		sourcetest.Fill(t, s, 180, 1)
		sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.StoreDown)
		st.set(func(st *faultStore) { st.down = nil })
		assert.Equal(t, "id after the outage", sourcetest.Fill(t, s, 1, 1)[0], 201)
	})
}

func TestSegmentLostReply(t *testing.T) {
	st := newFaultStore()
	st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
	st.lose = true
	s := newTestSegment(t, Config{Store: st, Step: 100})
	got := sourcetest.Fill(t, s, 1, 1)
	assert.True(t, got[0] == 101, "first id %d, want 101: the range whose reply was lost is a gap", got[0])
}

func TestSegmentExhausted(t *testing.T) {
	for _, tt := range []struct {
		name        string
		start, last uint64
	}{{"small", 1, 25}, {"signed", math.MaxInt64 - 24, 0}, {"unsigned", math.MaxUint64 - 25, math.MaxUint64 - 1}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestSegment(t, Config{Store: newFaultStore(), Start: tt.start, Last: tt.last, Step: 10})
			next := tt.start
			for range 12 {
				for _, id := range sourcetest.Fill(t, s, 2, 1) {
					assert.MustEqual(t, "id", id, next)
					next++
				}
			}
			sourcetest.WantKind(t, "two more", s.Fill(t.Context(), make([]uint64, 2), 1), idsource.Exhausted)
			sourcetest.Fill(t, s, 1, 1)
			sourcetest.WantKind(t, "one more", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Exhausted)
		})
	}
}

func TestSegmentBadAsk(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), MaxBatch: 1000})
	sourcetest.WantKind(t, "stride 0", s.Fill(t.Context(), make([]uint64, 1), 0), idsource.BadConfig)
	sourcetest.WantKind(t, "1001 ids", s.Fill(t.Context(), make([]uint64, 1001), 1), idsource.TooMany)
	sourcetest.WantKind(t, "overflow", s.Fill(t.Context(), make([]uint64, 4), math.MaxUint64/2), idsource.TooMany)
	assert.NoError(t, s.Fill(t.Context(), nil, 1), "Fill of nothing")
	sourcetest.Fill(t, s, 1000, 1)
}

func TestSegmentConfigErrors(t *testing.T) {
	st := newFaultStore()
	for _, tt := range []struct {
		name string
		c    Config
	}{
		{"no name", Config{Store: st}},
		{"no store", Config{Name: "a"}},
		{"max_step below step", Config{Name: "a", Store: st, Step: 10, MaxStep: 5}},
		{"prefetch above all", Config{Name: "a", Store: st, Prefetch: 1.1}},
		{"prefetch negative", Config{Name: "a", Store: st, Prefetch: -0.1}},
		{"prefetch not a number", Config{Name: "a", Store: st, Prefetch: math.NaN()}},
		{"start above last", Config{Name: "a", Store: st, Start: 11, Last: 10}},
		{"last without an end", Config{Name: "a", Store: st, Last: math.MaxUint64}},
		{"step policy", Config{Name: "a", Store: st, StepPolicy: 9}},
	} {
		_, err := New(tt.c)
		sourcetest.WantKind(t, tt.name, err, idsource.BadConfig)
	}
}

func TestSegmentAllocs(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), Step: 1 << 30})
	ids := make([]uint64, 10)
	sourcetest.Fill(t, s, 1, 1)
	assert.Equal(t, "allocations per Fill", testing.AllocsPerRun(1000, func() { _ = s.Fill(t.Context(), ids, 1) }), 0)
}

func BenchmarkSegment(b *testing.B) {
	sourcetest.MeasureFill(b, newTestSegment(b, Config{Store: newFaultStore(), Step: 1_000_000}))
}
