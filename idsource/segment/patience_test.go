package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

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
