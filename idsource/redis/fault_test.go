package redis

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/lease"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

func private(t testing.TB, args ...string) *servers.Redis {
	t.Helper()
	r, err := servers.StartRedis(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestZombie(t *testing.T) {
	t.Parallel()
	holders.Zombie(t, open(t, Config{}), jobAt(shared.Addr, "zombie"))
}

// TestRedisBackWithOldDump has Redis come back with a dump from before its
// number was taken, as one that keeps no log does.
func TestRedisBackWithOldDump(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 1)
	if _, err := r.Do("SAVE"); err != nil {
		t.Fatal(err)
	}
	var all holders.Record
	j := jobAt(r.Addr, "p")
	a := holders.Start(t, j, &all)
	a.Issues(t, 200, 20*time.Second)
	a.Signal(t, syscall.SIGSTOP)
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "b"}}
	if reply, err := s.Take(t.Context(), ask); err != nil || reply.Verdict != lease.Wait {
		t.Errorf("a number that is in use, and was forgotten: %+v, %v", reply, err)
	}
	a.Signal(t, syscall.SIGCONT)
	b := holders.Start(t, j, &all)
	holders.Issue(t, 1000, 30*time.Second, a, b)
	a.End(t)
	b.Issues(t, 100, 10*time.Second)
	b.End(t)
	if n := len(all.Twice()); n > 0 {
		t.Errorf("%d ids twice", n)
	}
	forgets := open(t, Config{Addrs: []string{r.Addr}})
	forgets.sha = redis.NewScript(unsafe["incarnation"](source))
	if err := errors.Join(r.Kill(), r.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	if reply, err := forgets.Take(t.Context(), ask); err != nil || reply.Verdict != lease.Granted {
		t.Errorf("without the rule: %+v, %v", reply, err)
	}
}

// TestEmptied: nobody takes a number until every id of the pool that was lost
// lies in the past.
func TestEmptied(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 2)
	var all holders.Record
	j := jobAt(r.Addr, "p")
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	a.Issues(t, 200, 20*time.Second)
	b.Issues(t, 200, 20*time.Second)
	if _, err := r.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(holders.Brisk.Lead+holders.Brisk.Ahead+300) * time.Millisecond)
	before := all.Count()
	time.Sleep(500 * time.Millisecond)
	if n := all.Count() - before; n > 0 {
		t.Errorf("%d ids were issued without a pool", n)
	}
	holders.FillAgain(t, s, "p", 2)
	a.Issues(t, 200, 20*time.Second)
	b.Issues(t, 200, 20*time.Second)
	a.End(t)
	b.End(t)
	if again := all.Twice(); len(again) > 0 {
		t.Errorf("%d ids twice", len(again))
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	r := private(t)
	holders.Restart(t, open(t, Config{Addrs: []string{r.Addr}}), jobAt(r.Addr, "p"), func(away bool) error {
		if away {
			return r.Signal(syscall.SIGSTOP)
		}
		return r.Signal(syscall.SIGCONT)
	})
}

// TestDisposable puts data back by a dump from before, and takes the server away by stopping it.
func TestDisposable(t *testing.T) {
	t.Parallel()
	r := private(t)
	do := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	holders.Disposable(t, jobAt(r.Addr, "p"), holders.Place{
		Open: func() lease.Store { return open(t, Config{Addrs: []string{r.Addr}}).Disposable() },
		Control: func() lease.Store {
			return lease.Disposable(holders.SameServer(table{open(t, Config{Addrs: []string{r.Addr}})}))
		},
		Save: func() {
			_, err := r.Do("SAVE")
			do(err)
		},
		Restore: func() { do(r.Kill(), r.Start(t.Context())) },
	}, func(away bool) error {
		if away {
			return r.Signal(syscall.SIGSTOP)
		}
		return r.Signal(syscall.SIGCONT)
	})
}

// TestTable has the rules obeyed by the table that numbers which are used once are in.
func TestTable(t *testing.T) {
	t.Parallel()
	workers := func() lease.Store { return lease.FromTable(table{open(t, Config{})}) }
	holders.Contract(t, workers, "table-", 200)
}

// TestUnsent: only where no connection was made it is certain that Redis will
// never hear of a step.
func TestUnsent(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 1)
	ask := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
	if err := r.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err := s.Take(t.Context(), ask)
	if err == nil || errors.Is(err, lease.ErrUnsent) {
		t.Errorf("Redis is stopped, and will see it later: %v", err)
	}
	if err := errors.Join(r.Signal(syscall.SIGCONT), r.Kill()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, Config{Addrs: []string{r.Addr}}).Take(t.Context(), ask); !errors.Is(err, lease.ErrUnsent) {
		t.Errorf("Redis is gone: %v", err)
	}
	if _, err := open(t, Config{Addrs: []string{r.Addr}, Cluster: true}).Take(t.Context(), ask); err == nil || errors.Is(err, lease.ErrUnsent) {
		t.Errorf("the client of a cluster, which may have sent it before: %v", err)
	}
}

// TestDisposableCutOff: a server that has lost its replicas, and takes no writes then, does not confirm a
// number that is used once.
func TestDisposableCutOff(t *testing.T) {
	t.Parallel()
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}}).Disposable()
	shape := lease.DisposableShape(holders.Shape())
	if _, err := s.Add(t.Context(), lease.Fill{Pool: "p", Shape: shape, Fresh: true, Rules: holders.Brisk}); err != nil {
		t.Fatal(err)
	}
	ask := lease.Ask{Pool: "p", Shape: shape, Rules: holders.Brisk, Use: lease.Use{Token: "a"}, Numbers: 9}
	reply, err := s.Take(t.Context(), ask)
	if err != nil || reply.Verdict != lease.Granted {
		t.Fatal(reply, err)
	}
	ask.Worker, ask.Last = reply.Worker, reply.Start
	for replicas, want := range map[string]bool{"1": false, "0": true} {
		if _, err := r.Do("CONFIG", "SET", "min-replicas-to-write", replicas); err != nil {
			t.Fatal(err)
		}
		if reply, err := s.Renew(t.Context(), ask); (err == nil) != want {
			t.Errorf("with %s replicas to write to: %+v, %v", replicas, reply, err)
		}
	}
}
