package snowflake

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestOrders issues ids of every order, in runs of all lengths and strides, and
// takes them apart: none comes twice, and in a run they ascend.
func TestOrders(t *testing.T) {
	for _, layout := range []string{
		"41/6/6", "41/6seq/6worker", "6worker/41/6seq", "6worker/6seq/41", "6seq/41/6worker", "6seq/6worker/41", "39x10ms/8seq/16worker", "4+4worker/32s/8seq",
	} {
		t.Run(layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := Config{Fences: newFaultFences(), Layout: layout, Worker: 5, MaxAhead: time.Minute, Lead: 2 * time.Minute}
				s := newTestSnowflake(t, c, new(testClock).clock())
				seen := map[uint64]bool{}
				words := map[Parts]bool{}
				for n := 1; n < 400; n += 7 {
					for _, stride := range []uint64{1, 2, 5} {
						ids := sourcetest.Fill(t, s, n, stride)
						assert.MustTrue(t, slices.IsSorted(ids), "%d ids, %d apart, do not ascend: %d", n, stride, ids)
						for i, id := range ids {
							p := s.layout.Decode(id)
							assert.MustTrue(t, !seen[id] && !words[p] && p.Worker == 5 && id <= 1<<63-1, "id %d, %+v: was there before: %t", id, p, seen[id])
							seen[id], words[p] = true, true
							if s.layout.Consecutive() && i > 0 && s.layout.Decode(ids[i-1]).Time == p.Time && id != ids[i-1]+stride {
								t.Fatalf("id %d behind %d, %d apart", id, ids[i-1], stride)
							}
						}
						time.Sleep(20 * s.layout.Unit)
					}
				}
				assert.GreaterOrEqual(t, "ids", len(slices.Collect(maps.Keys(seen))), 10_000)
			})
		})
	}
}

// TestOrderRefuses: what relies on ids that ascend, or are consecutive, is
// refused where they are not.
func TestOrderRefuses(t *testing.T) {
	for _, tt := range []struct {
		layout          string
		advance, blocks bool // possible
	}{
		{"41/10/12", true, true},
		{"41/12seq/10worker", true, false},
		{"10worker/41/12seq", false, true},
		{"12seq/10worker/41", false, false},
	} {
		t.Run(tt.layout, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: tt.layout, Worker: 5}, new(testClock).clock())
				id := sourcetest.Fill(t, s, 1, 1)[0]
				past := id + 1000
				if err := s.Advance(t.Context(), past); tt.advance {
					next := sourcetest.Fill(t, s, 1, 1)[0]
					assert.True(t, err == nil && next > past, "Advance: %v; %d behind %d", err, next, past)
				} else {
					sourcetest.WantKind(t, "Advance", err, idsource.TooHigh)
				}
				if err := s.Blocks(t.Context(), make([]uint64, 2), 4); tt.blocks {
					assert.NoError(t, err, "Blocks")
				} else {
					sourcetest.WantKind(t, "Blocks", err, idsource.BadConfig)
				}
			})
		})
	}
}
