package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"idproxy/idsource"
	"idproxy/idsource/access"
	"idproxy/idsource/order"
	"idproxy/idsource/resp"
	"idproxy/idsource/segment"
)

// orders is a fleet whose processes share a series in one order.
type orders struct {
	w        *world
	cluster  *cluster
	lines    *lines
	cfg      segment.Config
	stands   bool                // clocks stand for a while: the order is not kept then
	users    map[*process]string // how the order names a process
	given    uint64              // the greatest id that a client was given, or told to stay above
	greatest uint64              // that a client was given
	unheard  time.Duration       // not 0: who takes the lead next, or gives it up, hears no answers for so long
	halt     time.Duration       // not 0: who leads is stopped for so long, behind its next sign of life
	first    time.Time           // when the series began
	taken    time.Time           // when the newest term began
	next     uint64              // above what an operator has yet to move the key, as the cluster was restored; 0: nothing
	old      *process            // that led when the cluster was restored, and runs on
}

// clocks says whether the clocks of a fleet may stand for a while.
type clocks bool

const (
	clocksRun   clocks = false
	clocksStand clocks = true
)

// newOrders makes a fleet whose clocks go up to a tenth faster than others.
func newOrders(w *world, stand clocks) *orders {
	r := w.chance(2)
	f := &orders{w: w, stands: bool(stand), users: map[*process]string{}}
	f.cluster = newCluster(w, between(r, 0, 3*time.Millisecond))
	w.mu.Lock()
	f.cluster.put(f.cluster.revision+1, seriesKey, position{Next: 1, Cluster: strconv.FormatUint(f.cluster.id, 16)}.text())
	w.mu.Unlock()
	f.cluster.before = f.writes
	f.lines = &lines{w: w, ends: map[*process][]*end{}}
	f.cfg = segment.Config{
		Name: key, Step: []uint64{1, 10, 100, 1000}[r.IntN(4)], StepPolicy: segment.StepPolicy(r.IntN(3)),
		Prefetch: []float64{0.1, 0.5, 1}[r.IntN(3)], MaxStep: 5000,
	}
	for _, h := range w.hosts {
		h.drift = (r.Float64() - 0.5) * 0.1
	}
	return f
}

// lineToken is what all processes know.
const lineToken = "secret"

// start implements fleet, in the order in which idproxy does it.
func (f *orders) start(p *process) program {
	p.each = map[string]*rand.Rand{}
	l := f.lines.open(p)
	store := newEtcd(p, f.cluster)
	e := order.NewElection(order.ElectionConfig{Register: store.Register(), Addr: l.Addr().String(), Clock: reading(p, p.host.mono)})
	line := order.NewLine(order.LineConfig{Dial: f.lines.dial(p), Password: lineToken})
	c := f.cfg
	c.Store = store
	c.Fetched = func(time.Duration, error) { p.step() }
	s, err := order.New(order.Config{Segment: c, Election: e, Line: line})
	if err != nil {
		panic(err)
	}
	f.w.mu.Lock()
	f.users[p] = e.User()
	f.w.mu.Unlock()
	server := resp.New(resp.Config{
		Lookup: func(string) (resp.Source, bool) { return s.Local(), true }, MaxIncrBy: 1 << 62,
		Users: access.NewUsers(access.User{Name: e.User(), Secret: access.DigestOf(lineToken), Set: true}),
	})
	u := &orderer{f: f, p: p, e: e, s: s, line: line}
	var ctx context.Context
	ctx, u.end = context.WithCancel(context.Background())
	u.served.Go(func() { _ = server.Serve(ctx, l) })
	e.Start("")
	return u
}

// orderer is the client of one process, and what it runs.
type orderer struct {
	f        *orders
	p        *process
	e        *order.Election
	s        *order.Source
	line     *order.Line
	end      context.CancelFunc
	served   sync.WaitGroup
	admitted bool
}

