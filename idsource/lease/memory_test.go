package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

// memory is a Store by the functions of this package.
type memory struct {
	mu      sync.Mutex
	exists  bool
	pool    Pool
	records map[uint64]Record
	rules   Rules
	size    uint64 // what its keepers are told of the pool
	adds    int    // how often that was asked for
	down    error
	drops   map[uint64]bool // numbers whose renewals are lost on the way
	lost    error           // what Renew and Release answer in place of the step that they made
	meets   func()          // called while a renewal is under way, behind its step
	takes   []time.Time     // when one was asked for, spare ones left out
	off     time.Duration   // by which its clock is wrong
	pools   []string        // names by which there is a pool
}

var errDown = fmt.Errorf("%w: connection refused", ErrUnsent)

func newMemory(rules Rules, numbers uint64) *memory {
	m := &memory{exists: true, records: map[uint64]Record{}, rules: rules}
	m.pool = rules.Create(testShape, "one", time.Now().UnixMilli(), true)
	for w := range numbers {
		m.records[w] = Record{State: Free}
	}
	return m
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// enter locks the store and answers what needs no number.
func (m *memory) enter(shape string) (now int64, v Verdict, err error) {
	m.mu.Lock()
	switch {
	case m.down != nil:
		return 0, 0, m.down
	case !m.exists:
		return 0, NoPool, nil
	case m.pool.Shape != shape:
		return 0, OtherShape, nil
	}
	return time.Now().Add(m.off).UnixMilli(), Granted, nil
}

func (m *memory) Pools(context.Context) ([]string, error) { return m.pools, nil }

func (m *memory) Take(_ context.Context, a Ask) (Reply, error) {
	now, v, err := m.enter(a.Shape)
	defer m.mu.Unlock()
	if !a.Spare {
		m.takes = append(m.takes, time.Now())
	}
	if err != nil || v != Granted {
		return Reply{Verdict: v}, err
	}
	m.pool = m.rules.Visit(m.pool, "one", now)
	if wait := m.rules.Resting(m.pool, now); wait > 0 {
		return Reply{Verdict: Wait, Wait: ms(wait), Now: now}, nil
	}
	w, wait, v := m.rules.Choose(m.records, now, a.Reclaim, a.Spare)
	if v != Granted {
		return Reply{Verdict: v, Wait: ms(wait), Now: now, Why: why(Page{Now: now, Records: m.records}, w)}, nil
	}
	r, _, _ := m.rules.Take(m.records[w], now, a.Token, a.Label)
	m.records[w] = r
	reply := Given(Granted, w, r)
	reply.Now = now
	return reply, nil
}

func (m *memory) change(a Ask, step func(Pool, Record, int64, Use) (Record, Verdict)) (Reply, error) {
	now, v, err := m.enter(a.Shape)
	defer m.mu.Unlock()
	if err != nil || v != Granted {
		return Reply{Verdict: v}, err
	}
	if m.drops[a.Worker] {
		return Reply{}, errDown
	}
	m.pool = m.rules.Heard(m.pool, m.records[a.Worker], now, a.Use)
	r, v := step(m.pool, m.records[a.Worker], now, a.Use)
	if v.Given() {
		m.records[a.Worker] = r
	}
	if m.meets != nil {
		m.meets()
	}
	if m.lost != nil {
		return Reply{}, m.lost
	}
	reply := Given(v, a.Worker, r)
	reply.Now, reply.Rest = now, ms(m.rules.Resting(m.pool, now))
	return reply, nil
}

func (m *memory) Renew(_ context.Context, a Ask) (Reply, error) { return m.change(a, m.rules.Renew) }

func (m *memory) Release(_ context.Context, a Ask) (Reply, error) {
	return m.change(a, func(_ Pool, r Record, now int64, u Use) (Record, Verdict) { return m.rules.Release(r, now, u) })
}

// Add makes numbers for as long as there is room for more.
func (m *memory) Add(_ context.Context, f Fill) (added int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adds++
	if m.down != nil {
		return 0, m.down
	}
	if !m.exists {
		m.exists, m.pool, m.records = true, m.rules.Create(f.Shape, "one", time.Now().UnixMilli(), f.Fresh), map[uint64]Record{}
	}
	for w := range f.Numbers {
		if _, there := m.records[w]; !there {
			m.records[w] = Record{State: Free}
			added++
		}
	}
	return added, nil
}

func (m *memory) Close() error { return nil }

func (m *memory) Drop(context.Context, string, []uint64) ([]uint64, error) { return nil, nil }

func (m *memory) List(context.Context, string) (Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := Listing{Pool: m.pool, Exists: m.exists, Now: time.Now().Add(m.off).UnixMilli(), Records: map[uint64]Record{}}
	for w, r := range m.records {
		l.Records[w] = r
	}
	return l, nil
}

func (m *memory) asked() []time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.takes)
}

func (m *memory) record(w uint64) Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.records[w]
}

// holders is how many numbers are in a state.
func (m *memory) holders(s State) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records {
		if r.State == s {
			n++
		}
	}
	return n
}

// guest is a Tenant that notes what it is told.
type guest struct {
	mu    sync.Mutex
	terms []idsource.Term
	has   bool
	used  int64
	had   int64 // up to there its process used the number elsewhere
	err   error
	swap  chan string
}

func newGuest() *guest { return &guest{swap: make(chan string)} }

var (
	testEpoch = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	testShape = ShapeText("41/10/12", testEpoch)
)

func (g *guest) Unused(uint64) int64 { return g.had }

func (g *guest) Grant(t idsource.Term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.terms, g.has = append(g.terms, t), true
	g.used = max(g.used, t.Start)
}

func (g *guest) Revoke() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.has = false
	return g.used
}

func (g *guest) use(ts int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used = ts
}

func (g *guest) Last() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

func (g *guest) Report(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err = err
}

func (g *guest) Swap() <-chan string { return g.swap }

func (g *guest) Shape() (idsource.Shape, uint64) {
	return idsource.Shape{Layout: "41/10/12", Epoch: testEpoch}, 1024
}

func (g *guest) now() (has bool, last idsource.Term, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.terms); n > 0 {
		last = g.terms[n-1]
	}
	return g.has, last, g.err
}

// gives requires that ids can be given, and returns for which term.
func (g *guest) gives(t *testing.T, when string) idsource.Term {
	t.Helper()
	has, term, err := g.now()
	assert.True(t, has && err == nil, "%s: %t, %+v, %v; want a number", when, has, term, err)
	return term
}

// givesNone requires that no ids can be given, with a reason that has some words if there are any.
func (g *guest) givesNone(t *testing.T, when, why string) {
	t.Helper()
	has, term, err := g.now()
	assert.True(t, !has && (why == "" || err != nil && strings.Contains(err.Error(), why)), "%s: %t, %+v, %v; want no number, and %q", when, has, term, err, why)
}

// workers are the numbers that the guest was given, in their order.
func (g *guest) workers() (list []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range g.terms {
		if t.Fresh {
			list = append(list, t.Worker)
		}
	}
	return slices.Clip(list)
}
