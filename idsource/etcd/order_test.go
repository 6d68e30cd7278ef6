package etcd

import (
	"fmt"
	"sync"
	"testing"

	"idproxy/integration/assert"
)

// TestAnswersOutOfOrder: answers to questions that several goroutines have asked at once are read
// in any order; an older one is no sign of a cluster that forgot.
func TestAnswersOutOfOrder(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			key := fmt.Sprint("k", k)
			if err := st.Advance(t.Context(), key, 1); err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				if _, _, err := st.Reserve(t.Context(), ask(key, 1)); err != nil {
					t.Errorf("Reserve: %v", err)
					return
				}
				if _, err := st.Position(t.Context(), key); err != nil {
					t.Errorf("Position: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	// A question that was asked when a later revision was known: its answer is from a cluster that
	// forgot.
	assert.Fails(t, "a revision of before was not noticed", st.answered(st.known(), 1), "")
}
