package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// slowStore answers after a while.
type slowStore struct {
	*faultStore
	takes time.Duration
}

func (s *slowStore) Reserve(ctx context.Context, a idsource.Ask) (uint64, uint64, error) {
	time.Sleep(s.takes)
	return s.faultStore.Reserve(ctx, a)
}

// TestSegmentPrefetchByRate uses ids so fast that a range lasts half as long as
// a fetch: with a mark alone every range would be waited for.
func TestSegmentPrefetchByRate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		others  bool // other processes reserve in between, so that ranges do not join
		forgets bool // the rate
		waits   bool
	}{{"alone", false, false, false}, {"among others", true, false, false}, {"mark alone, the control", false, true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &slowStore{newFaultStore(), 20 * time.Millisecond}
				s := newTestSegment(t, Config{Store: st, Step: 10_000, MaxStep: 10_000, StepPolicy: StepFixed, Prefetch: 1})
				var waited time.Duration
				for i := range 2000 {
					time.Sleep(time.Millisecond)
					if tt.others && i%10 == 0 {
						st.set(func(st *faultStore) {
							p := st.keys["order_id"]
							p.Next++
							st.keys["order_id"] = p
						})
					}
					if tt.forgets {
						s.mu.Lock()
						s.pace.rate, s.pace.at = 0, time.Time{}
						s.mu.Unlock()
					}
					began := time.Now()
					sourcetest.Fill(t, s, 400, 1)
					if i > 500 { // the pace is known
						waited += time.Since(began)
					}
				}
				assert.True(t, (waited > 0) == tt.waits, "waited %v in all, want waits: %v", waited, tt.waits)
			})
		})
	}
}

// TestSegmentStepRate follows the demand up and, with some patience, down.
func TestSegmentStepRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.keys["order_id"] = idsource.Position{Next: 1, Used: true}
		s := newTestSegment(t, Config{Store: st, Step: 1000, MaxStep: 100_000, StepPolicy: StepRate, Prefetch: 0.5})
		use := func(n int, every, lasts time.Duration) []uint64 {
			before := len(st.calls())
			for range int(lasts / every) {
				sourcetest.Fill(t, s, n, 1)
				time.Sleep(every)
			}
			var steps []uint64
			for _, a := range st.calls()[before:] {
				steps = append(steps, a.Count)
			}
			return steps
		}
		up := use(1000, time.Second, 10*time.Minute)
		for i := 1; i < len(up); i++ {
			assert.MustTrue(t, up[i] >= up[i-1] && up[i] <= 2*up[i-1], "steps %v under a steady load: each is to be at most twice the last", up)
		}
		last := up[len(up)-1]
		assert.True(t, last >= 55_000 && last <= 65_000, "step %d at 1000 ids a second, want what lasts a minute", last)
		assert.Equal(t, "step at 5000 ids a second, max_step", slices.Max(use(5000, time.Second, 5*time.Minute)), 100_000)
		down := use(60, time.Minute, 200*time.Hour)
		last = down[len(down)-1]
		assert.True(t, last == 1000, "step %d at one id a second, want the least, 1000: %v", last, down)
		for i := paceSlow; i < len(down); i++ {
			assert.True(t, down[i] >= down[i-1]/2, "step %d after %d", down[i], down[i-1])
		}
	})
}

// TestSegmentPaceIgnoresBursts: a single statement is no rate.
func TestSegmentPaceIgnoresBursts(t *testing.T) {
	var p pace
	start := time.Now()
	p.measure(start, 0)
	p.given = 1_000_000
	p.measure(start.Add(time.Millisecond), 0)
	assert.True(t, p.rate == 0, "rate %v after a millisecond", p.rate)
	p.measure(start.Add(10*time.Second), 0)
	assert.True(t, p.rate == 100_000, "rate %v, want 100000 a second", p.rate)
	p.measure(start.Add(13*time.Second), 0)
	assert.True(t, p.rate == 90_000, "rate %v three idle seconds later, want 90000", p.rate)
}

// TestSegmentLongOutage takes the store away under 20,000 ids a second: for 30 s
// nothing fails, since by then ranges last long enough; in a longer outage there is
// nothing but StoreDown, and ids come again by themselves.
func TestSegmentLongOutage(t *testing.T) {
	for _, policy := range []StepPolicy{StepLeaf, StepRate} {
		synctest.Test(t, func(t *testing.T) {
			st := newFaultStore()
			s := newTestSegment(t, Config{Store: st, StepPolicy: policy})
			ids := make([]uint64, 200)
			run := func(lasts time.Duration) (failed int) {
				for range int(lasts / (10 * time.Millisecond)) {
					time.Sleep(10 * time.Millisecond)
					if err := s.Fill(t.Context(), ids, 1); err != nil {
						sourcetest.WantKind(t, "Fill", err, idsource.StoreDown)
						failed++
					}
				}
				return failed
			}
			run(2 * time.Minute)
			st.set(func(st *faultStore) { st.down = sourcetest.ErrDown })
			assert.Equal(t, fmt.Sprintf("policy %d: statements that failed in an outage of 30 s", policy), run(30*time.Second), 0)
			st.set(func(st *faultStore) { st.down = nil })
			run(2 * time.Minute)
			st.set(func(st *faultStore) { st.down = sourcetest.ErrDown })
			assert.Greater(t, fmt.Sprintf("policy %d: statements that failed in four minutes, as the store was down", policy), run(4*time.Minute), 0)
			st.set(func(st *faultStore) { st.down = nil })
			time.Sleep(idsource.MaxPause)
			assert.Equal(t, fmt.Sprintf("policy %d: statements that failed with the store back", policy), run(time.Minute), 0)
		})
	}
}

