package holders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
)

// The rules that controls take away.
const (
	WithoutFence = "fence"
	WithoutStart = "start"
	WithoutBeat  = "beat"
)

// unsafe is the store of a holder whose job is to leave out a rule.
func (j Job) unsafe(s lease.Store) lease.Store {
	switch j.Unsafe {
	case WithoutFence:
		return boundless{s}
	case WithoutStart:
		return startless{s}
	case WithoutBeat:
		return beatless{s}
	}
	return s
}

// beatless is a store that is not told of the last sign of life that its holders had confirmed, so that none of them
// shows it what it forgot.
type beatless struct{ lease.Store }

func (b beatless) Renew(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	a.Beat = 0
	return b.Store.Renew(ctx, a)
}

// boundless is a store that tells its holders of bounds which they will not
// reach: the negative control of whatever relies on the fence.
type boundless struct{ lease.Store }

const far = 1000000000

func (b boundless) Take(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	r, err := b.Store.Take(ctx, a)
	r.Fence += far
	return r, err
}

func (b boundless) Renew(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	r, err := b.Store.Renew(ctx, a)
	r.Fence += far
	return r, err
}

// startless is a store that has its holders start at their clock, not at the
// fence of the one before.
type startless struct{ lease.Store }

func (b startless) Take(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	r, err := b.Store.Take(ctx, a)
	r.Start = min(r.Start, r.Now)
	return r, err
}

// slow is a store whose answer to a renewal comes when its holder has issued ids meanwhile, or could
// not for a while: a holder that goes on after a stop has nothing but the fence to hold it.
type slow struct {
	lease.Store
	issued *atomic.Int64 // how often the holder issued ids
}

func (b slow) Renew(ctx context.Context, a lease.Ask) (lease.Reply, error) {
	r, err := b.Store.Renew(ctx, a)
	before := b.issued.Load() + 10 // more than the threads that may have ids of before the stop
	for range 50 {                 // no deadline: it would pass while the holder is stopped
		if b.issued.Load() > before {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return r, err
}

// Owned is a store that closes what it belongs to as well.
func Owned(s lease.Store, of io.Closer) lease.Store { return owned{s, of} }

type owned struct {
	lease.Store
	of io.Closer
}

func (o owned) Close() error { return errors.Join(o.Store.Close(), o.of.Close()) }

// Zombie stops a holder until another has its number, then lets it go on, and
// shows that it uses the other one's times where the store tells no bound.
func Zombie(t *testing.T, s lease.Store, j Job) {
	t.Run("obeys", func(t *testing.T) {
		t.Parallel()
		beyond, twice := zombie(t, s, j)
		assert.True(t, beyond+twice <= 0, "%d ids carry a time that another holder may use, %d came twice", beyond, twice)
	})
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		for try := range 8 { // the holder may be stopped when it has just heard of a renewal
			j := j
			j.Pool, j.Unsafe = fmt.Sprintf("%s-without-fence-%d", j.Pool, try), WithoutFence
			if beyond, _ := zombie(t, s, j); beyond > 0 {
				return
			}
		}
		t.Error("a holder that obeys no fence is not noticed")
	})
}

// zombie returns how many ids of the holder that was stopped carry times of the other one, and
// how many came twice.
func zombie(t *testing.T, s lease.Store, j Job) (beyond, twice int) {
	t.Helper()
	Fill(t, s, j.Pool, 1)
	var all Record
	if j.Rules.Heartbeat == 0 {
		j.Rules = Brisk
	}
	j.Slow, j.Rules.Gap = true, 60_000        // the holder's own clock does not tell it, either
	j.Rules.Lead, j.Rules.Reclaim = 800, 1500 // it is past its bound when the other one begins
	j.Threads = 4
	a := Start(t, j, &all)
	a.Issues(t, 100)
	a.Signal(t, syscall.SIGSTOP)
	b := Start(t, j, &all)
	b.Issues(t, 500)
	a.Signal(t, syscall.SIGCONT)
	a.Says(t, "worker number lost")
	a.End(t) // before it takes the number again
	b.Issues(t, 500)
	b.End(t)
	first := slices.Min(b.Times())
	for _, at := range a.Times() {
		if at >= first {
			beyond++
		}
	}
	return beyond, len(all.Twice())
}

// Server is a server of a store, which a signal stops.
type Server interface {
	Signal(sig syscall.Signal) error
}

// Restart kills a holder again and again. The one that follows has the number
// at once, also while the store's server is stopped, and goes on
// from where the last one may have come to.
func Restart(t *testing.T, s lease.Store, j Job, server Server) {
	var all Record
	if j.Rules.Heartbeat == 0 {
		j.Rules = Brisk
	}
	// The lease does not end, and no silence is long enough, while the test runs.
	const more = 600_000
	j.Rules.Gap, j.Rules.Lead, j.Rules.Reclaim = j.Rules.Gap+more, j.Rules.Lead+more, j.Rules.Reclaim+2*more
	FillBy(t, s, j.Rules, lease.Fill{Pool: j.Pool, Numbers: 1, Fresh: true})
	j.Dir = t.TempDir()
	for range 3 {
		a := Start(t, j, &all)
		a.Issues(t, 200)
		a.Kill(t)
	}
	l, err := s.List(t.Context(), j.Pool)
	assert.True(t, err == nil && l.Records[0].State == lease.Held, "the number is %v, %v; want it held", l.Records[0], err)
	a := Start(t, j, &all)
	a.Issues(t, 200)
	assert.Must(t, server.Signal(syscall.SIGSTOP))
	a.Kill(t)
	b := Start(t, j, &all)
	b.Issues(t, 32)
	assert.Must(t, server.Signal(syscall.SIGCONT))
	b.Issues(t, 200)
	End(t, &all, b)
}

