package app

import (
	"testing"
	"time"

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
	if half, most := of("a"); half != 0 || most != 0 {
		t.Errorf("no range came: %v, %v", half, most)
	}
	f.add("a", 7)
	if half, most := of("a"); half != 7 || most != 7 {
		t.Errorf("of one: %v, %v", half, most)
	}
	for range lastFetches {
		f.add("a", 1000)
	}
	for i := range 100 {
		f.add("a", time.Duration(i+1))
		f.add("b", time.Duration(100-i))
	}
	if half, most := of("a"); half != 1000 || most != 1000 {
		t.Errorf("of the last %d: %v, %v", lastFetches, half, most)
	}
	if half, most := of("b"); half != 50 || most != 99 {
		t.Errorf("of 100: %v, %v", half, most)
	}
}
