package redis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// TestStaleReplica promotes a replica that stopped following before the
// numbers were taken.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	old, replica := private(t), private(t)
	f := holders.NewForward(t, old.Addr)
	s := open(t, Config{Addrs: []string{old.Addr}})
	holders.Fill(t, s, "p", 3)
	host, port, err := net.SplitHostPort(old.Addr)
	assert.Must(t, err)
	assert.Of(replica.Do("REPLICAOF", host, port)).Must(t)
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if n, err := replica.Do("EXISTS", keys("p")[0]); err == nil && n == ":1" {
			break
		}
		assert.MustTrue(t, !time.Now().After(end), "the replica does not follow")
	}
	assert.Of(replica.Do("REPLICAOF", "NO", "ONE")).Must(t)
	var all holders.Record
	j := jobAt(f.Addr(), "p")
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	a.Issues(t, 200)
	b.Issues(t, 200)
	a.Signal(t, syscall.SIGSTOP)
	f.Lead(replica.Addr)
	c := holders.Start(t, j, &all)
	c.Issues(t, 200)
	a.Signal(t, syscall.SIGCONT)
	a.Issues(t, 200)
	b.Issues(t, 200)
	for _, p := range []*holders.Process{a, b, c} {
		p.End(t)
	}
	again := all.Twice()
	assert.True(t, len(again) == 0, "%d ids twice", len(again))
}

// chaosTime is how long TestChaos does harm; IDPROXY_CHAOS changes it.
const chaosTime = 12 * time.Second

// TestChaos does all kinds of harm to six processes on one pool.
func TestChaos(t *testing.T) {
	t.Parallel()
	lasts := chaosTime
	if text := os.Getenv("IDPROXY_CHAOS"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		assert.Must(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := private(t)
	f := holders.NewForward(t, r.Addr)
	s := open(t, Config{Addrs: []string{r.Addr}})
	holders.Fill(t, s, "p", 10)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), server: r, store: s, done: map[string]int{}}
	c.job = jobAt(f.Addr(), "p")
	c.job.Dir = t.TempDir()
	for range 6 {
		c.procs = append(c.procs, holders.Start(t, c.job, &c.all))
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(100+c.random.IntN(500)) * time.Millisecond)
		c.harm(t, f)
	}
	f.Lead(r.Addr)
	holders.FillAgain(t, s, "p", 10)
	for _, p := range c.procs {
		p.Signal(t, syscall.SIGCONT)
		p.Issues(t, 200) // all come back by themselves
	}
	for _, p := range c.procs {
		p.End(t)
	}
	n := c.all.Count()
	again := c.all.Twice()
	t.Logf("%d ids, %v", n, c.done)
	if len(again) > 0 {
		t.Errorf("%d ids twice, the first is %d", len(again), again[0])
	}
}

type chaos struct {
	random *rand.Rand
	server *servers.Redis
	store  *Store
	job    holders.Job
	procs  []*holders.Process
	all    holders.Record
	done   map[string]int
}

// harm does one thing to one process, to the server, or to the way between.
func (c *chaos) harm(t *testing.T, f *holders.Forward) {
	t.Helper()
	i := c.random.IntN(len(c.procs))
	what := "stop"
	switch n := c.random.IntN(20); {
	case n < 6:
		what = "kill"
		c.procs[i].Kill(t)
		c.procs[i] = holders.Start(t, c.job, &c.all)
	case n < 8:
		what = "restart"
		c.procs[i].Signal(t, syscall.SIGCONT)
		c.procs[i].End(t)
		c.procs[i] = holders.Start(t, c.job, &c.all)
	case n < 12:
		c.procs[i].Signal(t, syscall.SIGSTOP)
	case n < 16:
		what = "continue"
		for _, p := range c.procs {
			p.Signal(t, syscall.SIGCONT)
		}
	case n < 17:
		what = "empty"
		c.must(t, c.server.Do, "FLUSHALL")
		holders.FillAgain(t, c.store, "p", 10)
	case n < 18:
		what = "dump"
		c.must(t, c.server.Do, "SAVE")
	case n < 19:
		what = "server"
		assert.Must(t, errors.Join(c.server.Kill(), c.server.Start(t.Context())))
		holders.FillAgain(t, c.store, "p", 10)
	default:
		what = "cut"
		f.Lead("127.0.0.1:1")
		time.Sleep(time.Duration(c.random.IntN(1500)) * time.Millisecond)
		f.Lead(c.server.Addr)
	}
	c.done[what]++
}

func (c *chaos) must(t *testing.T, do func(...string) (string, error), words ...string) {
	t.Helper()
	if _, err := do(words...); err != nil {
		t.Fatal(fmt.Errorf("%v: %w", words, err))
	}
}
