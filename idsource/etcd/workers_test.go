package etcd

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/idsource/order"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// place is where a holder finds its pool, and how its host's clock is wrong.
type place struct {
	Addr string
	Off  time.Duration
}

func openJob(j holders.Job) (lease.Store, error) {
	var p place
	if err := json.Unmarshal(j.Store, &p); err != nil {
		return nil, err
	}
	s, err := New(Config{Endpoints: []string{p.Addr}})
	if err != nil {
		return nil, err
	}
	s.clock = func() time.Time { return time.Now().Add(p.Off) }
	if j.Once {
		return holders.Owned(s.Disposable(), s), nil
	}
	return holders.Owned(s.Workers(), s), nil
}

func jobAt(t *testing.T, s *servers.Etcd, pool string, off time.Duration) holders.Job {
	t.Helper()
	text := assert.Of(json.Marshal(place{s.Addr, off})).Must(t)
	return holders.Job{Store: text, Pool: pool, Rules: holders.Brisk.Lasting()}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	clock := &holders.Clock{}
	holders.Contract(t, func() lease.Store {
		st := newStore(t, s)
		st.clock = clock.Now
		return st.Workers()
	}, clock, "", 400)
	t.Run("zombie", func(t *testing.T) {
		t.Parallel()
		holders.Zombie(t, newStore(t, s).Workers(), jobAt(t, s, "zombie", 0))
	})
}

func TestWorkersRestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Restart(t, newStore(t, s).Workers(), jobAt(t, s, "p", 0), s)
}

func TestWorkersRestored(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Restored(t, jobAt(t, s, "p", 0), holders.Place{
		Open:    func() lease.Store { return newStore(t, s).Workers() },
		Control: func() lease.Store { return lease.FromTable(holders.SameServer(table{newStore(t, s)})) },
		Save:    func() { again(t, s, func() error { return s.Save("backup") }) },
		Restore: func() { again(t, s, func() error { return s.Restore("backup") }) },
	})
}

func TestDisposable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Disposable(t, jobAt(t, s, "p", 0), holders.Place{
		Open:    func() lease.Store { return newStore(t, s).Disposable() },
		Control: func() lease.Store { return lease.Disposable(holders.SameServer(table{newStore(t, s)})) },
		Save:    func() { again(t, s, func() error { return s.Save("backup") }) },
		Restore: func() { again(t, s, func() error { return s.Restore("backup") }) },
	}, s)
}

// TestWorkersOtherCluster: a cluster that was made anew has no pool, and the one that is made in it rests.
func TestWorkersOtherCluster(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	holders.Fill(t, newStore(t, s).Workers(), "p", 2)
	var all holders.Record
	j := jobAt(t, s, "p", 0)
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	holders.EachIssues(t, 200, a, b)
	again(t, s, s.Renew)
	holders.FillAgain(t, newStore(t, s).Workers(), "p", 2)
	holders.EachIssues(t, 200, a, b)
	holders.End(t, &all, a, b)
}

// TestWorkersClocks has a host whose clock is behind take the number of one that
// issued ids: ids that come later carry later times, whatever the clocks say.
func TestWorkersClocks(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, tt := range []struct {
		name   string
		behind time.Duration
		kill   bool // the one before, which gives back nothing
		same   bool // the host: what the one before left in its file is taken up
		waits  bool // until the clock has caught up, which is too long for this test
	}{
		{name: "10ms", behind: 10 * time.Millisecond},
		{name: "10ms-killed", behind: 10 * time.Millisecond, kill: true},
		{name: "10ms-same-host", behind: 10 * time.Millisecond, kill: true, same: true},
		{name: "3s", behind: 3 * time.Second},
		{name: "3s-killed", behind: 3 * time.Second, kill: true},
		{name: "3s-same-host", behind: 3 * time.Second, kill: true, same: true},
		{name: "1h", behind: time.Hour, waits: true},
		{name: "1h-killed", behind: time.Hour, kill: true, waits: true},
		{name: "1h-same-host", behind: time.Hour, kill: true, same: true, waits: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			late, twice := followed(t, s, tt.name, follow{behind: tt.behind, kill: tt.kill, same: tt.same, waits: tt.waits})
			assert.True(t, late <= 0 && twice <= 0, "%d ids carry a time that the holder before may have used, %d came twice", late, twice)
		})
	}
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		late, _ := followed(t, s, "control", follow{behind: 30 * time.Second, unsafe: holders.WithoutStart})
		assert.True(t, late != 0, "a holder that starts at its clock, not at the fence, is not noticed")
	})
}

// follow is how a holder follows another one.
type follow struct {
	behind            time.Duration
	kill, same, waits bool
	unsafe            string
}

