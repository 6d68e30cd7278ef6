package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
)

// segments is a fleet whose processes share a series of a segment.
type segments struct {
	w       *world
	store   *positions
	cfg     segment.Config
	columns []uint64 // the greatest id of each column, with rows of before
	lost    bool     // the store was put back, and nobody has mended it yet
	runs    *process // the one that was furthest when it was put back, and runs on; nil: none, or it has noticed
	comes   bool     // an operator is on his way, and the series sealed
	hidden  bool     // no column shows what was given
	most    uint64   // the greatest id that was given
	least   uint64   // where the one that noticed says that the key must be at least; 0: nobody did
}

func newSegments(w *world, p *plan) *segments {
	r := w.chance(2)
	f := &segments{w: w, columns: []uint64{0}}
	f.store = &positions{node: node{w: w, waits: between(r, 0, 3*time.Millisecond)}, keys: map[string]idsource.Position{key: {Next: 1}}}
	f.cfg = segment.Config{
		Name: key, Store: nil, Step: []uint64{1, 10, 100, 1000}[r.IntN(4)], StepPolicy: segment.StepPolicy(r.IntN(3)),
		Prefetch: []float64{0.1, 0.5, 1}[r.IntN(3)], MaxStep: 5000,
	}
	return f
}

// twoShards has rows in two columns already, whose greatest ids lie apart.
func twoShards(w *world, p *plan) fleet {
	f := newSegments(w, p)
	f.columns = []uint64{1000, 1000 + uint64(w.chance(3).IntN(5000))}
	for id := range f.columns[1] / 2 {
		w.issued[2*id+2] = issue{host: -1}
	}
	return f
}

// start implements fleet. It returns what asks Admit before each column's first id.
func (f *segments) start(p *process) program {
	for f.awaits() {
		_ = pause(context.Background(), time.Second)
		p.step()
	}
	c := f.cfg
	store := &client{p: p, s: f.store}
	c.Store = store
	c.Fetched = func(time.Duration, error) { p.step() }
	c.Begin = func(ctx context.Context, b segment.Beginning) (g segment.Greatest, err error) {
		p.step()
		if err := pause(ctx, between(p.net, time.Millisecond, 20*time.Millisecond)); b.Used || err != nil {
			return segment.Greatest{}, err
		}
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		return segment.Greatest{ID: f.greatest(), Column: "the greatest"}, nil
	}
	s, err := segment.New(c)
	if err != nil {
		panic(err)
	}
	return &user{f: f, p: p, s: s, store: store, admitted: make([]bool, len(f.columns))}
}

// user is the client of one process, and its source.
type user struct {
	f        *segments
	p        *process
	s        *segment.Segment
	store    *client
	admitted []bool
	past     uint64 // what Advance was told
}

// use implements program.
func (u *user) use(r *rand.Rand) bool {
	ctx, cancel := u.p.patience(r)
	defer cancel()
	column := r.IntN(len(u.admitted))
	if !u.admit(ctx, column) {
		return false
	}
	if r.IntN(20) == 0 {
		u.advance(ctx, r)
	}
	ids := make([]uint64, 1)
	if r.IntN(4) == 0 {
		ids = make([]uint64, 1+r.IntN(40))
	}
	err := u.s.Fill(ctx, ids, 1+uint64(r.IntN(8)/7))
	u.p.step()
	if err != nil {
		u.failed(err)
		return false
	}
	if len(ids) > 4 && ids[1] == ids[0]+1 && r.IntN(3) == 0 { // the statement failed after two rows
		back := ids[2:]
		u.s.Return(back[0], back[len(back)-1]+1)
		ids = ids[:2]
	}
	u.insert(column, ids)
	return true
}

