package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"idproxy/cmd/idproxy/sources"
	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/proxy"
)

// moves is a fleet whose operator has its series go on elsewhere, and back: each file of his names a store, a key and a source.
type moves struct {
	w      *world
	stores map[string]*positions // by their names in files
	places []place
	files  []*config.Config // of places, two of each, with another step
	on     [hosts]int       // the file with which the next process of a host starts
	hidden bool             // ids leave no rows: they are in transactions, or of other programs

	shards  []*shard
	renames int
	most    uint64 // the greatest id that was given

	restored *positions // a store that was put back, under runs, before an operator has moved its keys up
	runs     *process
	lost     bool // a store was put back
}

// tables is how many there are at the end: some are made on the way.
const tables = 6

// place is where a series is, or, of a template, one for each table.
type place struct{ source, store, template string }

// places are where files have a series.
var places = []place{
	{"ids", "a", "order_id"},
	{"ids", "b", "order_id"},
	{"ids", "a", "order_no"},
	{"numbers", "a", "order_id"},
	{"numbers", "b", "order_no"},
	{"ids", "a", eachTable},
	{"ids", "b", eachTable},
	{"numbers", "a", eachTable},
}

const eachTable = "{schema}.{table}"

// key is that of a table's series.
func (at *place) key(table string) string { return segment.KeyOf(at.template, "shop", table) }

// newMoves has one server with tables, which is not asked.
func newMoves(w *world, p *plan) fleet {
	return movesOf(w, places, "{name: all, listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}", "all")
}

// movesOf is a fleet with some of the places, and the listeners of shards.
func movesOf(w *world, places []place, listeners string, shards ...string) *moves {
	r := w.chance(2)
	f := &moves{w: w, stores: map[string]*positions{}, hidden: r.IntN(2) == 0}
	for _, name := range shards {
		f.shards = append(f.shards, newShard(name))
	}
	for _, name := range []string{"a", "b"} {
		f.stores[name] = &positions{node: node{w: w, waits: between(r, 0, 3*time.Millisecond)}, keys: map[string]idsource.Position{}}
	}
	for _, n := range r.Perm(len(places))[:2+r.IntN(len(places)-1)] {
		f.places = append(f.places, places[n])
	}
	for _, at := range f.places {
		for range 2 {
			f.files = append(f.files, parsed(fmt.Sprintf(`
listeners: [%s]
stores: {a: {etcd: {endpoints: [a:2379]}}, b: {etcd: {endpoints: [b:2379]}}}
sources: {%s: {segment: {store: %s, key: "%s", step: %d, step_policy: %s}}}
rules: [{table: "shop.*", column: id, source: %[2]s}]
`, listeners, at.source, at.store, at.template, []int{1, 10, 100}[r.IntN(3)], []string{"fixed", "leaf", "rate"}[r.IntN(3)])))
		}
	}
	const start = 0
	f.stores[f.places[start].store].keys[f.places[start].template] = idsource.Position{Next: 1, Unset: true}
	for n := range f.on {
		f.on[n] = start
	}
	return f
}

func parsed(text string) *config.Config {
	cfg, err := config.Parse("idproxy.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		panic(err)
	}
	return cfg
}

// keyed is a store as a process has it, with what it says of its keys.
type keyed struct{ *client }

// Keys lists the keys.
func (k keyed) Keys(ctx context.Context) ([]string, error) {
	return call(ctx, k.p, k.node, errRefused, k.s.list)
}

// Set is for commands, of which there are none here.
func (k keyed) Set(context.Context, string, uint64) error { return errRefused }

func (f *moves) options(p *process) sources.Options {
	return sources.Options{
		Logger:  slog.New(slog.DiscardHandler),
		Fetched: func(string, time.Duration) { p.step() },
		Servers: f.servers(p),
		Store: func(c *config.Store, _ *slog.Logger) (store.Store, error) {
			s := &client{p: p, s: f.stores[c.Name]}
			return store.Store{Segments: s, Keys: keyed{s}, Place: c.Name, Places: []string{c.Name}, Close: func() error { return nil }}, nil
		},
	}
}

// start implements fleet.
func (f *moves) start(p *process) program {
	p.each = map[string]*rand.Rand{}
	f.w.mu.Lock()
	f.moveUp()
	cfg := f.files[f.on[p.host.n]]
	f.w.mu.Unlock()
	s, err := sources.Open(cfg, f.options(p))
	if err != nil {
		panic(err)
	}
	u := &mover{f: f, p: p, s: s, cfg: cfg, changes: make(chan struct{}, 1), admitted: map[admission]bool{}}
	p.host.w.mu.Lock()
	p.reload, p.upgrade = u.reload, u.upgrade
	p.host.w.mu.Unlock()
	return u
}

// mover is the client of a process, and its sources.
type mover struct {
	f        *moves
	p        *process
	s        *sources.Sources
	admitted map[admission]bool // the client's

	changes chan struct{} // of one reload at a time
	cfg     *config.Config
	left    *sources.Left
}

// admission is of a column: of a series on a shard.
type admission struct {
	idsource.Series
	*shard
}

