package idsources

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestRun does all of it once, too briefly for figures to mean anything.
func TestRun(t *testing.T) {
	var out strings.Builder
	plan := Plan{Rounds: 1, Each: time.Millisecond, AtCap: 50 * time.Millisecond, Switch: 100 * time.Millisecond}
	assert.Must(t, Run(t.Context(), &out, plan))
	tables := strings.Split(out.String(), "###")[1:]
	assert.MustTrue(t, len(tables) == 4, "%d tables, want 4:\n%s", len(tables), &out)
	for i, want := range []int{10, 8, 5, 19} { // lines of figures
		if n := strings.Count(tables[i], "\n| ") - 1; n != want {
			t.Errorf("table %d has %d lines, want %d:\n%s", i, n, want, tables[i])
		}
	}
	// Both sources take an id without an allocation; what is left is of the measurement itself.
	for line := range strings.Lines(tables[0]) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "|") || !strings.Contains(line, "idproxy") {
			continue
		}
		n, err := strconv.ParseFloat(cells[len(cells)-1], 64)
		assert.True(t, err == nil && !(n > 0.1), "%v allocations, %v: %s", n, err, line)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	var all []time.Duration
	for range 100_000 {
		d := time.Duration(rand.ExpFloat64() * 1e5)
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for _, share := range []float64{0.0001, 0.5, 0.99, 0.9999, 1} {
		want := all[max(0, int(share*float64(len(all)))-1)]
		got := h.quantile(share)
		assert.True(t, got >= want && got <= want+want/fine+1, "quantile(%v) = %v, want %v or a sixteenth more", share, got, want)
	}
	for ns := uint64(0); ns < 1<<40; ns = ns*5/4 + 1 {
		if b := bucketOf(ns); upper(b) < time.Duration(ns) || b > 0 && upper(b-1) >= time.Duration(ns) {
			t.Errorf("%d is in bucket %d, from %d to %d", ns, b, upper(b-1)+1, upper(b))
		}
	}
	var none histogram
	assert.True(t, none.quantile(1) == 0, "nothing has a quantile")
}
