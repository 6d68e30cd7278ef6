package simulation

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hosts is how many processes a fleet has, one on each host.
const hosts = 16

// epoch is where the times of ids start. The virtual time of a run starts a year later.
var epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run: what its plan decides, and what came of it. Everything that happens happens at
// a moment of virtual time of its own, down to the nanosecond, so that the order of events is that
// of the plan and not that of Go's scheduler.
type world struct {
	plan  plan
	fleet fleet
	hosts []*host
	lived []*process // all that there were
	began time.Time

	mu       sync.Mutex
	issued   map[uint64]issue
	found    string        // the first violation
	over     chan struct{} // closed by a violation
	closing  bool          // no process starts any more
	hash     uint64        // of all events, in their order
	log      io.Writer
	ids      uint64
	messages uint64
	applied  int  // faults
	healed   bool // what faults were to undo by themselves is undone
	stops    int  // ends that the documents speak of, mended as they say
}

// issue says who was given an id, and when.
type issue struct {
	host, life int32
	at         time.Duration
}

// fleet is what the processes of a world are.
type fleet interface {
	// start makes the source of a process. It may stop in the middle, where the process dies.
	start(p *process) program
	// apply does to the store what a fault says, and reports whether it knows that fault.
	apply(f fault) bool
	// heal ends what faults began.
	heal()
	// bound is how long after the end of all faults every process gives ids again.
	bound() time.Duration
}

// program is what runs on a host.
type program interface {
	// use asks for ids once, as a client does, and reports whether there were any.
	use(r *rand.Rand) bool
	// close ends it as SIGTERM does, or as what is left of a dead process.
	close()
}

// chance returns the random numbers of one part of a world. What happens to others does not change them.
func (w *world) chance(part uint64) *rand.Rand { return rand.New(rand.NewPCG(w.plan.seed, part)) }

// now is the time since the run began.
func (w *world) now() time.Duration { return time.Since(w.began) }

// event adds to the hash of a run, and to its log.
func (w *world) event(what string, numbers ...uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(what, numbers...)
}

// note is event for those who hold mu.
func (w *world) note(what string, numbers ...uint64) {
	at := w.now()
	w.mix(uint64(at))
	w.mix(uint64(len(what))<<8 | uint64(what[0]))
	for _, n := range numbers {
		w.mix(n)
	}
	if w.log != nil {
		_, _ = fmt.Fprintf(w.log, "%14.9f %s %v\n", at.Seconds(), what, slices.Clone(numbers)) // the reader looks at it
	}
}

// mix is FNV-1a over words.
func (w *world) mix(n uint64) { w.hash = (w.hash ^ n) * 0x100000001b3; w.hash ^= w.hash >> 29 }

// violation ends the run with what must never be. The first one counts.
func (w *world) violation(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violated(format, args...)
}

// violated is violation for those who hold mu.
func (w *world) violated(format string, args ...any) {
	if w.found != "" {
		return
	}
	w.found = fmt.Sprintf("%v: ", w.now()) + fmt.Sprintf(format, args...)
	close(w.over)
}

// give books ids that a client was given.
func (w *world) give(p *process, ids []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		if before, twice := w.issued[id]; twice {
			w.violated("id %d twice: %v gave it to host %d in its life %d, host %d in its life %d gives it now",
				id, before.at, before.host, before.life, p.host.n, p.life)
		}
		w.issued[id] = issue{int32(p.host.n), int32(p.life), w.now()}
	}
	w.ids += uint64(len(ids))
	w.note("ids", uint64(p.host.n), ids[0], uint64(len(ids)))
}

// sleep waits in virtual time and reports whether the run goes on.
func (w *world) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-w.over:
		return false
	}
}

// between draws a duration.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

// about draws a duration whose mean is d: mostly short ones, a few long ones.
func about(r *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(min(r.ExpFloat64(), 20)*float64(d))
}
