package segment

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
)

// TestOrdered: a call that begins after another has ended gets greater ids, however many either
// asks for and however the ranges lie. Without Ordered that is not so.
func TestOrdered(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		store := newFaultStore()
		s := newTestSegment(t, Config{Store: store, Step: 40, MaxStep: 80, StepPolicy: StepFixed, Ordered: ordered})
		var acknowledged atomic.Uint64 // the greatest id of a call that has ended
		var wrong atomic.Int64
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(c), 7))
				for range 3000 {
					ids := make([]uint64, 1+rnd.IntN(1<<rnd.IntN(7)))
					before := acknowledged.Load()
					if err := s.Fill(context.Background(), ids, 1); err != nil {
						t.Error(err)
						return
					}
					if ids[0] <= before {
						wrong.Add(1)
					}
					for last := ids[len(ids)-1]; ; {
						old := acknowledged.Load()
						if old >= last || acknowledged.CompareAndSwap(old, last) {
							break
						}
					}
					if rnd.IntN(100) == 0 { // another process takes a range: the next one does not follow the last
						_ = store.Advance(context.Background(), "order_id", acknowledged.Load()+200)
					}
				}
			})
		}
		wg.Wait()
		n := wrong.Load()
		assert.True(t, (n == 0) == ordered, "ordered %v: %d calls got ids below those of a call that had ended", ordered, n)
	}
}
