package holders

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
)

// slowly are rules ten times slower than the default: the time that a busy machine takes counts
// for nothing.
var slowly = lease.Rules{Heartbeat: 20_000, Gap: 60_000, Lead: 80_000, Ahead: 30_000, Loss: 20_000, Skew: 10_000, Reclaim: 200_000}

const contractShape = "41/10/12 since 2020-01-01T00:00:00Z"

func ask(pool string) lease.Ask {
	return lease.Ask{Pool: pool, Shape: contractShape, Label: "test|1", Rules: slowly}
}

// Clock is the clock of a store, which a test moves on.
type Clock struct {
	Set   func(ahead time.Duration) // tells the store how far it is ahead of the host's; default: the store asks Now
	ahead atomic.Int64
}

// Now is the time.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Pass lets time pass.
func (c *Clock) Pass(d time.Duration) {
	if ahead := c.ahead.Add(int64(d)); c.Set != nil {
		c.Set(time.Duration(ahead))
	}
}

// Contract has a kind of store obey all the rules, in pools whose names begin with prefix. So
// many steps are taken at random. Nobody else uses the stores, whose clock is the given one.
func Contract(t *testing.T, open func() lease.Store, clock *Clock, prefix string, steps int) {
	t.Helper()
	for name, run := range map[string]func(t *testing.T, pool string){
		"rules":       func(t *testing.T, pool string) { obeysTheRules(t, open(), clock, pool, steps) },
		"administers": func(t *testing.T, pool string) { administers(t, open(), clock, pool) },
		"goes-on":     func(t *testing.T, pool string) { goesOn(t, open(), clock, pool) },
		"races":       func(t *testing.T, pool string) { races(t, open, pool) },
		"rivals":      func(t *testing.T, pool string) { rivals(t, open(), clock, pool) },
	} {
		t.Run(name, func(t *testing.T) { run(t, prefix+name) })
	}
}

