package idsource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// took calls n times at once and returns how many calls took how long.
func took(n int, call func() error, kind Kind) (map[time.Duration]int, error) {
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
			if _, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, kind) {
				wrong = fmt.Errorf("%v, want an *Error of kind %q", err, kind)
			}
		})
	}
	wg.Wait()
	return times, wrong
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
		"refuses": func(st *faultStore) { st.down = errDown },
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
					s := newTestSegment(t, SegmentConfig{Store: st, Wait: waits(3 * time.Second)})
					st.set(set)
					do := func() error { return call(t.Context(), s) }
					late := func() error {
						time.Sleep(2 * time.Second)
						return do()
					}
					var first, second map[time.Duration]int
					var err, lateErr error
					var wg sync.WaitGroup
					wg.Go(func() { first, err = took(10, do, StoreDown) })
					wg.Go(func() { second, lateErr = took(10, late, StoreDown) })
					wg.Wait()
					if err = errors.Join(err, lateErr); err != nil || first[3*time.Second] != 10 || second[3*time.Second] != 10 {
						t.Errorf("the first calls took %v, those 2s later %v with these, %v; want one deadline", first, second, err)
					}
					if times, err := took(10, do, StoreDown); err != nil || times[0] != 9 || times[3*time.Second] != 1 {
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
					if err := do(); err != nil || time.Since(began) > 0 {
						t.Errorf("200ms after the store is back: %v, after %v", err, time.Since(began))
					}
				})
			})
		}
	}
}

// Tables that share a source share its patience.
func TestPatienceOfTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		st.down = errDown
		p, err := NewPerTable(SegmentConfig{Name: "each", Store: st, Key: "{table}"})
		if err != nil {
			t.Fatal(err)
		}
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
		if times, err := took(10, fill, StoreDown); err != nil || times[DefaultWait] != 10 {
			t.Errorf("first calls took %v, %v", times, err)
		}
		if times, err := took(10, fill, StoreDown); err != nil || times[0] != 9 {
			t.Errorf("calls behind the deadline took %v, %v; want one that waits", times, err)
		}
	})
}

// Nobody waits for a worker number that is known to come too late.
func TestPatienceWithAPool(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration // 0: not known
		want  map[time.Duration]int
	}{
		{16 * time.Second, map[time.Duration]int{0: 10}},
		{time.Second, map[time.Duration]int{2 * time.Second: 10}}, // it was wrong, and the wait goes to its end
		{0, map[time.Duration]int{0: 9, 2 * time.Second: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			none := errors.New("no worker number")
			if tt.after > 0 {
				none = &LaterError{For: tt.after, Err: none}
			}
			s, _ := pooled(t, &fakePool{none: none}, BackBorrow)
			synctest.Wait()
			fill := func() error { return s.Fill(t.Context(), make([]uint64, 1), 1) }
			if tt.after == 0 {
				if times, err := took(10, fill, NotReady); err != nil || times[DefaultWait] != 10 {
					t.Errorf("first calls took %v, %v", times, err)
				}
			}
			if times, err := took(10, fill, NotReady); err != nil || fmt.Sprint(times) != fmt.Sprint(tt.want) {
				t.Errorf("a number in %v: calls took %v, %v; want %v", tt.after, times, err, tt.want)
			}
		})
	}
}
