package app

import (
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/monitor"
)

// TestFetchTimes: quantiles are of the last ranges of each source.
func TestFetchTimes(t *testing.T) {
	var f fetchTimes
	of := func(name string) (half, most time.Duration) {
		t.Helper()
		out := monitor.Source{Name: name, Segment: &monitor.Segment{}}
		f.fill(&out)
		if out.Segment.FetchHalf == nil {
			return 0, 0
		}
		return time.Duration(*out.Segment.FetchHalf), time.Duration(*out.Segment.FetchMost)
	}
	half, most := of("a")
	assert.True(t, half == 0 && most == 0, "no range came: %v, %v", half, most)
	f.add("a", 7)
	half, most = of("a")
	assert.True(t, half == 7 && most == 7, "of one: %v, %v", half, most)
	for range lastFetches {
		f.add("a", 1000)
	}
	for i := range 100 {
		f.add("a", time.Duration(i+1))
		f.add("b", time.Duration(100-i))
	}
	half, most = of("a")
	assert.True(t, half == 1000 && most == 1000, "of the last %d: %v, %v", lastFetches, half, most)
	half, most = of("b")
	assert.True(t, half == 50 && most == 99, "of 100: %v, %v", half, most)
}