// Ids that came back make fewer gone than before.
func TestPaceOfReturns(t *testing.T) {
	start := time.Now()
	p := pace{given: 1000}
	p.measure(start, 500)
	p.measure(start.Add(time.Second), 600)
	assert.Equal(t, "ids a second", p.rate, 0)
}

// Behind a store that is dead calls wait until one deadline, and one by one
// afterwards, whether it refuses or hangs.
func TestPatienceWithADeadStore(t *testing.T) {
	calls := map[string]func(ctx context.Context, s *Segment) error{
		"Fill":    func(ctx context.Context, s *Segment) error { return s.Fill(ctx, make([]uint64, 1), 1) },
		"Admit":   func(ctx context.Context, s *Segment) error { return s.Admit(ctx, "t.id", 5) },
		"Advance": func(ctx context.Context, s *Segment) error { return s.Advance(ctx, 50) },
	}
	faults := map[string]func(st *faultStore){
		"refuses": func(st *faultStore) { st.down = sourcetest.ErrDown },
		"hangs":   func(st *faultStore) { st.block = make(chan struct{}) },
	}
	for name, call := range calls {
		for fault, set := range faults {
			if name == "Admit" && fault == "refuses" {
				continue // it is told at once
			}
			t.Run(name+", "+fault, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newFaultStore()
					s := newTestSegment(t, Config{Store: st, Wait: sourcetest.Waits(3 * time.Second)})
					st.set(set)
					do := func() error { return call(t.Context(), s) }
					late := func() error {
						time.Sleep(2 * time.Second)
						return do()
					}
					var first, second map[time.Duration]int
					var err, lateErr error
					var wg sync.WaitGroup
					wg.Go(func() { first, err = sourcetest.Took(10, do, idsource.StoreDown) })
					wg.Go(func() { second, lateErr = sourcetest.Took(10, late, idsource.StoreDown) })
					wg.Wait()
					if err = errors.Join(err, lateErr); err != nil || first[3*time.Second] != 10 || second[3*time.Second] != 10 {
						t.Errorf("the first calls took %v, those 2s later %v with these, %v; want one deadline", first, second, err)
					}
					if times, err := sourcetest.Took(10, do, idsource.StoreDown); err != nil || times[0] != 9 || times[3*time.Second] != 1 {
						t.Errorf("calls behind the deadline took %v, %v; want one that waits", times, err)
					}
					if st.block != nil {
						close(st.block)
					}
					st.set(func(st *faultStore) { st.down, st.block = nil, nil })
					_ = do() // it has the store tried at once
					time.Sleep(200 * time.Millisecond)
					synctest.Wait()
					began := time.Now()
					assert.NoError(t, do(), "200ms after the store is back")
					assert.Equal(t, "then it took", time.Since(began), 0)
				})
			})
		}
	}
}

// Tables that share a source share its patience.
func TestPatienceOfTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.down = sourcetest.ErrDown
		p := assert.Of(NewPerTable(Config{Name: "each", Store: st, Key: "{table}"})).Must(t)
		defer func() { _ = p.Close(t.Context()) }() // the store is down
		var mu sync.Mutex
		n := 0
		fill := func() error {
			mu.Lock()
			n++
			s, err := p.Series("s", fmt.Sprint("t", n))
			mu.Unlock()
			if err != nil {
				return err
			}
			return s.Fill(t.Context(), make([]uint64, 1), 1)
		}
		times, err := sourcetest.Took(10, fill, idsource.StoreDown)
		assert.True(t, err == nil && times[idsource.DefaultWait] == 10, "first calls took %v, %v", times, err)
		times, err = sourcetest.Took(10, fill, idsource.StoreDown)
		assert.True(t, err == nil && times[0] == 9, "calls behind the deadline took %v, %v; want one that waits", times, err)
	})
}

// silentStore is a store that answers nothing.
type silentStore struct{ idsource.SegmentStore }

// Position implements idsource.SegmentStore.
func (silentStore) Position(ctx context.Context, _ string) (idsource.Position, error) {
	<-ctx.Done()
	return idsource.Position{}, ctx.Err()
}

// TestClientGone: a client that leaves takes no time from those behind it.
func TestClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		s := assert.Of(New(Config{Name: "ids", Store: silentStore{}, Wait: func() time.Duration { return wait }})).Must(t)
		gone, cancel := context.WithTimeout(t.Context(), wait/4)
		defer cancel()
		assert.Fails(t, "a column was admitted by nobody", s.Admit(gone, "t.id", 5), "")
		time.Sleep(10 * wait)
		began := time.Now()
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				err := s.Admit(t.Context(), "t.id", 5)
				assert.True(t, errors.Is(err, idsource.StoreDown) && time.Since(began) == wait, "a later call: %v after %v", err, time.Since(began))
			})
		}
		calls.Wait()
		assert.NoError(t, s.Close(t.Context()))
	})
}
