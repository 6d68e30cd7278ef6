package simulation

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// outcome is what came of a run.
type outcome struct {
	found    string // a violation, or nothing
	hash     uint64
	lasted   time.Duration
	ids      uint64
	messages uint64
	faults   int
	stops    int
}

// run plays a plan. dir is a folder for the disks of hosts.
func run(t *testing.T, k *kind, p plan, dir string, log io.Writer) (o outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w := &world{plan: p, began: time.Now(), issued: map[uint64]issue{}, over: make(chan struct{}), hash: 0xcbf29ce484222325, log: log}
		r := w.chance(1)
		for n := range k.fleet() {
			w.hosts = append(w.hosts, &host{w: w, n: n, dir: dir, drift: (r.Float64() - 0.5) * 1e-4})
		}
		w.fleet = k.make(w, &p)
		w.play()
		w.stop()
		o = outcome{found: w.found, hash: w.hash, lasted: w.now(), ids: w.ids, messages: w.messages, faults: w.applied, stops: w.stops}
	})
	return o
}

// play starts the fleet, applies the faults, ends them, and waits until all give ids again.
func (w *world) play() {
	for _, h := range w.hosts {
		h.start()
	}
	for _, f := range w.plan.faults {
		if !w.sleep(f.at - w.now()) {
			return
		}
		w.apply(f)
	}
	if !w.sleep(w.plan.lasts - w.now()) {
		return
	}
	w.heal()
	healed, bound := time.Now(), w.fleet.bound()
	if !w.sleep(bound) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if h.runs == nil || !h.runs.worked.After(healed) {
			w.violated("host %d gives no ids %v after the end of all faults", h.n, bound)
		}
	}
}

// heal ends all faults.
func (w *world) heal() {
	w.event("heal")
	w.mu.Lock()
	w.healed = true
	w.mu.Unlock()
	w.fleet.heal()
	w.mu.Lock()
	for _, h := range w.hosts {
		h.link, h.off = link{}, 0
		if p := h.runs; p != nil {
			p.fuse, p.mute = 0, 0
			p.goOn()
		}
	}
	w.plan.think = min(10*time.Second, w.fleet.bound()/18) // hardly a client waits for so many times that
	w.mu.Unlock()
	for _, h := range w.hosts {
		h.start()
		w.mu.Lock()
		h.hurry(time.Second)
		w.mu.Unlock()
	}
}

// stop ends what runs, as SIGTERM does, and waits until nothing is left of it.
func (w *world) stop() {
	w.mu.Lock()
	w.closing = true
	lived := w.lived
	w.mu.Unlock()
	for _, p := range lived {
		time.Sleep(time.Microsecond) // no two at one moment
		w.mu.Lock()
		if p.host.runs == p {
			p.end()
		}
		p.fuse, p.mute = 0, 0
		p.goOn()
		w.mu.Unlock()
	}
	for _, p := range lived {
		<-p.gone
	}
}
