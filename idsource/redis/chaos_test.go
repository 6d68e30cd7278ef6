package redis

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// TestStaleReplica promotes a replica that stopped following before the numbers were taken.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	old, replica := private(t), private(t)
	f := holders.NewForward(t, old.Addr)
	s := open(t, Config{Addrs: []string{old.Addr}})
	holders.Fill(t, s, "p", 3)
	host, port, err := net.SplitHostPort(old.Addr)
	assert.Must(t, err)
	assert.Of(replica.Do("REPLICAOF", host, port)).Must(t)
	follows(t, replica, keys("p")[0])
	assert.Of(replica.Do("REPLICAOF", "NO", "ONE")).Must(t)
	var all holders.Record
	j := jobAt(f.Addr(), "p")
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	holders.EachIssues(t, 200, a, b)
	a.Signal(t, syscall.SIGSTOP)
	f.Lead(replica.Addr)
	c := holders.Start(t, j, &all)
	c.Issues(t, 200)
	a.Signal(t, syscall.SIGCONT)
	holders.EachIssues(t, 200, a, b)
	holders.End(t, &all, a, b, c)
}

// follows waits until a replica has a key.
func follows(t *testing.T, replica *servers.Redis, key string) {
	t.Helper()
	assert.Until(t, "the replica follows", func() bool {
		n, err := replica.Do("EXISTS", key)
		return err == nil && n == ":1"
	})
}

// chaosTime is how long TestChaos does harm; IDPROXY_CHAOS changes it.
const chaosTime = 12 * time.Second

// TestChaos does all kinds of harm to six processes on one pool.
func TestChaos(t *testing.T) {
	t.Parallel()
	width.Wide(t, "it does harm for a while; each kind of harm has a test of its own")
	lasts := chaosTime
	if text := os.Getenv("IDPROXY_CHAOS"); text != "" {
		lasts = assert.Of(time.ParseDuration(text)).Must(t)
	}
	seed := uint64(1)
	if width.Long {
		seed = uint64(time.Now().UnixNano())
	}
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
	holders.End(t, &c.all, c.procs...)
	t.Logf("%d ids, %v", c.all.Count(), c.done)
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
		assert.Of(c.server.Do("FLUSHALL")).Must(t)
		holders.FillAgain(t, c.store, "p", 10)
	case n < 18:
		what = "dump"
		assert.Of(c.server.Do("SAVE")).Must(t)
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
