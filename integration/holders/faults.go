package holders

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
)

// Boundless makes of a store one that tells its holders of bounds which they
// will not reach: the negative control of whatever relies on the fence.
func Boundless(s lease.Store) lease.Store { return boundless{s} }

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

// WithoutFence is the rule that Zombie takes away in its control.
const WithoutFence = "fence"

// Zombie stops a holder until another has its number, then lets it go on, and
// shows that ids come twice where the store is [Boundless].
func Zombie(t *testing.T, s lease.Store, j Job) {
	t.Run("obeys", func(t *testing.T) {
		t.Parallel()
		if n := zombie(t, s, j); n > 0 {
			t.Errorf("%d ids twice", n)
		}
	})
	t.Run("control", func(t *testing.T) {
		t.Parallel()
		for try := range 8 {
			j := j
			j.Pool, j.Unsafe = fmt.Sprintf("%s-without-fence-%d", j.Pool, try), WithoutFence
			if zombie(t, s, j) > 0 {
				return
			}
		}
		t.Error("a holder that obeys no fence is not noticed")
	})
}

// zombie returns how many ids came twice.
func zombie(t *testing.T, s lease.Store, j Job) int {
	t.Helper()
	Fill(t, s, j.Pool, 1)
	var all Record
	j.Threads = 16 // some of them look at the clock before the one that renews
	a := Start(t, j, &all)
	a.Issues(t, 100, 20*time.Second)
	a.Signal(t, syscall.SIGSTOP)
	j.Threads = 4
	b := Start(t, j, &all)
	b.Issues(t, 2000, 30*time.Second)
	a.Signal(t, syscall.SIGCONT)
	b.Issues(t, 500, 10*time.Second)
	a.End(t)
	b.End(t)
	return len(all.Twice())
}

// Restart kills a holder again and again. The one that follows has the number
// at once, also while the store is away, which pause(true) makes it, and goes on
// from where the last one may have come to.
func Restart(t *testing.T, s lease.Store, j Job, pause func(away bool) error) {
	Fill(t, s, j.Pool, 1)
	var all Record
	j.Dir = t.TempDir()
	for range 3 {
		a := Start(t, j, &all)
		a.Issues(t, 200, 20*time.Second)
		a.Kill(t)
	}
	if l, err := s.List(t.Context(), j.Pool); err != nil || l.Records[0].State != lease.Held {
		t.Errorf("the number is %v, %v; want it held", l.Records[0], err)
	}
	a := Start(t, j, &all)
	a.Issues(t, 200, time.Second+time.Duration(Brisk.Reclaim/2)*time.Millisecond) // no wait for the silence of the one before
	if err := pause(true); err != nil {
		t.Fatal(err)
	}
	a.Kill(t)
	b := Start(t, j, &all)
	b.Issues(t, 32, 2*time.Second)
	if err := pause(false); err != nil {
		t.Fatal(err)
	}
	b.Issues(t, 200, 20*time.Second)
	b.End(t)
	if again := all.Twice(); len(again) > 0 {
		t.Errorf("%d ids twice", len(again))
	}
}