// use implements program. Some clients ask for several ids at once, each for its own.
func (u *orderer) use(r *rand.Rand) bool {
	ctx, cancel := u.p.patience(r)
	defer cancel()
	if !u.admit(ctx) {
		return false
	}
	if r.IntN(20) == 0 {
		u.advance(ctx, uint64(r.IntN(300)))
	}
	many, had := 1, make(chan bool, 3)
	if r.IntN(4) == 0 {
		many = 3
	}
	for n := range many {
		ids := make([]uint64, 1)
		if r.IntN(4) == 0 {
			ids = make([]uint64, 1+r.IntN(40))
		}
		stride, later := 1+uint64(r.IntN(8)/7), between(r, 0, time.Duration(n)*time.Millisecond)
		go func() {
			ok := false
			defer func() { had <- ok }()
			_ = pause(ctx, later)
			ok = u.fill(ctx, ids, stride)
		}()
	}
	all := true
	for range many {
		all = <-had && all
	}
	return all
}

// fill asks for ids once. What comes lies above all that any client was given before it asked.
func (u *orderer) fill(ctx context.Context, ids []uint64, stride uint64) bool {
	w, f := u.f.w, u.f
	u.p.step()
	w.mu.Lock()
	before := f.given
	w.mu.Unlock()
	err := u.s.Fill(ctx, ids, stride)
	if err != nil {
		u.p.step()
		u.failed(err)
		return false
	}
	w.mu.Lock()
	if u.p.dead {
		w.mu.Unlock()
		return false
	}
	last := ids[len(ids)-1]
	if ids[0] <= before && !f.stands {
		w.violated("host %d gives %d, and its client asked when %d was given", u.p.host.n, ids[0], before)
	}
	f.given, f.greatest = max(f.given, last), max(f.greatest, last)
	w.mu.Unlock()
	w.give(u.p, ids)
	u.p.step()
	return true
}

// admit asks for the column's first id, once in the life of a process.
func (u *orderer) admit(ctx context.Context) bool {
	if u.admitted {
		return true
	}
	u.f.w.mu.Lock()
	highest := u.f.greatest
	u.f.w.mu.Unlock()
	err := u.s.Admit(ctx, "shop.orders.id", highest)
	u.p.step()
	if err != nil {
		u.failed(err)
	}
	u.admitted = err == nil
	return u.admitted
}

// advance moves the series past an id somewhere above.
func (u *orderer) advance(ctx context.Context, above uint64) {
	w := u.f.w
	w.mu.Lock()
	id := u.f.given + above
	w.mu.Unlock()
	if u.s.Advance(ctx, id) == nil {
		u.p.step()
		w.mu.Lock()
		u.f.given = max(u.f.given, id)
		w.mu.Unlock()
	}
}

// failed looks at an error: what the documents do not speak of must not be.
func (u *orderer) failed(err error) {
	if errors.Is(err, idsource.Behind) && u.f.stands {
		return
	}
	if errors.Is(err, idsource.Behind) || errors.Is(err, idsource.Exhausted) || errors.Is(err, idsource.BadConfig) ||
		errors.Is(err, idsource.TooHigh) || errors.Is(err, idsource.TooMany) {
		u.f.w.violation("host %d: %v", u.p.host.n, err)
	}
}

// close implements program, in the order in which idproxy does it.
func (u *orderer) close() {
	u.f.w.mu.Lock()
	dead := u.p.dead
	u.f.w.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if dead {
		u.f.lines.gone(u.p)
		cancel()
	}
	defer u.f.lines.gone(u.p)
	defer u.s.Close(context.Background()) //nolint:errcheck // it has nothing to say
	defer u.line.Close()
	defer u.served.Wait()
	defer u.end()
	if !dead {
		defer u.last()()
	}
	_ = u.e.Close(ctx) // who waits for the lead has it later
}

