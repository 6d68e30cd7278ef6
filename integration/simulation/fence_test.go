package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
)

// folder is the disk of a host, with the fence of its worker number.
type folder struct {
	node
	fence uint64
	past  []fenceChange
	user  *process // who has the lock
}

type fenceChange struct {
	at     time.Time
	before uint64
}

// set stores a fence. The caller holds mu.
func (d *folder) set(fence uint64) {
	d.past = append(d.past, fenceChange{time.Now(), d.fence})
	d.fence = fence
	d.w.note("fence", fence)
}

// back undoes what was stored behind a moment. The caller holds mu.
func (d *folder) back(to time.Time) {
	for n := len(d.past); n > 0 && d.past[n-1].at.After(to); n-- {
		d.fence = d.past[n-1].before
		d.past = d.past[:n-1]
	}
}

// disk is the folder as a process has it.
type disk struct {
	p *process
	d *folder
}

// locked is a worker number that a process holds: an idsource.Lease.
type locked struct {
	disk
	found uint64
}

var errHeld = errors.New("held by another process")

func (d disk) node() *node { return &d.d.node }

// Acquire implements idsource.FenceStore.
func (d disk) Acquire(ctx context.Context, _ uint64, _ idsource.Shape) (idsource.Lease, error) {
	return call(ctx, d.p, d.node, errRefused, func() (idsource.Lease, error) {
		w := d.p.host.w
		w.mu.Lock()
		defer w.mu.Unlock()
		if u := d.d.user; u != nil && !u.dead && u != d.p {
			return nil, errHeld
		}
		if d.p.dead {
			return nil, errLost
		}
		d.d.user = d.p
		return &locked{d, d.d.fence}, nil
	})
}

// Fence implements idsource.Lease.
func (l *locked) Fence() uint64 { return l.found }

// Raise implements idsource.Lease.
func (l *locked) Raise(ctx context.Context, fence uint64) error {
	_, err := call(ctx, l.p, l.node, errRefused, func() (bool, error) {
		l.d.w.mu.Lock()
		defer l.d.w.mu.Unlock()
		if l.d.user == l.p {
			l.d.set(fence)
		}
		return true, nil
	})
	return err
}

// Release implements idsource.Lease.
func (l *locked) Release(ctx context.Context, fence uint64) (err error) {
	if fence != 0 {
		err = l.Raise(ctx, fence)
	}
	l.p.step()
	l.d.w.mu.Lock()
	defer l.d.w.mu.Unlock()
	if l.d.user == l.p {
		l.d.user = nil
	}
	return err
}

// numbers is a fleet whose processes have a worker number each, for ever.
type numbers struct {
	w       *world
	cfg     snowflake.Config
	layout  snowflake.Layout
	folders [2][]*folder // of each host two
	pools   []*records   // of each host one, with its number alone; nil: there are none
	rules   lease.Rules  // of pools
	in      [hosts]int   // where its number is: in one of the folders, or pooled
	moved   [hosts]bool  // it came there by a reload
	noted   [hosts]int   // what was written there before it came
	began   [hosts]time.Time
	life    [hosts]int    // of the process that gave ids last
	last    [hosts]uint64 // the greatest time of its ids
	before  [hosts]uint64 // of those of the processes before it
}

// pooled is the place behind the folders.
const pooled = 2

// node is the server of a host's number. The caller holds mu.
func (f *numbers) node(host int) *node {
	if f.in[host] == pooled {
		return &f.pools[host].node
	}
	return &f.folders[f.in[host]][host].node
}

// move takes a host's number to another place. An odd size has a folder be a new one. It reports whether a restart waits until the
// times of ids have passed: the place has had the number, or ids of the pool lie further ahead of the clock than a new folder begins.
// The caller holds mu.
func (f *numbers) move(host int, size int64) (waits bool) {
	from, others := f.in[host], len(f.folders)-1
	if f.pools != nil {
		others++
	}
	f.in[host] = (from + 1 + int(size/2)%others) % (1 + others)
	f.w.note("place", uint64(host), uint64(f.in[host]))
	if f.in[host] != pooled && size%2 == 1 {
		all := f.folders[f.in[host]]
		all[host] = &folder{node: node{w: f.w, waits: all[host].waits}}
	}
	f.noted[host] = f.written(host)
	return from == pooled || f.in[host] == pooled || f.folders[f.in[host]][host].fence > 0
}