// admit asks for the column's first id, once in the life of a process.
func (u *user) admit(ctx context.Context, column int) bool {
	if u.admitted[column] {
		return true
	}
	w := u.f.w
	w.mu.Lock()
	highest := u.f.columns[column]
	if u.f.hidden {
		highest = 0
	}
	w.mu.Unlock()
	err := u.s.Admit(ctx, "shop.orders.id", highest)
	u.p.step()
	if err != nil {
		u.failed(err)
	}
	u.admitted[column] = err == nil
	return err == nil
}

// insert writes rows with ids, and looks at what must hold of them.
func (u *user) insert(column int, ids []uint64) {
	w, f := u.f.w, u.f
	w.give(u.p, ids)
	w.mu.Lock()
	defer w.mu.Unlock()
	f.columns[column] = max(f.columns[column], ids[len(ids)-1])
	f.most = max(f.most, ids[len(ids)-1])
	if ids[0] <= u.past {
		w.violated("host %d gives %d, and was told to stay above %d", u.p.host.n, ids[0], u.past)
	}
	mine := func(id uint64) bool {
		return slices.ContainsFunc(u.store.held, func(g grant) bool { return g.lo <= id && id < g.hi })
	}
	if !mine(ids[0]) || !mine(ids[len(ids)-1]) {
		w.violated("host %d gives %d to %d, of no range that it reserved", u.p.host.n, ids[0], ids[len(ids)-1])
	}
}

// advance moves the series past an id somewhere above.
func (u *user) advance(ctx context.Context, r *rand.Rand) {
	w := u.f.w
	w.mu.Lock()
	id := slices.Max(u.f.columns) + uint64(r.IntN(300))
	w.mu.Unlock()
	if u.s.Advance(ctx, id) == nil {
		u.p.step()
		u.past = max(u.past, id)
	}
}

// failed looks at an error: what the documents do not speak of must not be.
func (u *user) failed(err error) {
	w := u.f.w
	switch {
	case errors.Is(err, idsource.Behind), errors.Is(err, idsource.ErrNoKey):
		u.f.mend(u.p, err)
	case errors.Is(err, idsource.Exhausted), errors.Is(err, idsource.BadConfig), errors.Is(err, idsource.TooHigh):
		w.violation("host %d: %v", u.p.host.n, err)
	}
}

// close implements program.
func (u *user) close() {
	_ = u.s.Close(context.Background()) // what was not given back is a gap
}

// greatest is what the columns show. The caller holds mu.
func (f *segments) greatest() uint64 {
	if f.hidden {
		return 0
	}
	return slices.Max(f.columns)
}

// mend is what follows when a process says that its store went back. The one that ran on when that was done
// seals the series: then processes that start, and slower ones, may run too, and an operator takes his time.
func (f *segments) mend(p *process, err error) {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case f.comes:
	case !f.lost:
		w.violated("host %d stopped, and no store went back: %v", p.host.n, err)
	case f.runs == p:
		w.note("noticed", uint64(p.host.n))
		f.comes, f.runs = true, nil
		f.watch(p, time.Now())
	default:
		f.repair()
	}
}

// awaits reports whether the store was put back, and the series is not sealed yet: a process that starts then, and meets
// columns without rows, is none that a seal can keep from giving ids.
func (f *segments) awaits() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.runs != nil && f.runs.host.runs == f.runs || f.comes && !f.hidden
}

// watch waits until the series is sealed, or must be, because the process that does so was able to for a while. Then no
// rows show what was given, that process is restarted, and all others run. The caller holds mu.
func (f *segments) watch(p *process, unable time.Time) {
	w := f.w
	switch now := time.Now(); {
	case p.host.runs != p: // a second fault
		f.repair()
	case !f.shut() && now.Sub(unable) < sealedBy:
		if p.stopped != nil || p.host.link.until.After(now) {
			unable = now
		}
		time.AfterFunc(time.Second, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			f.watch(p, unable)
		})
	default:
		w.note("sealed", uint64(p.host.n))
		f.hidden = true
		p.kill()
		for _, h := range w.hosts {
			slower := h.runs
			time.AfterFunc(time.Duration(h.n+1)*time.Microsecond, func() { // no two at one moment
				w.mu.Lock()
				defer w.mu.Unlock()
				if slower != nil && h.runs == slower {
					slower.goOn()
					slower.hurry(time.Minute)
				}
			})
			h.startIn(time.Second)
		}
		time.AfterFunc(time.Minute, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			f.repair()
		})
	}
}

