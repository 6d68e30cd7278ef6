package simulation

import (
	"slices"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestFaultyStore gives fleets stores that do not keep the contract of idsource.SegmentStore. Ids
// come twice then, a few faults are enough for it, and the same run shows it again.
func TestFaultyStore(t *testing.T) {
	for name, spoil := range map[string]func(s *positions){
		"answers before its disk has a range": func(s *positions) { s.unsafe = 2 * time.Second },
		"takes back what is not the newest":   func(s *positions) { s.loose = true },
	} {
		t.Run(name, func(t *testing.T) {
			k := *kindOf(t, "segment-crash")
			k.long, k.think = 400, 1
			k.make = func(w *world, p *plan) fleet {
				f := newSegments(w, p)
				spoil(f.store)
				return f
			}
			folder := inMemory(t)
			for seed := range uint64(100) {
				p := drawPlan(&k, seed)
				if run(t, &k, p, folder(), nil).found == "" {
					continue
				}
				enough := shrink(p.numbers(), 100, func(some []int) bool { return run(t, &k, p.only(some), folder(), nil).found != "" })
				o := run(t, &k, p.only(enough), folder(), nil)
				assert.True(t, o.found != "" && len(enough) <= 4, "seed %d: %d faults, %q", seed, len(enough), o.found)
				again := run(t, &k, p.only(enough), folder(), nil)
				assert.True(t, again.found == o.found, "seed %d: %q, and again %q", seed, o.found, again.found)
				t.Logf("seed %d: %s: %v", seed, o.found, p.only(enough).faults)
				return
			}
			t.Error("nothing was found")
		})
	}
}

// TestShrink leaves just the two faults that it takes.
func TestShrink(t *testing.T) {
	var all []int
	for n := range 60 {
		all = append(all, n)
	}
	asked := 0
	got := shrink(all, 1000, func(some []int) bool {
		asked++
		return slices.Contains(some, 7) && slices.Contains(some, 41)
	})
	assert.True(t, slices.Equal(got, []int{7, 41}) && asked <= 60, "%v are left after %d tries, want 7 and 41", got, asked)
	assert.Equal(t, "are left of 60 that it takes", len(shrink(all, 3, func([]int) bool { return false })), 60)
}