// written is how much was written where a host has its number. The caller holds mu.
func (f *numbers) written(host int) int {
	if f.in[host] == pooled {
		return len(f.pools[host].past)
	}
	return len(f.folders[f.in[host]][host].past)
}

// snowflakes are drawn by their layouts and by what they do with the clock.
func drawSnowflake(r *rand.Rand, beat time.Duration) (c snowflake.Config, l snowflake.Layout) {
	c = snowflake.Config{
		Name: key, Epoch: epoch, Layout: []string{"41/16/6", "41/10/12", "39x10ms/10/10"}[r.IntN(3)],
		Sequence: []string{"continue", "zero"}[r.IntN(2)], ClockBack: snowflake.ClockBack(r.IntN(2)),
		MaxAhead: 3 * time.Second, Renew: beat, Lead: 3*time.Second + beat + between(r, 0, beat),
	}
	l, err := snowflake.ParseLayout(c.Layout)
	if err != nil {
		panic(err)
	}
	return c, l
}

func newNumbers(w *world, p *plan) *numbers {
	f := &numbers{w: w}
	r := w.chance(2)
	f.cfg, f.layout = drawSnowflake(r, p.beat)
	for n := range f.folders {
		for range hosts {
			f.folders[n] = append(f.folders[n], &folder{node: node{w: w, waits: between(r, 0, 5*time.Millisecond)}, fence: uint64(1 - n)})
		}
	}
	return f
}

// newPlaces has pools, too. The beats are those of their rules; a fixed number has what the program gives it.
func newPlaces(w *world, p *plan) fleet {
	f := newNumbers(w, p)
	r := w.chance(3)
	f.cfg.Renew, f.cfg.Lead = snowflake.DefaultRenew, snowflake.DefaultLead
	f.rules = drawRules(r, p.beat, f.cfg.MaxAhead)
	s, _ := f.layout.Shape(epoch)
	for _, h := range w.hosts {
		pool := newRecords(w, r)
		pool.putPool(f.rules.Create(lease.ShapeText(s.Layout, s.Epoch), pool.server, pool.now(), bool(fresh)))
		pool.put(uint64(h.n), lease.Record{State: lease.Free, Beat: pool.now()})
		f.pools = append(f.pools, pool)
		f.in[h.n] = r.IntN(pooled + 1)
	}
	return f
}

// clock is that of a host, as its process sees it.
func (p *process) clock() snowflake.Clock {
	return snowflake.Clock{Wall: reading(p, p.host.wall), Mono: reading(p, p.host.mono)}
}

// start implements fleet.
func (f *numbers) start(p *process) program {
	f.await(p)
	used := &idsource.UsedTimes{}
	c, wrong := f.config(p, used)
	u := newFlakes(p, c, f.layout, wrong)
	u.fixed = f.pools == nil
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	p.remake = func(size int64) {
		u.remake(func() (snowflake.Config, wrongID) {
			f.w.mu.Lock()
			if p.host.runs == p { // else the next process has begun with the file as it was
				f.move(p.host.n, size)
				f.moved[p.host.n] = true
			}
			f.w.mu.Unlock()
			return f.config(p, used)
		})
	}
	return u
}

// await waits where a reload had the number go to another place, and the process ended before it had it from there: the place does
// not know what that gave.
func (f *numbers) await(p *process) {
	n := p.host.n
	f.w.mu.Lock()
	waits := f.moved[n] && f.written(n) <= f.noted[n]
	f.w.mu.Unlock()
	if waits {
		_ = pause(context.Background(), f.lead())
		p.step()
	}
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.moved[n] = false
}

