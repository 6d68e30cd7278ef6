package ordered

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// node is a proxy that is killed and started again.
type node struct {
	spec    harness.Spec
	program string
	proxy   *harness.Proxy
	order   string // where it is asked by others
	redis   string // where it is asked by clients
	faults  *harness.Faults
}

func (n *node) start(t testing.TB) {
	t.Helper()
	n.proxy = assert.Of(harness.Launch(context.Background(), n.program, n.spec)).Must(t)
}

// fleet is proxies of one world.
type fleet struct {
	*world
	nodes []*node
	addrs []string
}

// newFleet starts so many proxies, of a program that was built. change edits the configuration of each;
// addrs is where clients ask all of them.
func newFleet(t testing.TB, w *world, program string, proxies int, change func(config string, addrs []string) string) *fleet {
	t.Helper()
	f := &fleet{world: w}
	for range proxies {
		f.nodes = append(f.nodes, &node{program: program, order: harness.FreeAddr(t), redis: harness.FreeAddr(t)})
		f.addrs = append(f.addrs, f.nodes[len(f.nodes)-1].redis)
	}
	for _, n := range f.nodes {
		n.spec = harness.Spec{Config: change(w.configAt("127.0.0.1:1", n.order, n.redis, "false"), f.addrs), Dir: t.TempDir()}
		n.faults = harness.NewFaults(t, n.spec.Dir+"/faults") // a program without faults knows nothing of it
		n.spec.Env = []string{n.faults.Env()}
		n.begin(t)
	}
	return f
}

// begin starts the node for as long as the test runs.
func (n *node) begin(t testing.TB) {
	t.Helper()
	n.start(t)
	t.Cleanup(func() {
		_ = n.proxy.Signal(syscall.SIGCONT)
		_ = n.proxy.Kill()
		for _, word := range []string{"DATA RACE", "panic", "fatal error"} {
			assert.True(t, !strings.Contains(n.proxy.Log(), word), "idproxy logged %q:\n%s", word, n.proxy.LogTail(40))
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.order, n.proxy.LogTail(30))
		}
	})
}

// leader waits until a proxy leads, and returns it.
func (f *fleet) leader(t testing.TB) (lead *node) {
	t.Helper()
	assert.Until(t, "a proxy leads", func() bool {
		seen, err := f.store.Register().Look(t.Context())
		i := slices.IndexFunc(f.nodes, func(n *node) bool { return n.order == seen.Leader.Addr })
		if err != nil || i < 0 {
			return false
		}
		lead = f.nodes[i]
		return true
	})
	return lead
}

// came waits until ids came again behind an event.
func came(t *testing.T, e *event) time.Duration {
	t.Helper()
	assert.Until(t, "ids come", func() bool { return e.took.Load() > 0 })
	return time.Duration(e.took.Load())
}

// etcdLeader is the member that leads; nil: none does at the moment.
func (f *fleet) etcdLeader() *servers.Etcd {
	if i := slices.IndexFunc(f.members, (*servers.Etcd).Leads); i >= 0 {
		return f.members[i]
	}
	return nil
}

// harms is how many kinds of harm there are.
const harms = 5

// harm does something to the fleet, and returns what and how long no ids came.
func (f *fleet) harm(t *testing.T, r *receiver, which int) (what string, took time.Duration) {
	t.Helper()
	n := f.leader(t)
	must := func(err error) { assert.Must(t, err) }
	switch which % harms {
	case 0:
		must(n.proxy.Kill())
		took = came(t, r.happens())
		n.start(t)
		return "kill -9", took
	case 1:
		must(n.proxy.Signal(syscall.SIGSTOP))
		took = came(t, r.happens())
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		must(n.proxy.Signal(syscall.SIGCONT))
		return "SIGSTOP", took
	case 2: // it goes on at about the time when another one takes the lead
		must(n.proxy.Signal(syscall.SIGSTOP))
		e := r.happens()
		time.Sleep(900*time.Millisecond + time.Duration(rand.IntN(600))*time.Millisecond)
		must(n.proxy.Signal(syscall.SIGCONT))
		return "a SIGSTOP of 0.9 to 1.5 s", came(t, e)
	case 3:
		e := r.happens()
		must(n.proxy.Stop(time.Minute))
		took = came(t, e)
		n.start(t)
		return "a clean stop", took
	}
	m := f.etcdLeader()
	if m == nil || len(f.members) == 1 {
		return "", 0
	}
	e := r.happens()
	if rand.IntN(2) == 0 {
		must(m.Kill())
		took = f.withoutLeader(t, r, e, m)
		must(m.Start(context.Background()))
		return "a kill of etcd's leader", took
	}
	must(m.Signal(syscall.SIGSTOP))
	took = f.withoutLeader(t, r, e, m)
	must(m.Signal(syscall.SIGCONT))
	return "a SIGSTOP of etcd's leader", took
}