// followed has one holder follow another, and returns how many of its ids carry
// times that the other one came to, and how many of all came twice.
func followed(t *testing.T, s *servers.Etcd, pool string, f follow) (late, twice int) {
	t.Helper()
	rested := holders.Brisk
	rested.Lead = 120_000 // by the clock of a host that is behind, too
	holders.FillBy(t, newStore(t, s).Workers(), rested, lease.Fill{Pool: pool, Numbers: 1, Fresh: true})
	var all holders.Record
	before, after := jobAt(t, s, pool, 0), jobAt(t, s, pool, -f.behind)
	after.Rules.Reclaim = 2500 // the one before has ended, or was killed
	if after.Unsafe = f.unsafe; f.unsafe != "" {
		after.Rules.Lead = 60_000 // it is given the number while its clock is behind what was used
	}
	if f.same {
		before.Dir = t.TempDir()
		after.Dir = before.Dir
	}
	a := holders.Start(t, before, &all)
	a.Issues(t, 500)
	if f.kill {
		a.Kill(t)
	} else {
		a.End(t)
	}
	last := slices.Max(a.Times())
	b := holders.Start(t, after, &all)
	if f.waits {
		time.Sleep(3 * time.Second)
	} else {
		b.Issues(t, 500)
	}
	b.End(t)
	late = len(slices.DeleteFunc(b.Times(), func(at uint64) bool { return at > last }))
	return late, len(all.Twice())
}

// TestRegister: one leads at a time, and a term that has ended changes nothing any more.
func TestRegister(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	st := newStore(t, s)
	ctx, g := t.Context(), st.Register()
	seen, err := g.Look(ctx)
	assert.MustTrue(t, err == nil && seen == (order.Seen{}), "nobody led yet: %+v, %v", seen, err)
	a, b := order.Leader{Token: "a", Addr: "10.0.0.1:9309"}, order.Leader{Token: "b", Addr: "10.0.0.2:9309", Redis: "r:1"}
	first, taken, err := g.Take(ctx, seen, a)
	assert.MustTrue(t, err == nil && taken, "Take: %v, %v", taken, err)
	_, taken, err = g.Take(ctx, seen, b)
	assert.True(t, err == nil && !taken, "Take by what was seen before: %v, %v", taken, err)
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == a && seen.Term == first, "Look: %+v, %v", seen, err)
	assert.Of(g.Renew(ctx, first, "a")).Equal(t, "Renew", true)
	_, taken, err = g.Take(ctx, seen, b)
	assert.True(t, err == nil && !taken, "Take behind a sign of life: %v, %v", taken, err)
	old := g.During(first, "a")
	assert.Must(t, old.Open(ctx, "k", 1, 0))
	lo, hi, err := old.Reserve(ctx, ask("k", 10))
	assert.True(t, err == nil && lo == 1 && hi == 11, "Reserve: %d, %d, %v", lo, hi, err)
	assert.ErrorIs(t, "Reserve without order", sourcetest.ErrorOf(st.Reserve(ctx, ask("k", 10))), errOrdered)

	seen, _ = g.Look(ctx)
	second, taken, err := g.Take(ctx, seen, b)
	assert.MustTrue(t, err == nil && taken && second > first, "Take: term %d behind %d, %v, %v", second, first, taken, err)
	assert.ErrorIs(t, "Reserve when the term has ended", sourcetest.ErrorOf(old.Reserve(ctx, ask("k", 10))), order.ErrDeposed)
	assert.Of(old.GiveBack(ctx, "k", 5, 11)).ErrorIs(t, "GiveBack when the term has ended", order.ErrDeposed)
	assert.ErrorIs(t, "Advance when the term has ended", old.Advance(ctx, "k", 100), order.ErrDeposed)
	assert.Of(g.Renew(ctx, first, "a")).Equal(t, "Renew when the term has ended", false)
	assert.NoError(t, g.Resign(ctx, first, "a"), "Resign when the term has ended")
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == b && seen.Term == second, "the second leads: %+v, %v", seen, err)
	during := g.During(second, "b")
	lo, _, err = during.Reserve(ctx, ask("k", 10))
	assert.True(t, err == nil && lo == 11, "Reserve: %d, %v", lo, err)
	assert.Of(during.GiveBack(ctx, "k", 15, 21)).Equal(t, "GiveBack", true)
	assert.ErrorIs(t, "Reserve by another token", sourcetest.ErrorOf(g.During(second, "other").Reserve(ctx, ask("k", 10))), order.ErrDeposed)
	assert.NoError(t, g.Resign(ctx, second, "b"))
	seen, err = g.Look(ctx)
	assert.True(t, err == nil && seen.Leader == (order.Leader{}), "nobody leads: %+v, %v", seen, err)
	assert.ErrorIs(t, "Reserve behind a resignation", sourcetest.ErrorOf(during.Reserve(ctx, ask("k", 10))), order.ErrDeposed)
	assert.NoError(t, st.Set(ctx, "k", 500))
	lo, _, err = st.Reserve(ctx, ask("k", 1))
	assert.True(t, err == nil && lo == 500, "Reserve without order once the key was set: %d, %v", lo, err)
}
