package file

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

// reserved counts how often each number was given.
type reserved struct {
	mu    sync.Mutex
	times map[uint64]int
}

func (r *reserved) add(lo, hi uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := lo; n < hi; n++ {
		r.times[n]++
	}
}

func (r *reserved) twice() (n int) {
	for _, times := range r.times {
		if times > 1 {
			n++
		}
	}
	return n
}

// TestShare: two stores of one folder that share it reserve no number twice, and give back what
// nobody has reserved past. One that does not share keeps the other out.
func TestShare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	stores := []*Store{newStore(t, dir), newStore(t, dir)}
	assert.Must(t, stores[0].Open(t.Context(), "k", 1, 0))
	_, err := stores[1].Position(t.Context(), "k")
	assert.Fails(t, "beside one that does not share", err, "held by process")
	for _, s := range stores {
		s.Share(true)
	}
	all := reserved{times: map[uint64]int{}}
	var using sync.WaitGroup
	for _, s := range stores {
		using.Go(func() {
			for range 25 {
				lo, hi, err := s.Reserve(t.Context(), ask("k", 5))
				if err != nil {
					t.Error(err)
					return
				}
				all.add(lo, hi)
			}
		})
	}
	using.Wait()
	n := all.twice()
	assert.True(t, n <= 0 && len(all.times) == 250, "%d of %d numbers were reserved twice", n, len(all.times))
	assert.Of(stores[0].GiveBack(t.Context(), "k", 246, 251)).Equal(t, "given back", true)
	assert.Of(stores[1].Position(t.Context(), "k")).Equal(t, "it stands at", idsource.Position{Next: 246, Used: true})
	stores[1].Share(false)
	assert.Of(stores[1].Position(t.Context(), "k")).NoError(t)
	assert.Of(stores[0].Position(t.Context(), "k")).Fails(t, "beside one that shares no more", "held by process")
}

// TestShareReadsAnew is the negative control: a store that believes what it read before its turn ended
// reserves numbers that the other one has.
func TestShareReadsAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a, b := newStore(t, dir), newStore(t, dir)
	a.Share(true)
	b.Share(true)
	assert.Must(t, a.Open(t.Context(), "k", 1, 0))
	all := reserved{times: map[uint64]int{}}
	stale := positions{"k": {Next: 1}}
	for _, s := range []*Store{a, b} {
		s.keys = maps.Clone(stale)
		lo, hi, err := s.Reserve(t.Context(), ask("k", 5))
		assert.Must(t, err)
		all.add(lo, hi)
	}
	assert.True(t, all.twice() == 5, "%v: the test finds nothing", all.times)
}
