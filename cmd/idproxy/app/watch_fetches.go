package app

import (
	"slices"
	"sync"
	"time"

	"idproxy/monitor"
)

// lastFetches is how many ranges of a source the quantiles of their times are of.
const lastFetches = 500

// fetchTimes is how long the last ranges of each source took.
type fetchTimes struct {
	mu       sync.Mutex
	bySource map[string]*recent
}

// recent are times, of which a new one takes the place of the oldest.
type recent struct {
	times []time.Duration
	next  int
}

func (f *fetchTimes) add(source string, took time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bySource == nil {
		f.bySource = map[string]*recent{}
	}
	r := f.bySource[source]
	if r == nil {
		r = &recent{}
		f.bySource[source] = r
	}
	if len(r.times) < lastFetches {
		r.times = append(r.times, took)
		return
	}
	r.times[r.next] = took
	r.next = (r.next + 1) % lastFetches
}

// fill sets the quantiles of a source that asks for ranges.
func (f *fetchTimes) fill(out *monitor.Source) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.bySource[out.Name]
	if out.Segment == nil || r == nil {
		return
	}
	sorted := slices.Sorted(slices.Values(r.times))
	at := func(percent int) *monitor.Milliseconds {
		m := monitor.Milliseconds(sorted[(len(sorted)*percent+99)/100-1])
		return &m
	}
	out.Segment.FetchHalf, out.Segment.FetchMost = at(50), at(99)
}
