package segment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func TestSegmentAdvance(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stand uint64 // of the store, before the source has a range
		used  int    // ids taken before; the ranges have 100
		id    uint64
		next  uint64
		trips int // to the store, for Advance alone
	}{
		{name: "nothing held", stand: 1, id: 40, next: 41, trips: 1},
		{name: "nothing held, store ahead", stand: 500, id: 40, next: 500, trips: 1},
		{name: "issued before", stand: 1, used: 10, id: 5, next: 11},
		{name: "the last one issued", stand: 1, used: 10, id: 10, next: 11},
		{name: "held", stand: 1, used: 10, id: 40, next: 41},
		{name: "the last one held", stand: 1, used: 10, id: 100, next: 101, trips: 1},
		{name: "just above", stand: 1, used: 10, id: 101, next: 102, trips: 1},
		{name: "far above", stand: 1, used: 10, id: 1 << 60, next: 1<<60 + 1, trips: 1},
		{name: "zero", stand: 1, used: 10, id: 0, next: 11},
		{name: "of another process, long ago", stand: 1000, used: 10, id: 700, next: 1010},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newFaultStore()
				st.keys["order_id"] = idsource.Position{Next: tt.stand, Used: true}
				s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
				if tt.used > 0 {
					sourcetest.Fill(t, s, tt.used, 1)
				}
				before := len(st.calls())
				sourcetest.Advance(t, s, tt.id)
				got := len(st.calls()) - before
				assert.True(t, got == tt.trips || tt.id == 100, "%d round trips, want %d", got, tt.trips) // the last one held asks for the next range, as issuing it does
				p := st.snapshot()["order_id"]
				assert.True(t, p.Next > tt.id, "the store stands at %d", p.Next)
				assert.Equal(t, "the next id", sourcetest.Fill(t, s, 1, 1)[0], tt.next)
			})
		})
	}
}

// What would leave no ids is refused, and the source goes on.
func TestSegmentAdvanceTooHigh(t *testing.T) {
	for _, id := range []uint64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - DefaultMaxStep + 1, 1 << 63, math.MaxUint64, math.MaxUint64 - 4} {
		s := newTestSegment(t, Config{Store: newFaultStore(), Step: 100})
		sourcetest.Fill(t, s, 5, 1)
		sourcetest.WantKind(t, "Advance", s.Advance(t.Context(), id), idsource.TooHigh)
		assert.Equal(t, fmt.Sprintf("the next id behind sourcetest.Advance(%d)", id), sourcetest.Fill(t, s, 1, 1)[0], 6)
	}
	s := newTestSegment(t, Config{Store: newFaultStore()})
	sourcetest.Advance(t, s, math.MaxInt64-DefaultMaxStep)
	assert.Equal(t, "the next id", sourcetest.Fill(t, s, 1, 1)[0], math.MaxInt64-DefaultMaxStep+1)
	const want = `id source "order_id": id too high: 9223372036854775807 cannot be moved past: ` +
		`fewer than 1000000 ids would be left below the greatest allowed, 9223372036854775807; insert a lower id, or use explicit: keep`
	assert.Equal(t, "Advance", fmt.Sprint(s.Advance(t.Context(), math.MaxInt64)), want)
}

// Ids that are on their way when Advance comes are dropped as they arrive.
func TestSegmentAdvanceInFlight(t *testing.T) {
	for id, next := range map[uint64]uint64{30: 31, 100: 101, 5000: 5001} {
		synctest.Test(t, func(t *testing.T) {
			st := newFaultStore()
			st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
			st.block = make(chan struct{})
			s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed})
			var wg sync.WaitGroup
			wg.Go(func() { sourcetest.Fill(t, s, 1, 1) })
			synctest.Wait()
			wg.Go(func() { sourcetest.Advance(t, s, id) })
			synctest.Wait()
			close(st.block)
			wg.Wait()
			got := sourcetest.Fill(t, s, 1, 1)[0]
			assert.True(t, got == next || got == next+1, "the next id behind sourcetest.Advance(%d) is %d, want %d", id, got, next) // one is the waiting Fill's
		})
	}
}

func TestSegmentAdvanceStoreDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
		sourcetest.Fill(t, s, 5, 1)
		st.set(func(st *faultStore) { st.down = sourcetest.ErrDown })
		sourcetest.Advance(t, s, 50)
		sourcetest.WantKind(t, "above what is held", s.Advance(t.Context(), 700), idsource.StoreDown)
		st.set(func(st *faultStore) { st.down = nil })
		assert.Equal(t, "the next id, as nobody can tell whether the store took it", sourcetest.Fill(t, s, 1, 1)[0], 701)
		assert.Must(t, s.Close(t.Context()))
		sourcetest.WantKind(t, "Advance", s.Advance(t.Context(), 1), idsource.Closed)
	})
}

// A store that went back is found although Advance asks for ids above it.
func TestSegmentAdvanceWentBack(t *testing.T) {
	for _, vanished := range []bool{false, true} {
		for _, remembers := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				st := newFaultStore()
				s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
				sourcetest.Fill(t, s, 5, 1)
				if !remembers {
					forget(s)
				}
				st.set(func(st *faultStore) {
					st.keys["order_id"] = idsource.Position{Next: 30, Used: true}
					if vanished {
						delete(st.keys, "order_id")
					}
				})
				err := s.Advance(t.Context(), 700)
				if !remembers { // the negative control
					assert.True(t, err == nil, "a process that forgets: %v; the test proves nothing", err)
					return
				}
				sourcetest.WantKind(t, "Advance", err, idsource.Behind)
				sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Behind)
			})
		}
	}
}

// Processes close one behind the other, each giving back the newest range, and another one starts.
func TestSegmentAdvanceGiveBack(t *testing.T) {
	next := func(id uint64) (got uint64) {
		synctest.Test(t, func(t *testing.T) {
			st := newFaultStore()
			c := Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1}
			a := newTestSegment(t, c)
			c.Prefetch = 0.1
			b := newTestSegment(t, c)
			sourcetest.Fill(t, b, 1, 1)
			sourcetest.Fill(t, a, 10, 1) // holds 111 to 200
			sourcetest.Fill(t, b, 9, 1)
			synctest.Wait() // holds 11 to 100 and 201 to 300
			if id > 0 {
				sourcetest.Advance(t, b, id)
			}
			for _, s := range []*Segment{b, a} {
				assert.Must(t, s.Close(t.Context()))
			}
			got = sourcetest.Fill(t, newTestSegment(t, c), 1, 1)[0]
		})
		return got
	}
	for _, id := range []uint64{50, 150, 200, 250, 300, 301, 340} {
		assert.Greater(t, fmt.Sprintf("the next id behind sourcetest.Advance(%d)", id), next(id), id)
	}
	// Without Advance both ranges come back: the control of this test.
	assert.Equal(t, "the next id", next(0), 111)
}

// courses lets processes of one store issue and advance at random, and returns how often an id came
// that Advance had excluded. An Advance that does nothing is the negative control.
func courses(t *testing.T, does guard) (wrong int64) {
	st := newFaultStore()
	st.keys["order_id"] = idsource.Position{Next: 1000, Used: true}
	const processes, goroutines, rounds = 3, 4, 300
	var bad atomic.Int64
	var stored atomic.Uint64 // greatest id of any Advance that returned
	var mu sync.Mutex
	var all []uint64
	var wg sync.WaitGroup
	for range processes {
		watched := &watchedStore{faultStore: st, past: &stored, bad: &bad}
		s := newTestSegment(t, Config{Store: watched, Step: 20, MaxStep: 50})
		var here atomic.Uint64 // of this process
		for g := range goroutines {
			wg.Go(func() {
				for r := range rounds {
					if (r+g)%3 > 0 {
						past := here.Load()
						ids := make([]uint64, 1+r%7)
						if err := s.Fill(t.Context(), ids, 1); err != nil {
							t.Errorf("Fill: %v", err)
							return
						}
						if ids[0] <= past {
							bad.Add(1)
						}
						mu.Lock()
						all = append(all, ids...)
						mu.Unlock()
						continue
					}
					id := st.snapshot()["order_id"].Next + rand.Uint64N(60) - min(rand.Uint64N(60), 30)
					if does {
						assert.NoError(t, s.Advance(t.Context(), id), "Advance")
					}
					sourcetest.Raise(&here, id)
					sourcetest.Raise(&stored, id)
				}
			})
		}
	}
	wg.Wait()
	sourcetest.Once(t, all)
	return bad.Load()
}

