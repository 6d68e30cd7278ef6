package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"idproxy/idsource"
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
	in      [hosts]int   // the folder that its number has
	began   [hosts]time.Time
	life    [hosts]int    // of the process that gave ids last
	last    [hosts]uint64 // the greatest time of its ids
	before  [hosts]uint64 // of those of the processes before it
}

// folder is where a host has its number. The caller holds mu.
func (f *numbers) folder(host int) *folder { return f.folders[f.in[host]][host] }

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

func newNumbers(w *world, p *plan) fleet {
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

// clock is that of a host, as its process sees it.
func (p *process) clock() snowflake.Clock {
	return snowflake.Clock{Wall: reading(p, p.host.wall), Mono: reading(p, p.host.mono)}
}

// start implements fleet.
func (f *numbers) start(p *process) program {
	used := &idsource.UsedTimes{}
	u := newFlakes(p, f.config(p, used), f.layout, f.fenced)
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	p.remake = func() {
		u.remake(func() snowflake.Config {
			f.w.mu.Lock()
			if p.host.runs == p { // else the next process has begun with the file as it was
				f.in[p.host.n] ^= 1
				f.w.note("other folder", uint64(p.host.n), uint64(f.in[p.host.n]))
			}
			f.w.mu.Unlock()
			return f.config(p, used)
		})
	}
	return u
}

// config is that of a process with the folder of its host.
func (f *numbers) config(p *process, used *idsource.UsedTimes) snowflake.Config {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.began[p.host.n] = time.Now()
	c := f.cfg
	c.Worker, c.Clock, c.Fences, c.UsedTimes = uint64(p.host.n), p.clock(), disk{p, f.folder(p.host.n)}, used
	return c
}

// fenced says what is wrong with the time of an id that is given now. The caller holds mu.
func (f *numbers) fenced(p *process, id snowflake.Parts) string {
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
	if d := f.folder(n); id.Time >= d.fence {
		return "the fence on the disk is below"
	}
	return ""
}

// apply implements fleet.
func (f *numbers) apply(x fault) bool {
	w, h := f.w, f.w.hosts[x.host]
	w.mu.Lock()
	defer w.mu.Unlock()
	d := f.folder(x.host)
	wait := x.lasts
	switch x.what {
	case "slow":
		d.slow = time.Duration(x.size)
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			d.slow = 0
		})
		h.hurry(x.lasts)
		return true
	case "reboot":
		d.back(time.Now().Add(-d.waits))
	case "restore": // ids may be so far ahead of the clock: whoever puts a folder back waits that long
		d.back(time.Now().Add(-time.Duration(x.size)))
		wait += f.cfg.Lead + f.cfg.MaxAhead
	case "folder":
		f.in[x.host] ^= 1
		if f.folder(x.host).fence > 0 { // it was there: likewise
			wait += f.cfg.Lead + f.cfg.MaxAhead
		}
	case "reload":
		if p := h.runs; p != nil && p.remake != nil {
			go p.remake()
		}
		h.hurry(x.lasts)
		return true
	case "lost":
		if time.Since(f.began[x.host]) < 2*f.cfg.Lead || h.runs == nil {
			return true
		}
		d.set(0)
		wait = time.Millisecond
	default:
		return false
	}
	for _, p := range w.lived { // one that was about to end, too
		if p.host == h {
			p.kill()
		}
	}
	d.life++
	h.rests = time.Now().Add(wait)
	h.startIn(wait)
	return true
}

// heal implements fleet.
func (f *numbers) heal() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	for _, d := range slices.Concat(f.folders[:]...) {
		d.slow, d.down = 0, false
	}
}

// bound implements fleet: clocks were wrong by a few minutes at most for longer than a moment, or are reached.
func (f *numbers) bound() time.Duration {
	most := time.Duration(0)
	for _, x := range f.w.plan.faults {
		if x.what == "clock" {
			most += max(time.Duration(x.size), -time.Duration(x.size))
		}
	}
	return most + f.w.plan.caughtUp() + 2*f.cfg.Lead + 3*time.Minute
}