// shut reports whether the store gives no ids: the key is sealed, or it has none, which nobody but an administrator makes.
func (f *segments) shut() bool {
	at := f.store.keys[key]
	return at.Sealed != 0 || at == idsource.Position{}
}

// sealedBy is how long a process tries to seal a series that it can reach: one try lasts five seconds.
const sealedBy = 10 * time.Second

// repair is what an operator does whose store went back: he stops all processes, moves the key above all ids in use, and
// starts them again. The caller holds mu.
func (f *segments) repair() {
	w := f.w
	w.note("mend")
	w.stops++
	least := f.most + 1
	if f.comes {
		least = max(least, f.least) // a seal that is on its way does not hold there
	}
	f.lost, f.comes, f.hidden = false, false, false
	for _, one := range w.lived { // those that are about to end, too
		one.kill()
	}
	for _, h := range w.hosts {
		h.startIn(time.Minute)
	}
	f.store.set(key, idsource.Position{Next: max(f.store.keys[key].Next, least, slices.Max(f.columns)+1), Used: true})
}

// apply implements fleet.
func (f *segments) apply(x fault) bool {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch x.what {
	case "crash":
		f.store.crash(x.lasts)
	case "slow":
		f.store.slow = time.Duration(x.size)
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			f.store.slow = 0
		})
	case "restore", "emptied":
		f.restore(x)
	default:
		return false
	}
	for _, h := range w.hosts {
		h.hurry(x.lasts)
	}
	return true
}

// restore puts the store back as it was. All processes are stopped for that; or the one that was
// furthest runs on and has to notice, where none is about to start that could not. The others are
// stopped until then, or ended. The caller holds mu.
func (f *segments) restore(x fault) {
	w := f.w
	if f.comes {
		return
	}
	starts := slices.ContainsFunc(w.hosts, func(h *host) bool { return h.runs == nil })
	f.runs = nil
	if g := f.store.newest; x.host%2 == 0 && !starts && g.p != nil && g.hi == f.store.keys[key].Next && g.p.host.runs == g.p {
		f.runs, f.least = g.p, g.hi
	}
	before := f.store.keys[key]
	f.store.life++
	if x.what == "emptied" {
		clear(f.store.keys)
		f.store.past = nil
		w.note("emptied")
	} else {
		f.store.back(time.Now().Add(-time.Duration(x.size)))
	}
	same := f.store.keys[key] == before // nothing was lost
	f.lost = f.lost || !same
	if same {
		f.runs = nil
	}
	for _, one := range w.lived {
		if one.host.runs != one { // it is about to end
			one.kill()
		}
	}
	for _, h := range w.hosts {
		switch waits := f.runs != nil && x.host%4 == 0; {
		case h.runs == nil, h.runs == f.runs:
		case waits && h.runs.stopped == nil:
			h.runs.stop(f.w.plan.lasts)
		default:
			h.runs.kill()
		}
		if f.runs == nil {
			h.startIn(x.lasts)
		}
	}
	if f.runs != nil {
		f.runs.hurry(x.lasts)
	}
}

// heal implements fleet.
func (f *segments) heal() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.store.slow, f.store.down = 0, false
	if f.runs != nil && f.runs.host.runs == f.runs { // it has ids left, so that it asks for none and notices nothing
		f.runs = nil
		f.repair()
	}
}

// bound implements fleet: the pause between two tries is a second, a try takes five, and an operator two minutes.
func (f *segments) bound() time.Duration { return 4 * time.Minute }