// last has the client of a process that ends ask on while that gives up the lead. end ends it.
func (u *orderer) last() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	r := u.f.w.chance(uint64(u.p.host.n)<<32 | uint64(u.p.life)<<8 | 3)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for u.fill(ctx, make([]uint64, 1), 1) && ctx.Err() == nil {
			_ = pause(ctx, about(r, 5*time.Millisecond))
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// writes looks at what a process writes: only who leads takes ranges. The caller holds mu.
func (f *orders) writes(p *process, put *etcdserverpb.PutRequest) {
	switch {
	case isSeries(put.Key):
		if f.first.IsZero() {
			f.first = time.Now()
		}
		if !f.leads(p) {
			f.w.violated("host %d takes a range, and another process leads", p.host.n)
		}
	case string(put.Key) == leaderKey:
		if string(put.Value) != "{}" { // it has not resigned
			f.taken = time.Now()
		}
		f.unhear(p.host)
	case string(put.Key) == beatKey && f.halt > 0:
		p.stop(f.halt)
		f.hurry()
		f.halt = 0
	}
}

// hurry has all clients ask for much. The caller holds mu.
func (f *orders) hurry() {
	for _, h := range f.w.hosts {
		h.hurry(3 * time.Second)
	}
}

// unhear has who takes the lead, or gives it up, hear no answers for a while, then one, and then reach the
// cluster no more. The caller holds mu.
func (f *orders) unhear(h *host) {
	d, w := f.unheard, f.w
	if f.unheard = 0; d == 0 {
		return
	}
	f.cluster.life++ // the answer that is on its way is lost, too
	h.link = link{until: time.Now().Add(d), how: badness{cut: 1}}
	time.AfterFunc(d+order.DefaultRules.Look, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.healed {
			h.link = link{until: time.Now().Add(time.Second), how: badLinks["cut off"]}
		}
	})
	f.hurry()
}

// leads says whether the cluster has a process as the leader. The caller holds mu.
func (f *orders) leads(p *process) bool {
	_, token, _ := strings.Cut(f.users[p], "-")
	return token != "" && strings.Contains(f.cluster.leader(), token)
}

// aim implements aimed: half of all faults hit the leader.
func (f *orders) aim(host int) int {
	if host%2 == 0 {
		return host
	}
	for _, h := range f.w.hosts {
		if h.runs != nil && f.leads(h.runs) {
			return h.n
		}
	}
	return host
}

// apply implements fleet.
func (f *orders) apply(x fault) bool {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	host := w.hosts[f.aim(x.host)]
	if how, ok := badLinks[strings.TrimPrefix(x.what, "net ")]; ok && strings.HasPrefix(x.what, "net ") {
		for _, h := range w.hosts {
			h.link = link{until: time.Now().Add(x.lasts), how: how}
			h.hurry(x.lasts)
		}
		return true
	}
	if how, ok := badLinks[strings.TrimPrefix(x.what, "line ")]; ok && strings.HasPrefix(x.what, "line ") {
		f.lines.bad[host.n] = link{until: time.Now().Add(x.lasts), how: how}
		host.hurry(x.lasts)
		return true
	}
	switch x.what {
	case "crash":
		f.cluster.elect(x.lasts)
	case "slow":
		f.cluster.slow = time.Duration(x.size)
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			f.cluster.slow = 0
		})
	case "restore":
		f.restore(x)
	case "unheard lead":
		if f.unheard = x.lasts; x.size == 0 && host.runs != nil {
			host.runs.end()
			host.startIn(time.Second)
		}
		return true
	case "stop behind beat":
		f.halt = x.lasts
		return true
	case "stand at":
		if p := host.runs; p != nil {
			p.hurry(5 * time.Second)
			p.fuse, p.blown = int(x.size), func() {
				if p.stopped == nil {
					p.stop(x.lasts)
					host.stood += x.lasts
				}
			}
		}
		return true
	default:
		return false
	}
	for _, h := range w.hosts {
		h.hurry(x.lasts)
	}
	return true
}

// heal implements fleet.
func (f *orders) heal() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.cluster.slow, f.cluster.down = 0, false
	f.lines.bad, f.unheard, f.halt = [hosts]link{}, 0, 0
	f.mend()
	if p := f.old; p != nil && p.host.runs == p { // else it waits until the cluster is where it knew it to be
		p.kill()
	}
}

// bound implements fleet: a question to the cluster takes two seconds at most, the next leader
// waits for 1.2, a request to him takes one, and a process that ends five.
func (f *orders) bound() time.Duration { return 20 * time.Second }