// made is how many tables there are.
func (f *moves) made() int { return 1 + min(tables-1, int(tables*f.w.now()/f.w.plan.lasts)) }

// use implements program.
func (u *mover) use(r *rand.Rand) bool {
	ctx, cancel := u.p.patience(r)
	defer cancel()
	table, on := r.IntN(u.f.made()), u.f.shards[0]
	if n := len(u.f.shards); n > 1 {
		on = u.f.shards[r.IntN(n)]
	}
	name := u.f.named(on, table)
	if name == "" {
		return false
	}
	series := u.series(ctx, on, table, name)
	if series == nil {
		return false
	}
	ids := make([]uint64, 1)
	if r.IntN(4) == 0 {
		ids = make([]uint64, 1+r.IntN(40))
	}
	err := series.Fill(ctx, ids, 1)
	u.p.step()
	if err != nil {
		u.failed(err)
		return false
	}
	if u.f.named(on, table) != name { // it was renamed meanwhile
		return false
	}
	u.insert(on, table, ids)
	return true
}

// series is that of a table, whose column was asked for.
func (u *mover) series(ctx context.Context, on *shard, table int, name string) idsource.Series {
	u.p.host.w.mu.Lock()
	highest, of, from := on.columns[table], u.s, u.cfg.Rules[0].Source
	u.p.host.w.mu.Unlock()
	source := of.Named()[from]
	if source == nil {
		return nil // a reload is under way
	}
	series, err := source.Series("shop", name)
	if at := (admission{series, on}); err == nil && !u.admitted[at] {
		err = series.Admit(ctx, proxy.ColumnOn(on.name, "shop."+name+".id"), highest)
		u.p.step()
		u.admitted[at] = err == nil
	}
	if err != nil {
		u.failed(err)
		return nil
	}
	return series
}

// insert writes rows, where ids leave some. An id may be in several tables, and once in each.
func (u *mover) insert(on *shard, table int, ids []uint64) {
	last := ids[len(ids)-1]
	of := make([]uint64, len(ids))
	for i, id := range ids {
		of[i] = uint64(table)<<60 | id
	}
	u.p.host.w.give(u.p, of)
	u.p.host.w.mu.Lock()
	defer u.p.host.w.mu.Unlock()
	u.f.most = max(u.f.most, last)
	if !u.f.hidden {
		on.columns[table] = max(on.columns[table], last)
	}
	on.filled[table] = true
}

// failed looks at an error: a series that is not open, or is sealed, has no ids.
func (u *mover) failed(err error) {
	sealed, is := errors.AsType[*idsource.SealedError](err)
	switch {
	case is && sealed.Next > 0, errors.Is(err, idsource.ErrNoKey):
	case u.f.wentBack() && errors.Is(err, idsource.Behind):
	case errors.Is(err, idsource.Behind), errors.Is(err, idsource.Exhausted), errors.Is(err, idsource.BadConfig), errors.Is(err, idsource.TooHigh):
		u.p.host.w.violation("host %d: %v", u.p.host.n, err)
	}
}

// reload puts a file in force, as a goroutine of the process does. After an error the one before is in force.
func (u *mover) reload(cfg *config.Config) {
	u.changes <- struct{}{}
	defer func() { <-u.changes }()
	u.p.step()
	_ = u.left.Close()
	u.left = nil
	left, err := u.s.Reload(context.Background(), cfg)
	u.p.step()
	u.p.host.w.event("reloaded "+outcomeOf(err), uint64(u.p.host.n))
	if err != nil {
		return
	}
	u.p.host.w.mu.Lock()
	u.cfg, u.left = cfg, left
	u.p.host.w.mu.Unlock()
}

// upgrade has a successor go on, which knows what this process was given; that ends behind it.
func (u *mover) upgrade() {
	u.changes <- struct{}{}
	defer func() { <-u.changes }()
	u.p.step()
	next, err := sources.Open(u.cfg, u.f.options(u.p))
	if err != nil {
		panic(err)
	}
	next.Inherit(u.s.HighWater())
	u.p.step()
	u.p.host.w.mu.Lock()
	before, left := u.s, u.left
	u.s, u.left = next, nil
	u.p.host.w.mu.Unlock()
	_ = left.Close()
	_ = before.Close()
	next.Inherit(before.HighWater())
	u.p.host.w.event("upgraded", uint64(u.p.host.n))
}

