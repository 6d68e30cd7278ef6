package redis

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/lease"
	"idproxy/integration/servers"
)

const reclaimTime = 2 * time.Second

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

// zombie stops a holder until another has its number, then lets it go on, and
// returns how many ids came twice.
func zombie(t *testing.T, pool, rule string) int {
	t.Helper()
	s := open(t, Config{})
	briskPool(t, s, pool, 1)
	var all record
	j := job{Addr: shared.Addr, Pool: pool, Unsafe: rule}
	many := j
	many.Threads = 16 // some of them look at the clock before the one that renews
	a := start(t, many, &all)
	a.issues(t, 100, 20*time.Second)
	a.signal(t, syscall.SIGSTOP)
	many.Threads = 4
	b := start(t, many, &all)
	b.issues(t, 2000, 30*time.Second)
	a.signal(t, syscall.SIGCONT)
	b.issues(t, 500, 10*time.Second)
	a.end(t, false)
	b.end(t, false)
	return len(all.twice())
}

func TestZombie(t *testing.T) {
	if n := zombie(t, "zombie", ""); n > 0 {
		t.Errorf("%d ids twice", n)
	}
	for try := range 8 {
		if zombie(t, "zombie-without-fence-"+string('0'+rune(try)), "fence") > 0 {
			return
		}
	}
	t.Error("a holder that obeys no fence is not noticed")
}

// TestRedisBackWithOldDump has Redis come back with a dump from before its
// number was taken, as one that keeps no log does.
func TestRedisBackWithOldDump(t *testing.T) {
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	briskPool(t, s, "p", 1)
	if _, err := r.Do("SAVE"); err != nil {
		t.Fatal(err)
	}
	var all record
	j := job{Addr: r.Addr, Pool: "p"}
	a := start(t, j, &all)
	a.issues(t, 200, 20*time.Second)
	a.signal(t, syscall.SIGSTOP)
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask := lease.Ask{Pool: "p", Shape: childShape(), Rules: brisk, Use: lease.Use{Token: "b"}}
	if reply, err := s.Take(t.Context(), ask); err != nil || reply.Verdict != lease.Wait {
		t.Errorf("a number that is in use, and was forgotten: %+v, %v", reply, err)
	}
	a.signal(t, syscall.SIGCONT)
	b := start(t, j, &all)
	a.either(t, b, 1000, 30*time.Second)
	a.end(t, false)
	b.issues(t, 100, 10*time.Second)
	b.end(t, false)
	if n := len(all.twice()); n > 0 {
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
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	briskPool(t, s, "p", 2)
	var all record
	j := job{Addr: r.Addr, Pool: "p"}
	a, b := start(t, j, &all), start(t, j, &all)
	a.issues(t, 200, 20*time.Second)
	b.issues(t, 200, 20*time.Second)
	if _, err := r.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(brisk.Lead+brisk.Ahead+300) * time.Millisecond)
	before := all.count()
	time.Sleep(500 * time.Millisecond)
	if n := all.count() - before; n > 0 {
		t.Errorf("%d ids were issued without a pool", n)
	}
	briskAgain(t, s, "p", 2)
	a.issues(t, 200, 20*time.Second)
	b.issues(t, 200, 20*time.Second)
	a.end(t, false)
	b.end(t, false)
	if again := all.twice(); len(again) > 0 {
		t.Errorf("%d ids twice", len(again))
	}
}

// TestRestart: a process that was killed has its number again at once, also
// while Redis is away, and from where the last one may have come to.
func TestRestart(t *testing.T) {
	r := private(t)
	s := open(t, Config{Addrs: []string{r.Addr}})
	briskPool(t, s, "p", 1)
	var all record
	j := job{Addr: r.Addr, Pool: "p", Dir: t.TempDir()}
	for range 3 {
		a := start(t, j, &all)
		a.issues(t, 200, 20*time.Second)
		a.end(t, true)
	}
	if l, err := s.List(t.Context(), "p"); err != nil || l.Records[0].State != 2 {
		t.Errorf("the number is %v, %v; want it held", l.Records[0], err)
	}
	a := start(t, j, &all)
	a.issues(t, 200, time.Second+reclaimTime/2) // no wait for the silence of the one before
	if err := r.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.end(t, true)
	b := start(t, j, &all)
	b.issues(t, 32, 2*time.Second)
	if err := r.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.issues(t, 200, 20*time.Second)
	b.end(t, false)
	if again := all.twice(); len(again) > 0 {
		t.Errorf("%d ids twice", len(again))
	}
}
