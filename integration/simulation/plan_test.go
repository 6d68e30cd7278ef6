package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is what a seed decides before a run begins. A run can be repeated with fewer faults.
type plan struct {
	seed   uint64
	kind   string // of fleet and store
	lasts  time.Duration
	beat   time.Duration // of what is done at regular times
	think  time.Duration // about how long a client waits between two wishes
	faults []fault
}

// fault is one thing that goes wrong.
type fault struct {
	number int // in the plan
	at     time.Duration
	what   string
	host   int
	lasts  time.Duration
	size   int64 // what it means depends on what goes wrong
}

func (f fault) String() string {
	return fmt.Sprintf("%3d: at %14.9f s %-10s host %-2d for %v, size %d", f.number, f.at.Seconds(), f.what, f.host, f.lasts, f.size)
}

// only keeps the faults with some numbers.
func (p plan) only(numbers []int) plan {
	p.faults = slices.DeleteFunc(slices.Clone(p.faults), func(f fault) bool { return !slices.Contains(numbers, f.number) })
	return p
}

// numbers are those of the faults.
func (p plan) numbers() (all []int) {
	for _, f := range p.faults {
		all = append(all, f.number)
	}
	return all
}

// caughtUp is how long after the end of all faults clocks of hosts are where one showed to be that was ahead
// for a while: for longer than a second, which is what is believed.
func (p *plan) caughtUp() (d time.Duration) {
	for _, f := range p.faults {
		if f.what == "clock for" {
			d = max(d, f.at+f.lasts+time.Duration(f.size)-p.lasts)
		}
	}
	return d
}

// kind is a fleet and its store, with what can go wrong.
type kind struct {
	name   string
	weight float64 // its share of the hours
	make   func(w *world, p *plan) fleet
	few    int             // processes, where there are not as many as hosts
	beats  []time.Duration // one is drawn
	long   int             // how many beats a run lasts
	think  float64         // of a client, beats
	count  int             // of faults, at most
	draw   []draw          // faults by their weights
}

// fleet is how many processes there are.
func (k *kind) fleet() int { return cmp.Or(k.few, hosts) }

// draw is how a fault is drawn.
type draw struct {
	what   string
	weight int
	lasts  func(r *rand.Rand, beat time.Duration) time.Duration
	size   func(r *rand.Rand) int64
	apart  time.Duration // no other one of those that are apart comes within this, in beats where that is more
	beats  int
}

// drawPlan draws the plan of a seed.
func drawPlan(k *kind, seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed, kind: k.name, beat: k.beats[r.IntN(len(k.beats))]}
	p.lasts = time.Duration(k.long) * p.beat * 3 / 4
	p.lasts += between(r, 0, p.lasts/2)
	p.think = time.Duration(k.think * float64(p.beat))
	total := 0
	for _, d := range k.draw {
		total += d.weight
	}
	at, disaster, host := between(r, 0, 2*p.beat), time.Duration(0), r.IntN(k.fleet())
	for range 1 + r.IntN(k.count) {
		d := pick(k.draw, r.IntN(total))
		if r.IntN(2) == 0 { // mostly one host has several faults
			host = r.IntN(k.fleet())
		}
		f := fault{at: at, what: d.what, host: host}
		if d.lasts != nil {
			f.lasts = d.lasts(r, p.beat)
		}
		if d.size != nil {
			f.size = d.size(r)
		}
		if gap := max(d.apart, time.Duration(d.beats)*p.beat); gap > 0 {
			f.at = max(f.at, disaster)
			disaster = f.at + f.lasts + gap
		}
		p.faults = append(p.faults, f)
		switch r.IntN(4) { // faults come in groups
		case 0:
			at += about(r, p.lasts/20)
		case 1:
			at += about(r, p.beat)
		default:
			at += about(r, 500*time.Millisecond)
		}
	}
	p.faults = slices.DeleteFunc(p.faults, func(f fault) bool { return f.at > p.lasts })
	slices.SortStableFunc(p.faults, func(a, b fault) int { return int(a.at - b.at) })
	for i := range p.faults {
		p.faults[i].number = i
	}
	return p
}

func pick(all []draw, n int) draw {
	for _, d := range all {
		if n -= d.weight; n < 0 {
			return d
		}
	}
	panic("weights")
}

// span draws from a range of durations.
func span(least, most time.Duration) func(*rand.Rand, time.Duration) time.Duration {
	return func(r *rand.Rand, _ time.Duration) time.Duration { return between(r, least, most) }
}

// beatSpan draws about so many beats.
func beatSpan(most float64) func(*rand.Rand, time.Duration) time.Duration {
	return func(r *rand.Rand, beat time.Duration) time.Duration {
		return between(r, time.Millisecond, time.Duration(most*float64(beat)))
	}
}