// withoutLeader waits until another member leads etcd than the one to which an event happened, and ids come,
// and returns for how long none came. The proxy that leads has some for a second.
func (f *fleet) withoutLeader(t *testing.T, r *receiver, e *event, gone *servers.Etcd) time.Duration {
	t.Helper()
	others := slices.DeleteFunc(slices.Clone(f.members), func(m *servers.Etcd) bool { return m == gone })
	assert.Until(t, "another member of etcd leads", func() bool { return slices.ContainsFunc(others, (*servers.Etcd).Leads) })
	time.Sleep(time.Second) // by now the right of the proxy that led has ended, or was renewed
	e.took.Store(0)
	came(t, e)
	return e.paused()
}

// chaosTime is how long a fleet is harmed: in a long run as IDPROXY_CHAOS says.
func chaosTime() time.Duration {
	if !width.Long {
		return width.Of(4*time.Second, 12*time.Second)
	}
	if d, err := time.ParseDuration(os.Getenv("IDPROXY_CHAOS")); err == nil {
		return d
	}
	return 3 * time.Minute
}

// TestChaos harms who leads, and the store, while clients ask all proxies: ids ascend for one receiver,
// and none comes twice.
func TestChaos(t *testing.T) {
	last := chaosTime()
	program := assert.Of(harness.Build()).Must(t)
	w := newWorld(t, width.Of(1, 3))
	f := newFleet(t, w, program, 3, func(config string, _ []string) string { return config })
	r := newReceiver()
	ctx, end := context.WithCancel(context.Background())
	wait := r.load(ctx, f.addrs, 8, int64(width.Of(20, 2000)))
	defer func() { end(); wait(); r.report(t) }()
	came(t, r.happens())
	took := map[string][]time.Duration{}
	which := 0
	for began := time.Now(); time.Since(began) < last && !t.Failed(); which++ {
		what, d := f.harm(t, r, which)
		if what != "" {
			took[what] = append(took[what], d)
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
	}
	for what, all := range took {
		times(t, what, all)
	}
}

// TestReceiverSees is the control of what the receiver finds: proxies with ranges of their own break the
// order, and so does one whose clock is set back while it is stopped.
func TestReceiverSees(t *testing.T) {
	t.Run("ranges of each proxy", func(t *testing.T) {
		program := assert.Of(harness.Build()).Must(t)
		f := newFleet(t, newWorld(t, 1), program, 2, func(config string, _ []string) string {
			config = strings.ReplaceAll(config, "order: global, ", "")
			return config[:strings.Index(config, "\norder:")] + config[strings.Index(config, "\nids:"):]
		})
		broken(t, f, func(*receiver) {})
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		width.InLong(t, "it builds a program whose clock can be set")
		program := assert.Of(harness.BuildFaults()).Must(t)
		f := newFleet(t, newWorld(t, 1), program, 2, func(config string, _ []string) string { return config })
		back := map[*node]time.Duration{}
		broken(t, f, func(r *receiver) {
			must := func(err error) { assert.Must(t, err) }
			n, began := f.leader(t), time.Now()
			must(n.proxy.Signal(syscall.SIGSTOP))
			assert.Until(t, "another proxy leads", func() bool { return f.leader(t) != n })
			came(t, r.happens())
			must(f.members[0].Signal(syscall.SIGSTOP)) // it does not hear of the other one
			back[n] += time.Since(began)
			n.faults.Mono(-back[n]) // as if it had not been stopped
			must(n.proxy.Signal(syscall.SIGCONT))
			for end := time.Now().Add(time.Second); r.wrong.Load() == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
			must(f.members[0].Signal(syscall.SIGCONT))
		})
	})
}

// broken harms a fleet until the order is broken. No id comes twice all the same.
func broken(t *testing.T, f *fleet, harm func(r *receiver)) {
	t.Helper()
	r := newReceiver()
	ctx, end := context.WithTimeoutCause(context.Background(), time.Minute, errors.New("the order was not broken for a minute"))
	wait := r.load(ctx, f.addrs, 8, 5)
	for r.wrong.Load() == 0 && ctx.Err() == nil {
		harm(r)
		time.Sleep(10 * time.Millisecond)
	}
	err := context.Cause(ctx)
	end()
	wait()
	assert.NoError(t, err)
	assert.LessOrEqual(t, "ids came twice", r.twice.Load(), 0)
	t.Logf("%d of %d answers out of order", r.wrong.Load(), r.calls.Load())
}
