package redis

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/servers"
)

// forward is an address that leads to one server and then to another, as a
// name or a virtual address does.
type forward struct {
	ln net.Listener
	wg sync.WaitGroup

	mu    sync.Mutex
	to    string
	conns map[net.Conn]struct{}
}

func newForward(t testing.TB, to string) *forward {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forward{ln: ln, to: to, conns: map[net.Conn]struct{}{}}
	f.wg.Go(f.serve)
	t.Cleanup(func() {
		_ = ln.Close()
		f.lead(to)
		f.wg.Wait()
	})
	return f
}

func (f *forward) serve() {
	for {
		client, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		server, err := net.Dial("tcp", f.to)
		if err != nil {
			f.mu.Unlock()
			_ = client.Close()
			continue
		}
		f.conns[client], f.conns[server] = struct{}{}, struct{}{}
		f.mu.Unlock()
		for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
			f.wg.Go(func() {
				_, _ = io.Copy(pair[0], pair[1]) // ends when either does
				_ = errors.Join(client.Close(), server.Close())
			})
		}
	}
}

// lead changes where the address leads, and cuts what is connected.
func (f *forward) lead(to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to = to
	for c := range f.conns {
		_ = c.Close()
	}
	clear(f.conns)
}

// TestStaleReplica promotes a replica that stopped following before the
// numbers were taken.
func TestStaleReplica(t *testing.T) {
	old, replica := private(t), private(t)
	f := newForward(t, old.Addr)
	s := open(t, Config{Addrs: []string{old.Addr}})
	briskPool(t, s, "p", 3)
	host, port, err := net.SplitHostPort(old.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := replica.Do("REPLICAOF", host, port); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if n, err := replica.Do("EXISTS", keys("p")[0]); err == nil && n == ":1" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	if _, err := replica.Do("REPLICAOF", "NO", "ONE"); err != nil {
		t.Fatal(err)
	}
	var all record
	j := job{Addr: f.ln.Addr().String(), Pool: "p"}
	a, b := start(t, j, &all), start(t, j, &all)
	a.issues(t, 200, 20*time.Second)
	b.issues(t, 200, 20*time.Second)
	a.signal(t, syscall.SIGSTOP)
	f.lead(replica.Addr)
	c := start(t, j, &all)
	c.issues(t, 200, 30*time.Second)
	a.signal(t, syscall.SIGCONT)
	a.issues(t, 200, 30*time.Second)
	b.issues(t, 200, 30*time.Second)
	for _, p := range []*proc{a, b, c} {
		p.end(t, false)
	}
	if again := all.twice(); len(again) > 0 {
		t.Errorf("%d ids twice", len(again))
	}
}

// chaosTime is how long TestChaos does harm; IDPROXY_CHAOS changes it.
const chaosTime = 20 * time.Second

// TestChaos does all kinds of harm to six processes on one pool.
func TestChaos(t *testing.T) {
	lasts := chaosTime
	if text := os.Getenv("IDPROXY_CHAOS"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := private(t)
	f := newForward(t, r.Addr)
	s := open(t, Config{Addrs: []string{r.Addr}})
	briskPool(t, s, "p", 10)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), server: r, store: s, done: map[string]int{}}
	c.job = job{Addr: f.ln.Addr().String(), Pool: "p", Dir: t.TempDir()}
	for range 6 {
		c.procs = append(c.procs, start(t, c.job, &c.all))
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		time.Sleep(time.Duration(100+c.random.IntN(500)) * time.Millisecond)
		c.harm(t, f)
	}
	f.lead(r.Addr)
	briskAgain(t, s, "p", 10)
	for _, p := range c.procs {
		p.signal(t, syscall.SIGCONT)
		p.issues(t, 100, 30*time.Second) // all come back by themselves
	}
	for _, p := range c.procs {
		p.end(t, false)
	}
	n := c.all.count()
	again := c.all.twice()
	t.Logf("%d ids, %v", n, c.done)
	if len(again) > 0 {
		t.Errorf("%d ids twice, the first is %d", len(again), again[0])
	}
	if n < 1000 {
		t.Errorf("%d ids are too few to say anything", n)
	}
}

type chaos struct {
	random *rand.Rand
	server *servers.Redis
	store  *Store
	job    job
	procs  []*proc
	all    record
	done   map[string]int
}

// harm does one thing to one process, to the server, or to the way between.
func (c *chaos) harm(t *testing.T, f *forward) {
	t.Helper()
	i := c.random.IntN(len(c.procs))
	what := "stop"
	switch n := c.random.IntN(20); {
	case n < 6:
		what = "kill"
		c.procs[i].end(t, true)
		c.procs[i] = start(t, c.job, &c.all)
	case n < 8:
		what = "restart"
		c.procs[i].signal(t, syscall.SIGCONT)
		c.procs[i].end(t, false)
		c.procs[i] = start(t, c.job, &c.all)
	case n < 12:
		c.procs[i].signal(t, syscall.SIGSTOP)
	case n < 16:
		what = "continue"
		for _, p := range c.procs {
			p.signal(t, syscall.SIGCONT)
		}
	case n < 17:
		what = "empty"
		c.must(t, c.server.Do, "FLUSHALL")
		briskAgain(t, c.store, "p", 10)
	case n < 18:
		what = "dump"
		c.must(t, c.server.Do, "SAVE")
	case n < 19:
		what = "server"
		if err := errors.Join(c.server.Kill(), c.server.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		briskAgain(t, c.store, "p", 10)
	default:
		what = "cut"
		f.lead("127.0.0.1:1")
		time.Sleep(time.Duration(c.random.IntN(1500)) * time.Millisecond)
		f.lead(c.server.Addr)
	}
	c.done[what]++
}

func (c *chaos) must(t *testing.T, do func(...string) (string, error), words ...string) {
	t.Helper()
	if _, err := do(words...); err != nil {
		t.Fatal(fmt.Errorf("%v: %w", words, err))
	}
}
