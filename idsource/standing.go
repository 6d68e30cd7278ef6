package idsource

import (
	"sync/atomic"
	"time"
)

// Standing is where a source stands at a moment, for those who watch it.
type Standing struct {
	Issued uint64 // ids since the source was made
	// Problem says why there are no ids now; nil: there are.
	Problem error
	// Failing says why the store does not answer; nil: it does, or it was not asked. What is in memory
	// goes on being used.
	Failing error
	Of      Stand
}

// Stand is how far a source of a kind can go: a [SegmentStand], a [SnowflakeStand], or nil for ids
// that rest on nothing.
type Stand interface{ stand() }

// SegmentStand is where ranges stand. Of a source with a series for each table it is that of the
// series that runs dry first.
type SegmentStand struct {
	Series    int     // that have issued ids
	Left      uint64  // ids in memory
	PerSecond float64 // ids that go, over some seconds
	RangeSize uint64  // of the newest range
	Next      uint64  // above all ids in memory
	Last      uint64  // the greatest id allowed
	// Ends is how many seconds the ids last up to Last, as fast as all processes take them by where the
	// store stood at each fetch; of several series the one that ends first. +Inf: none are taken.
	Ends    float64
	Fetches uint64 // ranges that came, of all series
	Failed  uint64 // fetches that failed, of all series
}

// OrderStand is who gives the ids of a series in one order over all processes.
type OrderStand struct {
	Leads   bool          // this process does
	Leader  string        // where the process that does is asked; empty: none does, as far as is known
	Term    int64         // grows with each change of who does
	Passed  uint64        // ids that another process gave to this one
	Segment *SegmentStand // ranges of this process; nil: it does not lead, or gave no id yet
}

func (OrderStand) stand() {}

func (SegmentStand) stand() {}

// SnowflakeStand is where composed ids stand.
type SnowflakeStand struct {
	Held   bool          // there is a worker number
	Worker uint64        // the number
	Fence  time.Duration // until the right to issue ids ends, unless it is renewed; below zero: it has ended
	Ahead  time.Duration // of the clock, by the last id; 0: it is not
	Swaps  uint64        // numbers that were taken after the first; a lease that began anew counts
	Ends   time.Time     // when the layout runs out of timestamps
}

func (SnowflakeStand) stand() {}

// Issued counts the ids that a series gave. Sources embed it.
type Issued struct{ n atomic.Uint64 }

// Gave counts n more.
func (i *Issued) Gave(n int) { i.n.Add(uint64(n)) }

// Given returns how many there were.
func (i *Issued) Given() uint64 { return i.n.Load() }