// config is that of a process with the place of its host's number, and what is wrong with ids by that.
func (f *numbers) config(p *process, used *idsource.UsedTimes) (snowflake.Config, wrongID) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	n := p.host.n
	f.began[n] = time.Now()
	c := f.cfg
	c.Clock, c.UsedTimes = p.clock(), used
	if f.in[n] == pooled {
		pool := f.pools[n]
		k, err := lease.New(lease.Config{
			Pool: key, Store: &script{p, func() *records { return pool }}, Rules: f.rules, Label: fmt.Sprint(n), Dir: p.host.leases(), Clock: reading(p, p.host.mono),
		})
		if err != nil {
			panic(err)
		}
		c.Pool, c.Renew, c.Lead = keeper{k, p}, 0, time.Duration(f.rules.Lead)*time.Millisecond
		return c, f.inOrder(func(at uint64) bool { return lastOf(f.layout, at) < pool.all[uint64(n)].Fence })
	}
	d := f.folders[f.in[n]][n]
	c.Worker, c.Fences = uint64(n), disk{p, d}
	return c, f.inOrder(func(at uint64) bool { return at < d.fence })
}

// lastOf is the last millisecond of a time of ids.
func lastOf(l snowflake.Layout, at uint64) int64 {
	return epoch.UnixMilli() + int64(at+1)*l.Unit.Milliseconds() - 1
}

// inOrder says what is wrong with an id of a source whose times must lie below a fence, and above those of the processes before.
func (f *numbers) inOrder(below func(at uint64) bool) wrongID {
	return func(p *process, id snowflake.Parts) string {
		n := p.host.n
		if p.life > f.life[n] {
			f.life[n], f.before[n] = p.life, max(f.before[n], f.last[n])
		}
		if p.life == f.life[n] {
			f.last[n] = max(f.last[n], id.Time)
			if id.Time <= f.before[n] {
				return "an earlier process gave ids of that time"
			}
		}
		if !below(id.Time) {
			return "the fence that is stored is below"
		}
		return ""
	}
}

// apply implements fleet.
func (f *numbers) apply(x fault) bool {
	w, h := f.w, f.w.hosts[x.host]
	w.mu.Lock()
	defer w.mu.Unlock()
	at, wait := f.node(x.host), x.lasts
	switch x.what {
	case "slow":
		at.slow = time.Duration(x.size)
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			at.slow = 0
		})
		h.hurry(x.lasts)
		return true
	case "reboot":
		for _, d := range f.folders {
			d[x.host].back(time.Now().Add(-d[x.host].waits))
		}
		h.forget()
	case "restore": // ids may be so far ahead of the clock: whoever puts a folder back waits that long
		f.folders[f.in[x.host]][x.host].back(time.Now().Add(-time.Duration(x.size)))
		wait += f.cfg.Lead + f.cfg.MaxAhead
	case "restart":
		f.moved[x.host] = false
		if f.move(x.host, x.size) { // likewise
			wait += f.lead()
		}
	case "reload":
		if p := h.runs; p != nil && p.remake != nil {
			go p.remake(x.size)
		}
		h.hurry(x.lasts)
		return true
	case "lost":
		if time.Since(f.began[x.host]) < 2*f.cfg.Lead || h.runs == nil {
			return true
		}
		f.folders[f.in[x.host]][x.host].set(0)
		wait = time.Millisecond
	default:
		return false
	}
	for _, p := range w.lived { // one that was about to end, too
		if p.host == h {
			p.kill()
		}
	}
	at.life++
	if rests := time.Now().Add(wait); rests.After(h.rests) { // an operator may wait already
		h.rests = rests
	}
	h.startIn(time.Until(h.rests))
	return true
}

// heal implements fleet.
func (f *numbers) heal() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	for _, d := range slices.Concat(f.folders[:]...) {
		d.slow, d.down = 0, false
	}
	for _, pool := range f.pools {
		pool.slow = 0
	}
}

// lead is how far ahead of the clock ids may be, wherever the number was.
func (f *numbers) lead() time.Duration {
	return max(f.cfg.Lead, time.Duration(f.rules.Lead)*time.Millisecond)
}

// bound implements fleet: clocks were wrong by a few minutes at most for longer than a moment, or are reached.
func (f *numbers) bound() time.Duration {
	most := time.Duration(0)
	for _, x := range f.w.plan.faults {
		if x.what == "clock" {
			most += max(time.Duration(x.size), -time.Duration(x.size))
		}
	}
	return most + f.w.plan.caughtUp() + 2*f.lead() + time.Duration(f.rules.Reclaim+f.rules.Quarantine())*time.Millisecond + 3*time.Minute
}
