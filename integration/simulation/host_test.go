package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"time"

	"idproxy/config"
)

// host is a machine. It has clocks, a connection to the store, a disk, and a process while that lives.
type host struct {
	w    *world
	n    int
	link link
	dir  string // a folder of its own, where a world has one
	runs *process

	off   time.Duration // of the wall clock
	drift float64       // of the monotonic clock, which the wall clock goes with
	stood time.Duration // for so long the monotonic clock did not go
	lives int
	rests time.Time // no process starts before
}

// process is one life of a program. Its goroutines run real code; each call of theirs that leaves
// that code passes step.
type process struct {
	host *host
	life int
	net  *rand.Rand            // what becomes of its messages
	of   *rand.Rand            // what its client does
	each map[string]*rand.Rand // not nil: of messages that are sent at the same moment, by what they are about

	dead    bool
	stopped chan struct{} // not nil: closed when it goes on
	halted  time.Duration // how many goroutines have found it stopped, which go on one after the other
	fuse    int           // steps until blown is called; 0: none
	blown   func()
	mute    time.Duration // not 0: it stops for so long when it is about to send its next message
	busy    time.Time     // until then its client asks for much
	poke    chan struct{}
	worked  time.Time            // when ids came last
	reload  func(*config.Config) // not nil: has it take another configuration
	upgrade func()               // not nil: has a successor take its place
	remake  func(int64)          // not nil: has its source be made anew, with its number from another place
	quit    chan struct{}        // closed when it is to end, or dead
	gone    chan struct{}        // closed when nothing of it is left
}

// start runs a process, if none runs.
func (h *host) start() {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.runs != nil || h.w.closing || time.Now().Before(h.rests) {
		return
	}
	h.lives++
	part := uint64(h.n)<<32 | uint64(h.lives)<<8
	p := &process{
		host: h, life: h.lives, net: h.w.chance(part | 1), of: h.w.chance(part | 2),
		poke: make(chan struct{}, 1), quit: make(chan struct{}), gone: make(chan struct{}),
	}
	h.runs = p
	h.w.lived = append(h.w.lived, p)
	h.w.note("start", uint64(h.n), uint64(h.lives))
	go p.main()
}

// chance is what becomes of the messages that are about one thing. The scheduler says in which order others are sent at the
// same moment.
func (p *process) chance(about string) *rand.Rand {
	if p.each == nil {
		return p.net
	}
	p.host.w.mu.Lock()
	defer p.host.w.mu.Unlock()
	if p.each[about] == nil {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, p.host.n, p.life, about)
		p.each[about] = p.host.w.chance(h.Sum64())
	}
	return p.each[about]
}

// startIn starts a process later, and no two hosts at one moment.
func (h *host) startIn(d time.Duration) {
	time.AfterFunc(d+time.Duration(h.n)*time.Microsecond, h.start)
}

// main is the process.
func (p *process) main() {
	defer close(p.gone)
	if _ = pause(context.Background(), between(p.of, 0, 100*time.Millisecond)); !p.alive() {
		return
	}
	prog := p.host.w.fleet.start(p)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.client(prog, p.of)
	}()
	<-p.quit
	closed := make(chan struct{})
	go func() { // of a dead process it ends at the first step, and so do all its other goroutines
		defer close(closed)
		prog.close()
	}()
	<-closed
	<-ended
	p.host.w.mu.Lock()
	p.dead = true // the kernel has its locks
	p.host.w.mu.Unlock()
}

// client asks for ids as long as the process lives.
func (p *process) client(prog program, r *rand.Rand) {
	for p.think(r) {
		p.step()
		if prog.use(r) {
			p.step()
			p.host.w.mu.Lock()
			p.worked = time.Now()
			p.host.w.mu.Unlock()
		}
	}
}

