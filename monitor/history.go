package monitor

import (
	"context"
	"sync"
	"time"
)

const (
	samplePeriod = 10 * time.Second
	maxSamples   = int(time.Hour / samplePeriod)
)

// Sample is what the plots of the page show of a moment. Counters are as in the state.
type Sample struct {
	Time      time.Time                 `json:"time"`
	Sources   map[string]SourceSample   `json:"sources"`
	Listeners map[string]ListenerSample `json:"listeners"`
}

// SourceSample is a source at a moment.
type SourceSample struct {
	Issued    uint64 `json:"ids_issued"`
	Left      uint64 `json:"ids_left"`
	RangeSize uint64 `json:"range_size"`
}

// ListenerSample is a listener at a moment.
type ListenerSample struct {
	Statements uint64 `json:"statements"`
	Filled     uint64 `json:"filled"`
	Refused    uint64 `json:"refused"`
}

// history keeps a sample of each ten seconds of the last hour.
type history struct {
	program Program

	mu      sync.Mutex
	samples []Sample // the oldest first
}

func newHistory(p Program) *history { return &history{program: p} }

// run takes samples until ctx is done.
func (h *history) run(ctx context.Context) error {
	tick := time.NewTicker(samplePeriod)
	defer tick.Stop()
	for {
		h.take()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (h *history) take() {
	state := h.program.State()
	sample := Sample{Time: state.Time, Sources: map[string]SourceSample{}, Listeners: map[string]ListenerSample{}}
	for i := range state.Sources {
		s := &state.Sources[i]
		one := SourceSample{Issued: s.Issued}
		if s.Segment != nil {
			one.Left, one.RangeSize = s.Segment.Left, s.Segment.RangeSize
		}
		sample.Sources[s.Name] = one
	}
	for i := range state.Listeners {
		var one ListenerSample
		for _, n := range state.Listeners[i].Statements {
			one.Statements += n.Count
			switch n.Kind {
			case KindFilled:
				one.Filled += n.Count
			case KindRefused:
				one.Refused += n.Count
			}
		}
		sample.Listeners[state.Listeners[i].Name] = one
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) == maxSamples {
		h.samples = append(h.samples[:0:0], h.samples[1:]...)
	}
	h.samples = append(h.samples, sample)
}

func (h *history) all() []Sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Sample{}, h.samples...)
}