// Place is a store whose data can be put back to what it was.
type Place struct {
	Open    func() lease.Store
	Control func() lease.Store // the same, but it takes every server for the one from before
	Save    func()             // keeps the data as it is now
	Restore func()             // puts it back, with the server being killed
}

// restful are rules by which a pool rests for longer than a busy machine takes to ask.
func restful() lease.Rules {
	rules := Brisk
	rules.Lead = 60_000
	return rules
}

// SameServer makes of a table one that takes every server for the one from before.
func SameServer(t lease.Table) lease.Table { return sameServer{t} }

type sameServer struct{ lease.Table }

func (t sameServer) Visit(ctx context.Context, pool string, do func(v lease.Visit) error) error {
	return t.Table.Visit(ctx, pool, func(v lease.Visit) error { return do(sameVisit{v}) })
}

type sameVisit struct{ lease.Visit }

func (v sameVisit) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	p, err := v.Visit.Read(ctx, w)
	p.Server = p.Pool.Server
	return p, err
}

// Restored puts data back from before a number was taken. Nobody is given the number while its
// holder may use it. In the control somebody is.
func Restored(t *testing.T, j Job, at Place) {
	FillBy(t, at.Open(), restful(), lease.Fill{Pool: j.Pool, Numbers: 1, Fresh: true})
	at.Save()
	var all Record
	a := Start(t, j, &all)
	a.Issues(t, 200)
	a.Signal(t, syscall.SIGSTOP)
	at.Restore()
	ask := lease.Ask{Pool: j.Pool, Shape: Shape(), Rules: restful(), Use: lease.Use{Token: "b"}}
	reply := took(t, at.Open(), ask)
	assert.True(t, reply.Verdict == lease.Wait, "a number that is in use, and was forgotten: %+v", reply)
	a.Signal(t, syscall.SIGCONT)
	b := Start(t, j, &all)
	Issue(t, 1000, a, b)
	a.End(t)
	b.Issues(t, 100)
	b.End(t)
	assert.Equal(t, "ids twice", len(all.Twice()), 0)
	at.Restore()
	reply = took(t, at.Control(), ask)
	assert.True(t, reply.Verdict == lease.Granted, "without the rule: %+v", reply)
}

// OlderData puts data back from before numbers of two pools were taken, while their server runs: nothing but the holder
// shows that the store forgot. Nobody gives ids with its number while those of the holder lie ahead. In the pool of
// the control, whose holders do not say what they had confirmed, somebody does.
func OlderData(t *testing.T, j Job, at Place) {
	// The next holder waits for longer than a heartbeat is late on a busy machine, and the ids of this one lie ahead by more.
	j.Rules = Brisk
	j.Rules.Gap, j.Rules.Lead, j.Rules.Ahead, j.Rules.Skew, j.Rules.Reclaim = 9000, 9200, 9000, 3000, 35_000
	jobs, ids := [2]Job{j, j}, [2]Record{}
	jobs[1].Pool, jobs[1].Unsafe = j.Pool+"-control", WithoutBeat
	for _, j := range jobs {
		// Whoever takes a number takes the first. The other one is for the holder that was forgotten.
		FillBy(t, at.Open(), j.Rules, lease.Fill{Pool: j.Pool, Numbers: 2, Fresh: true})
	}
	at.Save()
	before, after := make([]*Process, 2), make([]*Process, 2)
	for i, j := range jobs {
		j.Dir = t.TempDir()
		before[i] = Start(t, j, &ids[i])
		before[i].Issues(t, 200)
		before[i].Kill(t)
		before[i] = Start(t, j, &ids[i]) // it goes on where the one before may have come to
		before[i].Issues(t, 200)
		before[i].Signal(t, syscall.SIGSTOP) // one that asks before the next holder takes the number takes it itself
	}
	at.Restore()
	for i, j := range jobs {
		after[i] = Start(t, j, &ids[i])
		after[i].Says(t, "worker number taken")
		before[i].Signal(t, syscall.SIGCONT)
	}
	before[0].Says(t, "worker number lost")
	used := slices.Max(before[0].Times())
	until(t, "the time of ids of the holder whose number was forgotten, by the store's clock", func() bool {
		return after[1].Count() > 0 && slices.Max(after[1].Times()) > used+500
	}, after...)
	assert.Equal(t, "ids of the next holder while those of the one before lie ahead", after[0].Count(), 0)
	assert.LessOrEqual(t, "where no holder shows what was forgotten, the first time in ids of the next one", slices.Min(after[1].Times()), slices.Max(before[1].Times()))
	for i := range jobs {
		before[i].End(t)
		after[i].End(t)
	}
	assert.Equal(t, "ids twice", len(ids[0].Twice()), 0)
}