// think waits until the next wish. It reports whether the process lives.
func (p *process) think(r *rand.Rand) bool {
	w := p.host.w
	w.mu.Lock()
	mean := w.plan.think
	if p.busy.After(time.Now()) {
		mean = 20 * time.Millisecond
	}
	w.mu.Unlock()
	t := time.NewTimer(about(r, mean))
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.poke: // all at once, and none at the moment of another
		_ = pause(context.Background(), between(r, 1, 5*time.Millisecond))
	case <-p.quit:
	}
	return p.alive()
}

// alive reports whether nothing has ended the process. A process that is asked to end is not alive either.
func (p *process) alive() bool {
	p.host.w.mu.Lock()
	defer p.host.w.mu.Unlock()
	return !p.dead && p.host.runs == p
}

// hurry has the client ask for much for a while.
func (p *process) hurry(d time.Duration) {
	p.busy = time.Now().Add(d)
	select {
	case p.poke <- struct{}{}:
	default:
	}
}

// step is where a process can be stopped and killed. A goroutine of a dead one ends here, with what it
// has deferred, which is what the kernel does for it: files are closed.
func (p *process) step() {
	w := p.host.w
	w.mu.Lock()
	if p.fuse > 0 && !p.dead {
		if p.fuse--; p.fuse == 0 {
			p.blown()
		}
	}
	for p.stopped != nil && !p.dead {
		stopped := p.stopped
		p.halted++
		behind := p.halted * time.Nanosecond
		w.mu.Unlock()
		<-stopped
		_ = pause(context.Background(), behind)
		w.mu.Lock()
	}
	dead := p.dead
	w.mu.Unlock()
	if dead {
		runtime.Goexit()
	}
}

// kill ends a process as kill -9 does. The caller holds mu.
func (p *process) kill() {
	if p.dead {
		return
	}
	p.host.w.note("kill", uint64(p.host.n), uint64(p.life))
	p.dead = true
	if p.host.runs == p {
		p.host.runs = nil
		close(p.quit)
	}
	p.goOn()
}

// stop halts a process for d, as SIGSTOP does. The caller holds mu.
func (p *process) stop(d time.Duration) {
	if p.dead || p.stopped != nil {
		return
	}
	p.host.w.note("stop", uint64(p.host.n), uint64(d))
	stopped := make(chan struct{})
	p.stopped, p.halted = stopped, 0
	time.AfterFunc(d, func() {
		p.host.w.mu.Lock()
		defer p.host.w.mu.Unlock()
		if p.stopped == stopped {
			close(stopped)
			p.stopped = nil
			p.host.w.note("continue", uint64(p.host.n))
		}
	})
}

// goOn ends a stop. The caller holds mu.
func (p *process) goOn() {
	if p.stopped != nil {
		close(p.stopped)
		p.stopped = nil
	}
}

// send is the step before a message.
func (p *process) send() {
	p.host.w.mu.Lock()
	if d := p.mute; d > 0 {
		p.mute = 0
		p.stop(d)
	}
	p.host.w.mu.Unlock()
	p.step()
}

// end asks a process to end. The caller holds mu.
func (p *process) end() {
	p.host.w.note("end", uint64(p.host.n), uint64(p.life))
	p.host.runs = nil
	close(p.quit)
}

// wall is the wall clock of the host, in nanoseconds since 1970.
func (h *host) wall() int64 {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.began.UnixNano() + int64(h.off+h.since())
}

// mono is the monotonic clock of the host, since it was made.
func (h *host) mono() time.Duration {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return time.Hour + h.since() - h.stood
}

func (h *host) since() time.Duration {
	passed := h.w.now()
	return passed + time.Duration(float64(passed)*h.drift)
}

// reading reads a clock of the host between two steps: the process can be stopped before, or with the reading in its hand.
func reading[T any](p *process, read func() T) func() T {
	return func() T {
		p.step()
		v := read()
		p.step()
		return v
	}
}

// patience is how long a client waits for ids.
func (p *process) patience(r *rand.Rand) (context.Context, context.CancelFunc) {
	if r.IntN(4) == 0 {
		return context.WithTimeout(context.Background(), between(r, time.Millisecond, 3*time.Second))
	}
	return context.WithCancel(context.Background())
}