// inTime is the context of a test that waits for an answer.
func inTime(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// rivals looks for pools whose numbers are in use: one that has the name of a source of before.
func rivals(t *testing.T, s lease.Store, clock *Clock, pool string) {
	t.Helper()
	ctx := inTime(t)
	rival := func(what, shape, want string, but ...string) {
		t.Helper()
		err := lease.Alone(ctx, s, shape, slowly, but)
		assert.MustTrue(t, (err != nil) == (want != "") && (err == nil || strings.HasPrefix(err.Error(), "pool "+want+" is in use")), "%s: %v; want %q", what, err, want)
	}
	shape := contractShape + " of " + pool // pools of other tests are in the store
	a := ask(pool)
	a.Shape, a.Token = shape, "t"
	assert.Of(s.Add(ctx, lease.Fill{Pool: pool, Shape: shape, Numbers: 3, Fresh: true, Rules: slowly})).Must(t)
	rival("numbers that nobody has used", shape, "")
	taken := assert.Of(s.Take(ctx, a)).Must(t)
	assert.MustTrue(t, taken.Verdict == lease.Granted, "Take: %+v", taken)
	rival("a number that is held", shape, pool)
	rival("ids of another shape", contractShape+" of none", "")
	rival("a pool that may make the same ids", shape, "", pool)
	clock.Pass(time.Duration(slowly.Reclaim+1) * time.Millisecond)
	rival("a holder that is silent", shape, "")
}

// contract is one run of obeysTheRules.
type contract struct {
	*testing.T
	ctx    context.Context
	store  lease.Store
	random *rand.Rand
	before lease.Listing
	tokens [3]string // by number: who held it last
	beats  [3]int64  // by number: the last sign of life that was confirmed
	seen   map[string]int
}

// obeysTheRules makes random calls and compares every answer, and the record
// behind it, with what the functions of package lease say. Nobody else uses the pool.
func obeysTheRules(t *testing.T, s lease.Store, clock *Clock, pool string, steps int) {
	c := &contract{
		T: t, ctx: inTime(t), store: s, random: rand.New(rand.NewPCG(1, 2)),
		tokens: [3]string{"none", "none", "none"}, seen: map[string]int{},
	}
	assert.Of(s.Add(c.ctx, lease.Fill{Pool: pool, Shape: contractShape, Numbers: 3, Fresh: true, Rules: slowly})).Must(t)
	c.before = c.list(pool)
	for step := range steps {
		if c.random.IntN(4) == 0 {
			clock.Pass(time.Duration(c.random.IntN(100)) * time.Second)
		}
		c.step(step, pool)
	}
	for _, must := range []string{
		"take: granted", "take: wait", "take: no number is free", "release: granted", "renew: granted",
		"release: " + lease.Stolen.String(), "renew: " + lease.Late.String(), "renew: " + lease.Gone.String(), "the store forgot",
	} {
		assert.True(t, c.seen[must] != 0, "never seen: %s; seen: %v", must, c.seen)
	}
}

func (c *contract) list(pool string) lease.Listing {
	l, err := c.store.List(c.ctx, pool)
	if err != nil {
		c.Fatal(err)
	}
	return l
}

func (c *contract) step(step int, pool string) {
	a := ask(pool)
	a.Worker = c.random.Uint64N(uint64(len(c.tokens)))
	a.Token = c.tokens[a.Worker]
	if c.random.IntN(8) == 0 {
		a.Token = "other"
	}
	a.Last = c.before.Records[a.Worker].Start + c.random.Int64N(120_000) - 10_000
	if c.random.IntN(3) == 0 {
		a.Last += 200_000 // as if the clock had gone back
	}
	a.Beat = c.beats[a.Worker]
	if c.random.IntN(16) == 0 {
		a.Beat += 30_000 // as if the store had forgotten
	}
	var want lease.Record
	var verdict lease.Verdict
	var r lease.Reply
	var err error
	op := [...]string{"take", "take", "release", "renew", "renew", "renew"}[c.random.IntN(6)]
	switch op {
	case "take":
		a.Spare = c.random.IntN(8) == 0
		a.Token, a.Reclaim = fmt.Sprintf("t%d", step), c.random.IntN(2) == 0
		r, err = c.store.Take(c.ctx, a)
		want, verdict = c.wantTake(a, r)
	case "release":
		r, err = c.store.Release(c.ctx, a)
		c.hears(a, r)
		want, verdict = slowly.Release(c.before.Records[a.Worker], r.Now, a.Use)
	default:
		r, err = c.store.Renew(c.ctx, a)
		c.hears(a, r)
		want, verdict = slowly.Renew(c.before.Pool, c.before.Records[a.Worker], r.Now, a.Use)
		assert.Equal(c.T, "for how long the pool rests", r.Rest, ms(slowly.Resting(c.before.Pool, r.Now)))
	}
	if err != nil {
		c.Fatal(err)
	}
	if r.Verdict != verdict {
		c.Fatalf("step %d, %s: %v, the rules say %v", step, op, r.Verdict, verdict)
	}
	c.seen[op+": "+r.Verdict.String()]++
	after := c.list(pool)
	assert.Equal(c.T, fmt.Sprintf("step %d, %s: the pool", step, op), after.Pool, c.before.Pool)
	if r.Verdict.Given() {
		if got := after.Records[r.Worker]; got != want || r.Start != want.Start || r.Fence != want.Fence {
			c.Fatalf("step %d, %s: record %v, reply %+v; the rules say %v", step, op, got, r, want)
		}
		if op == "take" {
			c.tokens[r.Worker] = a.Token
		}
		c.beats[r.Worker] = r.Beat
		c.before.Records[r.Worker] = want
	}
	for w, rec := range after.Records {
		if rec != c.before.Records[w] {
			c.Fatalf("step %d, %s: number %d changed from %v to %v", step, op, w, c.before.Records[w], rec)
		}
	}
}

// hears notes what the store is to note of a holder's asking, at the moment of the answer or a little before.
func (c *contract) hears(a lease.Ask, r lease.Reply) {
	want := slowly.Heard(c.before.Pool, c.before.Records[a.Worker], r.Now, a.Use)
	if want == c.before.Pool {
		return
	}
	got := c.list(a.Pool).Pool
	if late := want.Since - got.Since; late > 0 && got.Since > c.before.Pool.Since {
		want.Since = got.Since
	}
	c.before.Pool = want
	c.seen["the store forgot"]++
}

// wantTake checks the choice of a number and returns its record as the rules
// make it.
func (c *contract) wantTake(a lease.Ask, r lease.Reply) (lease.Record, lease.Verdict) {
	if wait := slowly.Resting(c.before.Pool, r.Now); wait > 0 {
		assert.Equal(c.T, "a number is waited for", r.Wait, ms(wait))
		return lease.Record{}, lease.Wait
	}
	w, wait, verdict := slowly.Choose(c.before.Records, r.Now, a.Reclaim, a.Spare)
	old := c.before.Records[w]
	if r.Verdict != verdict || r.Verdict == lease.Granted && r.Worker != w || r.Wait != time.Duration(wait)*time.Millisecond {
		c.Fatalf("%+v, the rules say %v of number %d, %v, for %d ms", r, verdict, w, old, wait)
	}
	if verdict != lease.Granted {
		return lease.Record{}, verdict
	}
	want, _, _ := slowly.Take(old, r.Now, a.Token, a.Label)
	return want, verdict
}

// administers adds and drops numbers, and looks at what a store says of pools
// that are not there or of other ids.
func administers(t *testing.T, s lease.Store, clock *Clock, pool string) {
	ctx := inTime(t)
	fill := lease.Fill{Pool: pool, Shape: contractShape, Numbers: 3, Rules: slowly}
	l, err := s.List(ctx, pool)
	assert.True(t, err == nil && !l.Exists && len(l.Records) == 0, "a pool that is not there: %+v, %v", l, err)
	a := ask(pool)
	a.Token = "a"
	expect := func(what string, call func(context.Context, lease.Ask) (lease.Reply, error), want lease.Verdict) lease.Reply {
		t.Helper()
		r, err := call(ctx, a)
		assert.MustTrue(t, err == nil && r.Verdict == want, "%s: %+v, %v; want %v", what, r, err, want)
		return r
	}
	add := func(want int) {
		t.Helper()
		n, err := s.Add(ctx, fill)
		assert.MustTrue(t, err == nil && n == want, "Add %d: %d, %v; want %d", fill.Numbers, n, err, want)
	}
	drop := func(want ...uint64) {
		t.Helper()
		got, err := s.Drop(ctx, pool, []uint64{0, 1, 200})
		assert.MustTrue(t, err == nil && fmt.Sprint(got) == fmt.Sprint(want), "Drop: %d, %v; want %d", got, err, want)
	}
	expect("take without a pool", s.Take, lease.NoPool)
	expect("renew without a pool", s.Renew, lease.NoPool)
	assert.Of(s.Drop(ctx, pool, []uint64{0})).Fails(t, "numbers of a pool that is not there were dropped", "")
	add(3)
	r := expect("take from a pool that may have been lost", s.Take, lease.Wait)
	assert.True(t, r.Wait > 0 && r.Wait <= ms(slowly.Quarantine()) && r.Why != "", "wait: %+v", r)
	clock.Pass(ms(slowly.Quarantine()))
	first := expect("take", s.Take, lease.Granted)
	a.Worker = first.Worker
	a.Spare, a.Token = true, "b"
	second := expect("take a spare one", s.Take, lease.Granted)
	assert.True(t, second.Worker != first.Worker, "number %d was given twice", first.Worker)
	a.Token = "c"
	expect("take a spare one when few are left", s.Take, lease.Empty)
	a.Spare, a.Token = false, "a"
	a.Shape = "41/9/13 since 2020-01-01T00:00:00Z"
	assert.Equal(t, "the shape", expect("take from a pool of other ids", s.Take, lease.OtherShape).Why, contractShape)
	expect("renew in a pool of other ids", s.Renew, lease.OtherShape)
	a.Shape = contractShape
	other := fill
	other.Shape = "41/9/13 since 2020-01-01T00:00:00Z"
	assert.Of(s.Add(ctx, other)).Fails(t, "numbers were added to a pool of other ids", "")
	a.Last = first.Start + 5
	r = expect("release", s.Release, lease.Granted)
	assert.True(t, r.Fence == a.Last+1, "the fence is %d, the last timestamp was %d", r.Fence, a.Last)
	add(0)
	fill.Numbers = 150
	add(147)
	free := []uint64{0, 1}
	if w := second.Worker; w < 2 {
		free = []uint64{1 - w}
	}
	drop(free...)
	drop()
	fill.Grow = true
	add(0) // what was dropped stays dropped
	fill.Grow = false
	add(len(free)) // those that were dropped, with their fences
	if l, err := s.List(ctx, pool); err != nil || len(l.Records) != 150 || l.Records[first.Worker].Fence != a.Last+1 || l.Pool.Shape != contractShape {
		t.Errorf("%d numbers, the first one taken is %v, %v", len(l.Records), l.Records[first.Worker], err)
	}
}

// goesOn has a pool whose numbers were used with a clock an hour ahead, all but some, and looks at
// which are given: none that its holder could not use. It has more numbers than a store looks at in
// one go.
func goesOn(t *testing.T, s lease.Store, clock *Clock, pool string) {
	ctx, near := inTime(t), slowly
	near.Lead = 4_000_000 // as if the clock had come near to what was used
	a := ask(pool)
	const numbers = 70
	assert.Of(s.Add(ctx, lease.Fill{Pool: pool, Shape: contractShape, Numbers: numbers, Fresh: true, Rules: near})).Must(t)
	do := func(call func(context.Context, lease.Ask) (lease.Reply, error), want lease.Verdict) lease.Reply {
		t.Helper()
		r, err := call(ctx, a)
		assert.MustTrue(t, err == nil && r.Verdict == want, "%+v, %v; want %v", r, err, want)
		return r
	}
	used := map[uint64]bool{}
	hold := func() {
		t.Helper()
		r := do(s.Take, lease.Granted)
		assert.MustTrue(t, !used[r.Worker] && r.Start < r.Fence, "number %d is given from %d below %d, used before: %t", r.Worker, r.Start, r.Fence, used[r.Worker])
		used[r.Worker], a.Worker, a.Last = true, r.Worker, r.Start+3_600_000
	}
	for i := range numbers {
		a.Token = fmt.Sprint(i)
		if hold(); i < numbers-1 { // the last one stays held
			do(s.Release, lease.Granted)
		}
	}
	a.Token = "other"
	r := do(s.Take, lease.Empty)
	assert.True(t, r.Why != "", "none can be used, and nothing says why: %+v", r)
	a.Spare = true
	do(s.Take, lease.Empty)
	a.Spare, a.Reclaim = false, true
	last := a.Worker
	r = do(s.Take, lease.Wait)
	assert.True(t, r.Wait <= ms(slowly.Reclaim), "the one that is held is the next to come: %+v", r)
	clock.Pass(ms(slowly.Reclaim))
	r = do(s.Take, lease.Granted)
	assert.True(t, r.Worker == last && r.Start < r.Fence, "number %d is given from %d below %d, want the silent one, %d", r.Worker, r.Start, r.Fence, last)
	a.Rules.Reclaim, a.Token = 8_000_000, "another"
	r = do(s.Take, lease.Wait)
	assert.True(t, r.Wait >= 3_000_000*time.Millisecond && r.Wait <= 3_600_000*time.Millisecond, "a free one is the next to come: %+v", r)
	a.Rules, a.Reclaim = near, false
	r = do(s.Take, lease.Granted)
	assert.True(t, r.Start >= r.Now+3_000_000, "number %d is given from %d on, before what it was used with", r.Worker, r.Start)
}

// races has many take, renew and give back at once: no two may hold one number.
func races(t *testing.T, open func() lease.Store, pool string) {
	ctx, s := inTime(t), open()
	assert.Of(s.Add(ctx, lease.Fill{Pool: pool, Shape: contractShape, Numbers: 4, Fresh: true, Rules: slowly})).Must(t)
	type stay struct{ from, to int64 }
	stays := make(chan map[uint64][]stay)
	const racers, each = 6, 8
	for i := range racers {
		s := open()
		go func() {
			mine := map[uint64][]stay{}
			for n, had := 0, 0; had < each && ctx.Err() == nil; n++ {
				a := ask(pool)
				a.Token = fmt.Sprintf("%d.%d", i, n)
				r, err := s.Take(ctx, a)
				if err != nil || r.Verdict != lease.Granted {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				a.Worker, a.Last = r.Worker, r.Start
				renewed, err := s.Renew(ctx, a)
				assert.True(t, err != nil || renewed.Verdict == lease.Granted, "renewal of number %d just taken: %v", r.Worker, renewed.Verdict)
				a.Last = max(r.Start, renewed.Now) + int64(n%3)
				if back, err := s.Release(ctx, a); err == nil && back.Verdict == lease.Granted {
					mine[r.Worker] = append(mine[r.Worker], stay{r.Start, a.Last})
					had++
				}
			}
			stays <- mine
		}()
	}
	all := map[uint64][]stay{}
	count := 0
	for range racers {
		for w, list := range <-stays {
			all[w] = append(all[w], list...)
			count += len(list)
		}
	}
	for w, list := range all {
		for i, x := range list {
			for _, y := range list[:i] {
				assert.True(t, x.from > y.to || y.from > x.to, "number %d was held for %v and %v", w, x, y)
			}
		}
	}
	assert.True(t, count >= racers*each, "%d numbers were held, want %d", count, racers*each)
}
