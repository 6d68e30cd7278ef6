package segment

import (
	"math/rand/v2"
	"sync"
	"testing"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

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
