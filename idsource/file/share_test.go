package file

import (
	"maps"
	"path/filepath"
	"sync"
	"testing"

	"idproxy/idsource"
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
	if err := stores[0].Advance(t.Context(), "k", 1); err != nil {
		t.Fatal(err)
	}
	_, err := stores[1].Position(t.Context(), "k")
	wantError(t, "beside one that does not share", err, "held by process")
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
	if n := all.twice(); n > 0 || len(all.times) != 250 {
		t.Errorf("%d of %d numbers were reserved twice", n, len(all.times))
	}
	if back, err := stores[0].GiveBack(t.Context(), "k", 246, 251); err != nil || !back {
		t.Errorf("given back: %v, %v", back, err)
	}
	if p, err := stores[1].Position(t.Context(), "k"); err != nil || p != (idsource.Position{Next: 246, Used: true}) {
		t.Errorf("it stands at %+v, %v", p, err)
	}
	stores[1].Share(false)
	if _, err := stores[1].Position(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	_, err = stores[0].Position(t.Context(), "k")
	wantError(t, "beside one that shares no more", err, "held by process")
}

// TestShareReadsAnew is the negative control: a store that believes what it read before its turn ended
// reserves numbers that the other one has.
func TestShareReadsAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	a, b := newStore(t, dir), newStore(t, dir)
	a.Share(true)
	b.Share(true)
	if err := a.Advance(t.Context(), "k", 1); err != nil {
		t.Fatal(err)
	}
	all := reserved{times: map[uint64]int{}}
	stale := positions{"k": {Next: 1}}
	for _, s := range []*Store{a, b} {
		s.keys = maps.Clone(stale)
		lo, hi, err := s.Reserve(t.Context(), ask("k", 5))
		if err != nil {
			t.Fatal(err)
		}
		all.add(lo, hi)
	}
	if all.twice() != 5 {
		t.Errorf("%v: the test finds nothing", all.times)
	}
}