// number draws from a range of numbers.
func number(least, most int64) func(*rand.Rand) int64 {
	return func(r *rand.Rand) int64 { return least + r.Int64N(most-least+1) }
}

// processFaults are what can happen to any process and to its connection.
var processFaults = []draw{
	{what: "kill", weight: 8, lasts: beatSpan(1)},
	{what: "kill at", weight: 12, lasts: beatSpan(0.3), size: number(1, 40)},
	{what: "end", weight: 8, lasts: beatSpan(0.5)},
	{what: "stop", weight: 4, lasts: beatSpan(12)},
	{what: "stop at", weight: 12, lasts: beatSpan(12), size: number(1, 40)},
	{what: "hurry", weight: 6, lasts: span(time.Second, 20*time.Second)},
}

// linkFaults are what can happen to a connection.
var linkFaults = []draw{
	{what: "cut off", weight: 4, lasts: beatSpan(8)},
	{what: "lossy", weight: 6, lasts: beatSpan(8)},
	{what: "cut", weight: 8, lasts: beatSpan(8)},
	{what: "late", weight: 6, lasts: beatSpan(8)},
	{what: "double", weight: 5, lasts: beatSpan(8)},
	{what: "all", weight: 5, lasts: beatSpan(8)},
}

var badLinks = map[string]badness{
	"cut off": {refuse: true},
	"lossy":   {lose: 0.5, cut: 0.3, delay: time.Second},
	"cut":     {cut: 0.8},
	"late":    {late: 0.6, delay: 3 * time.Second},
	"double":  {double: 0.7, delay: 2 * time.Second},
	"all":     {lose: 0.2, cut: 0.3, double: 0.3, late: 0.4, delay: 2 * time.Second},
}

// storeFaults are what can happen to a server of a store that loses nothing.
var storeFaults = []draw{
	{what: "crash", weight: 4, lasts: beatSpan(3)},
	{what: "slow", weight: 3, lasts: beatSpan(6), size: number(int64(100*time.Millisecond), int64(6*time.Second))},
}

// clockFaults are what can happen to the wall clock of a host; the monotonic one drifts in every run.
var clockFaults = []draw{
	{what: "clock", weight: 8, size: number(-int64(5*time.Second), int64(5*time.Second))},
	{what: "clock", weight: 3, size: number(-int64(time.Minute), int64(time.Minute))},
	{what: "clock for", weight: 4, lasts: span(time.Millisecond, 3*time.Second), size: number(-int64(time.Hour), int64(time.Hour))},
}

// aimed is a fleet of which some hosts are hit more often than others.
type aimed interface {
	// aim returns whom a fault hits. The caller holds mu.
	aim(host int) int
}

// apply does what a fault says.
func (w *world) apply(f fault) {
	w.event("fault "+f.what, uint64(f.host), uint64(f.lasts), uint64(f.size))
	w.applied++
	if w.fleet.apply(f) {
		return
	}
	h := w.hosts[f.host]
	w.mu.Lock()
	defer w.mu.Unlock()
	if a, ok := w.fleet.(aimed); ok {
		h = w.hosts[a.aim(f.host)]
	}
	if how, ok := badLinks[f.what]; ok {
		h.link = link{until: time.Now().Add(f.lasts), how: how}
		h.hurry(f.lasts)
		return
	}
	switch f.what {
	case "clock":
		h.off += time.Duration(f.size)
		h.hurry(5 * time.Second)
		return
	case "clock for":
		h.off += time.Duration(f.size)
		time.AfterFunc(f.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.healed {
				h.off -= time.Duration(f.size)
			}
		})
		h.hurry(5 * time.Second)
		return
	}
	p := h.runs
	if p == nil {
		return
	}
	again := func() { h.startIn(f.lasts) }
	switch f.what {
	case "kill":
		p.kill()
		again()
	case "end":
		p.end()
		again()
	case "stop":
		p.stop(f.lasts)
	case "kill at":
		p.hurry(5 * time.Second)
		p.fuse, p.blown = int(f.size), func() { p.kill(); again() }
	case "stop at":
		p.hurry(5 * time.Second)
		p.fuse, p.blown = int(f.size), func() { p.stop(f.lasts) }
	case "hurry":
		p.hurry(f.lasts)
	default:
		panic("no fault: " + f.what)
	}
}

// hurry has the client of the host's process ask for much. The caller holds mu.
func (h *host) hurry(d time.Duration) {
	if h.runs != nil {
		h.runs.hurry(min(d, 10*time.Second))
	}
}