// watchedStore counts the ranges that reach below an Advance which had returned
// before they were asked for.
type watchedStore struct {
	*faultStore
	past *atomic.Uint64
	bad  *atomic.Int64
}

func (s *watchedStore) Reserve(ctx context.Context, a idsource.Ask) (uint64, uint64, error) {
	past := s.past.Load()
	lo, hi, err := s.faultStore.Reserve(ctx, a)
	if err == nil && lo <= past {
		s.bad.Add(1)
	}
	return lo, hi, err
}

func TestSegmentAdvanceConcurrent(t *testing.T) {
	assert.Equal(t, "ids and ranges reach below an Advance that had returned", courses(t, guarded), 0)
	assert.True(t, courses(t, bare) != 0, "an Advance that does nothing is not noticed: the test proves nothing")
}

func TestSegmentReturn(t *testing.T) {
	for _, tt := range []struct {
		name       string
		first, end uint64 // of 10 ids from 1 on, the first of which was waited for
		behind     int    // ids taken in between
		advance    uint64
		next       uint64
	}{
		{name: "the newest", first: 4, end: 11, next: 4},
		{name: "none", first: 11, end: 11, next: 11},
		{name: "not the newest", first: 4, end: 11, behind: 1, next: 12},
		{name: "not all of the newest", first: 4, end: 10, next: 11},
		{name: "moved past", first: 4, end: 11, advance: 6, next: 7},
		{name: "all moved past", first: 4, end: 11, advance: 10, next: 11},
		{name: "and one that was waited for", first: 1, end: 11, next: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestSegment(t, Config{Store: newFaultStore(), Step: 100, StepPolicy: StepFixed, Prefetch: 1})
			sourcetest.Fill(t, s, 1, 1)
			sourcetest.Fill(t, s, 9, 1)
			if tt.behind > 0 {
				sourcetest.Fill(t, s, tt.behind, 1)
			}
			if tt.advance > 0 {
				sourcetest.Advance(t, s, tt.advance)
			}
			s.Return(tt.first, tt.end)
			assert.Equal(t, "the next id", sourcetest.Fill(t, s, 1, 1)[0], tt.next)
		})
	}
}

// Ids that someone kept are given to nobody else. Ids that the source was moved past are given to
// nobody.
func TestSegmentReturnRaces(t *testing.T) {
	s := newTestSegment(t, Config{Store: newFaultStore(), Step: 1000, StepPolicy: StepFixed})
	var mu sync.Mutex
	kept := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				ids := make([]uint64, 1+rand.IntN(20))
				if err := s.Fill(t.Context(), ids, 1); err != nil {
					t.Error(err)
					return
				}
				keep := rand.IntN(len(ids) + 1)
				if keep < len(ids) && rand.IntN(4) == 0 { // an explicit id among those that go back
					assert.NoError(t, s.Advance(t.Context(), ids[keep]))
					keep++
				}
				mu.Lock()
				for _, id := range ids[:keep] {
					assert.True(t, !kept[id], "id %d twice", id)
					kept[id] = true
				}
				mu.Unlock()
				s.Return(ids[0]+uint64(keep), ids[len(ids)-1]+1)
			}
		})
	}
	wg.Wait()
}