func outcomeOf(err error) string {
	if err == nil {
		return "well"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// close implements program.
func (u *mover) close() {
	u.changes <- struct{}{}
	defer func() { <-u.changes }()
	_ = u.left.Close()
	_ = u.s.Close()
}

// apply implements fleet.
func (f *moves) apply(x fault) bool {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	to, host := int(x.size)%len(f.files), w.hosts[x.host]
	switch x.what {
	case "crash":
		f.some(x).crash(x.lasts)
	case "slow":
		s := f.some(x)
		s.slow = time.Duration(x.size)
		time.AfterFunc(x.lasts, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			s.slow = 0
		})
	case "reload all":
		r := rand.New(rand.NewPCG(w.plan.seed, uint64(x.at)))
		for _, h := range w.hosts {
			f.reload(h, to, between(r, 0, x.lasts))
		}
	case "reload":
		f.reload(host, to, 0)
	case "restart":
		f.on[host.n] = to
		if p := host.runs; p != nil {
			p.end()
			host.startIn(x.lasts)
		}
	case "upgrade":
		if p := host.runs; p != nil && p.upgrade != nil {
			w.note("upgrade", uint64(host.n))
			go p.upgrade()
		}
	case "restore":
		f.restore(x)
	case "emptied":
		f.empty(x)
	case "rename":
		f.rename(x)
	default:
		return false
	}
	for _, h := range w.hosts {
		h.hurry(5 * time.Second)
	}
	return true
}

// restore has a store be put back to before its newest ranges, under the process that was given them: the others have ended,
// and that one was made anew since, by a reload or an upgrade. Later an operator moves the keys above all ids, while no process
// runs. The caller holds mu.
func (f *moves) restore(x fault) {
	w, s := f.w, f.some(x)
	if f.runs != nil || len(s.past) == 0 {
		return
	}
	p := s.past[len(s.past)-1].by
	if p == nil || p.host.runs != p || p.reload == nil || slices.ContainsFunc(w.hosts, func(h *host) bool { return h.runs == nil }) {
		return
	}
	for _, one := range w.lived {
		if one != p {
			one.kill()
		}
	}
	f.runs = p
	w.note("remade", uint64(p.host.n))
	if x.size%2 == 0 {
		go p.upgrade()
	} else {
		go p.reload(f.files[f.on[p.host.n]^1])
	}
	from := time.Now().Add(-time.Duration(x.size) * time.Second)
	time.AfterFunc(3*time.Second+time.Nanosecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if f.runs == p && p.host.runs == p && s.backBefore(p, from) {
			f.restored, f.lost = s, true
			p.hurry(x.lasts)
		}
	})
	time.AfterFunc(x.lasts+time.Microsecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		f.moveUp()
		for _, h := range w.hosts {
			h.startIn(time.Second)
		}
	})
}

// empty takes all that a store has, once all processes have ended and nothing is on its way. The caller holds mu.
func (f *moves) empty(x fault) {
	if slices.ContainsFunc(f.w.hosts, func(h *host) bool { return h.runs == nil }) {
		return
	}
	for _, one := range f.w.lived {
		one.kill()
	}
	s := f.some(x)
	time.AfterFunc(x.lasts-time.Nanosecond, func() {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		if f.w.healed { // processes run
			return
		}
		clear(s.keys)
		s.past = nil
		f.w.note("emptied")
	})
	for _, h := range f.w.hosts {
		h.startIn(x.lasts)
	}
}

// moveUp is what an operator does with a store that was put back: he stops the process that runs, and moves keys that are open
// above all ids. The caller holds mu.
func (f *moves) moveUp() {
	if f.runs != nil {
		f.runs.kill()
	}
	if s := f.restored; s != nil {
		for _, key := range slices.Sorted(maps.Keys(s.keys)) {
			if at := s.keys[key]; at.Sealed == 0 && at.Next <= f.most {
				s.set(key, idsource.Position{Next: f.most + 1, Used: true})
			}
		}
	}
	f.restored, f.runs = nil, nil
}

// wentBack reports whether a store was put back.
func (f *moves) wentBack() bool {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return f.lost
}

// some is one of the stores.
func (f *moves) some(x fault) *positions { return f.stores[[]string{"a", "b"}[x.host%2]] }

// reload has a host's process take another file, later. The caller holds mu.
func (f *moves) reload(h *host, to int, in time.Duration) {
	time.AfterFunc(in+time.Duration(h.n)*time.Microsecond, func() {
		f.w.mu.Lock()
		defer f.w.mu.Unlock()
		if f.w.healed { // the operator has chosen
			return
		}
		f.on[h.n] = to
		if p := h.runs; p != nil && p.reload != nil {
			f.w.note("reload", uint64(h.n), uint64(to))
			go p.reload(f.files[to])
		}
	})
}

// heal implements fleet: the operator takes one file for all. Where its series is not open he does what the error says.
func (f *moves) heal() {
	w := f.w
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range f.stores {
		s.slow, s.down = 0, false
	}
	for _, one := range w.lived {
		one.kill()
	}
	f.moveUp()
	f.lost = false
	to := w.chance(4).IntN(len(f.files))
	at, store := f.places[to/2], f.stores[f.places[to/2].store]
	if p := store.keys[at.template]; p.Next == 0 || p.Sealed != 0 {
		w.stops++
		store.set(at.template, idsource.Position{Next: max(p.Next, f.most+1), Used: true})
	}
	for _, on := range f.shards {
		for table := range tables { // of a template
			on.finish(table)
			if key := at.key(on.tables[table]); store.keys[key].Sealed != 0 {
				store.set(key, idsource.Position{Next: max(store.keys[key].Next, f.most+1), Used: true})
			}
		}
	}
	for n, h := range w.hosts {
		f.on[n] = to
		h.startIn(time.Minute)
	}
}

// bound implements fleet.
func (f *moves) bound() time.Duration { return 4 * time.Minute }
