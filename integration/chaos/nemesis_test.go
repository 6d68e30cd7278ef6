package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// apart is how far disasters of Redis are from each other: two within reclaim are not covered.
const apart = reclaim + 2*time.Second

// nemesis harms a world. Only the goroutine of the test does.
type nemesis struct {
	*world
	t      *testing.T
	random *rand.Rand
	done   map[string]int
	began  time.Time
	events []string
	later  []due

	redisUp   bool
	redisAt   time.Time     // when the next disaster of Redis may be
	base      time.Duration // by which the clocks of both are ahead
	following bool          // the other Redis follows the master
	starting  map[string]chan error
	stopped   [members]int // how often each of etcd is
	untold    int          // processes that have yet to take the newest configuration
}

// due is something to do, later.
type due struct {
	at time.Time
	do func()
}

func newNemesis(t *testing.T, w *world, seed uint64) *nemesis {
	return &nemesis{
		world: w, t: t, random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}, began: time.Now(),
		redisUp: true, redisAt: time.Now().Add(apart / 2), starting: map[string]chan error{},
	}
}

// rage does harm for a while, and then what is still due.
func (n *nemesis) rage(lasts time.Duration) {
	n.t.Helper()
	for end := n.began.Add(lasts); time.Now().Before(end); {
		n.pause(time.Duration(50+n.random.IntN(300)) * time.Millisecond)
		n.harm()
	}
	for len(n.later) > 0 {
		n.pause(10 * time.Millisecond)
	}
	for name := range n.starting {
		n.must("start "+name, <-n.starting[name])
		delete(n.starting, name)
	}
}

// pause does what is due in the meantime.
func (n *nemesis) pause(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		slices.SortStableFunc(n.later, func(a, b due) int { return a.at.Compare(b.at) })
		for len(n.later) > 0 && time.Now().After(n.later[0].at) {
			do := n.later[0].do
			n.later = n.later[1:]
			do()
		}
	}
}

func (n *nemesis) in(d time.Duration, do func()) {
	n.later = append(n.later, due{time.Now().Add(d), do})
}

// upTo is a random time.
func (n *nemesis) upTo(d time.Duration) time.Duration {
	return time.Duration(n.random.Int64N(int64(d)))
}

// did counts and notes what was done.
func (n *nemesis) did(what, format string, args ...any) {
	n.done[what]++
	n.events = append(n.events, fmt.Sprintf("%8dms %s %s", time.Since(n.began).Milliseconds(), what, fmt.Sprintf(format, args...)))
}

// timeline is what was done, for a failure.
func (n *nemesis) timeline() string { return strings.Join(n.events, "\n") }

func pick[T any](n *nemesis, from ...T) T { return from[n.random.IntN(len(from))] }

// harm does one thing.
func (n *nemesis) harm() {
	one := pick(n, n.nodes...)
	if time.Now().After(n.redisAt) && n.random.IntN(4) == 0 {
		n.redisDisaster()
		return
	}
	switch r := n.random.IntN(100); {
	case r < 14:
		n.restart(one)
	case r < 20:
		n.leap(one)
	case r < 35:
		d := pick(n, 300*time.Millisecond, time.Second, reclaim+time.Second, reclaim+3*time.Second)
		n.did("stop", "process %d for %v", one.number, d)
		one.signal(n.t, syscall.SIGSTOP)
		n.in(d, func() { one.signal(n.t, syscall.SIGCONT) })
	case r < 55:
		n.clock(one)
	case r < 59:
		n.server(pick(n, "app", "second", "keeps"))
	case r < 64:
		n.cluster()
	case r < 72:
		n.storeClock(pick(n, n.clocks...))
	case r < 74:
		n.redisClocks()
	case r < 79 && n.redisUp:
		n.dump()
	case r < 86:
		n.change()
	default:
		n.network(one)
	}
}

// dump has Redis write what a restart comes back with. While it writes that for another server it
// writes no other.
func (n *nemesis) dump() {
	answer, err := n.redis[n.master].Do("SAVE")
	if err != nil && strings.Contains(answer+err.Error(), "save already in progress") {
		return
	}
	n.must(answer, err)
	n.did("dump", "")
}

func (n *nemesis) must(answer string, err error) {
	n.t.Helper()
	assert.Must(n.t, err, answer)
}

// restart ends a process and starts it, now and then as on another host.
func (n *nemesis) restart(one *node) {
	how := pick(n, "kill", "kill", "kill", "end")
	if how == "kill" {
		one.kill(n.t)
	} else {
		one.signal(n.t, syscall.SIGCONT)
		_ = one.proc.Stop(2 * time.Second) // it says so when it cannot give ids back
	}
	fresh := n.random.IntN(4) == 0
	if fresh {
		assert.Must(n.t, os.RemoveAll(filepath.Join(one.dir, "idproxy-leases")))
	}
	n.did(how, "process %d, without its lease: %t", one.number, fresh)
	one.start(n.t)
}

// clock moves a clock, for a while or until it is moved again.
func (n *nemesis) clock(one *node) {
	by := pick(n, 5*time.Millisecond, 50*time.Millisecond, time.Second, 3*time.Second, 10*time.Second, time.Hour)
	if n.random.IntN(2) == 0 {
		n.monotonic(one, by)
		return
	}
	if by == time.Hour && time.Since(one.lost) < 6*time.Second {
		by = 3 * time.Second // an hour would be believed, and would have to pass
	}
	by *= pick(n, time.Duration(1), -1)
	n.did("wall clock", "process %d by %v", one.number, by)
	one.faults.Wall(by)
	if by.Abs() == time.Hour { // not so long that it is believed, or an hour would have to pass
		time.Sleep(n.upTo(500 * time.Millisecond))
		one.faults.Wall(0)
		return
	}
	if n.random.IntN(3) > 0 {
		n.in(n.upTo(4*time.Second), func() { one.faults.Wall(0) })
	}
}

// monotonic moves the clock that nobody can set: ahead for good, as when a machine sleeps, or back
// and forth.
func (n *nemesis) monotonic(one *node, by time.Duration) {
	if by == time.Hour {
		n.did("monotonic clock", "process %d by %v for good", one.number, by)
		one.mono += by
		one.lost = time.Now()
		one.faults.Mono(one.mono)
		return
	}
	by *= pick(n, time.Duration(1), -1)
	n.did("monotonic clock", "process %d by %v", one.number, by)
	one.faults.Mono(one.mono + by)
	n.in(n.upTo(4*time.Second), func() { one.faults.Mono(one.mono) })
}

// leap has both clocks run ahead of the fence, kills the process while they do, and starts it with
// the clocks put right.
func (n *nemesis) leap(one *node) {
	wall, mono := 8*time.Second+n.upTo(4*time.Second), 500*time.Millisecond+n.upTo(pick(n, 100*time.Millisecond, 2*time.Second))
	n.did("leap", "process %d by %v and %v", one.number, wall, mono)
	soon := time.Now().Add(100 * time.Millisecond)
	one.leap(n.t, wall, mono, func() bool { return time.Now().After(soon) })
}

// network has ways to stores fail.
func (n *nemesis) network(one *node) {
	s := pick(n, "main", "first", "second", "raft", "raft", etcdWay(n.random.IntN(members)), "leases", "moved")
	var ways []*relay
	var what string
	switch n.random.IntN(4) {
	case 0:
		what = fmt.Sprintf("process %d to all", one.number)
		ways = one.ways("")
	case 1:
		what = "all to " + s
		for _, each := range n.nodes {
			ways = append(ways, each.ways(s)...)
		}
	default:
		what = fmt.Sprintf("process %d to %s", one.number, s)
		ways = one.ways(s)
	}
	m := pick(n, hold, hold, dropRequests, dropReplies, halfOpen, refuse)
	d, cut := n.upTo(pick(n, time.Second, 3*time.Second, 6*time.Second)), n.random.IntN(2) == 0
	n.did(m.String(), "%s for %v", what, d)
	for _, w := range ways {
		w.set(m)
	}
	n.in(d, func() {
		for _, w := range ways {
			if cut {
				w.set(refuse)
			}
			w.set(pass)
		}
	})
}

// server kills a server of segments, of rows or of worker numbers that loses nothing.
func (n *nemesis) server(name string) {
	if !n.started(name) {
		return
	}
	n.did("kill "+name, "")
	n.killServer(name, map[string]killable{"app": n.app, "second": n.second, "keeps": n.keeps}[name])
}

// started says whether a server is up again that was killed.
func (n *nemesis) started(name string) bool {
	up, was := n.starting[name]
	if !was {
		return true
	}
	select {
	case err := <-up:
		delete(n.starting, name)
		n.must("start "+name, err)
		return true
	default:
		return false
	}
}

// redisDisaster has Redis lose what it knows, in one of several ways.
func (n *nemesis) redisDisaster() {
	master := n.redis[n.master]
	switch pick(n, "empty", "kill", "follow", "promote", "promote") {
	case "empty":
		n.did("empty redis", "")
		n.must(master.Do("FLUSHALL"))
		n.in(n.upTo(2*time.Second), func() { n.addNumbers(n.t, "leased_id", numbers) })
	case "kill":
		n.did("kill redis", "")
		n.must("kill", master.Kill())
		n.redisUp = false
		n.in(n.upTo(2*time.Second), func() {
			n.must("start", master.Start(n.t.Context()))
			n.redisUp = true
			n.addNumbers(n.t, "leased_id", numbers)
		})
	case "follow":
		n.follow()
		return
	case "promote":
		if !n.following {
			n.follow()
		}
		n.promote()
	}
	n.redisAt = time.Now().Add(apart)
}

// follow has the other Redis copy the master.
func (n *nemesis) follow() {
	master, other := n.redis[n.master], n.redis[1-n.master]
	host, port, _ := strings.Cut(master.Addr, ":")
	mark := fmt.Sprintf("mark%d", len(n.events))
	n.must(master.Do("SET", mark, "1"))
	n.must(other.Do("REPLICAOF", host, port))
	for end := time.Now().Add(time.Minute); ; n.pause(20 * time.Millisecond) {
		if answer, err := other.Do("EXISTS", mark); err == nil && answer == ":1" {
			break
		}
		assert.MustTrue(n.t, !time.Now().After(end), "the replica does not follow:\n%s", other.Log())
	}
	n.following = true
	n.did("follow", "")
}

// promote makes the replica the master; it has stopped following before, and
// not all processes come to it at once.
func (n *nemesis) promote() {
	other := n.redis[1-n.master]
	n.must(other.Do("REPLICAOF", "NO", "ONE"))
	n.following = false
	lag := n.upTo(3 * time.Second)
	n.did("promote", "%v behind", lag)
	n.pause(lag)
	n.master = 1 - n.master
	for _, one := range n.nodes {
		n.in(n.upTo(1500*time.Millisecond), func() { one.relays["leases"].lead(other.Addr) })
	}
	n.in(2*time.Second, func() { n.addNumbers(n.t, "leased_id", numbers) })
}

// etcdMember is what a member of etcd's cluster is called.
func etcdMember(i int) string { return fmt.Sprintf("etcd%d", i) }

// etcdWay is what a process calls its way to it.
func etcdWay(i int) string { return fmt.Sprintf("raft%d", i) }

// cluster harms etcd's: a member or the leader, for itself or with another one, which leaves no
// majority.
func (n *nemesis) cluster() {
	first := n.random.IntN(members)
	who := "member"
	if n.random.IntN(2) == 0 {
		if i := n.leader(); i >= 0 {
			first, who = i, "leader"
		}
	}
	harmed := []int{first}
	if n.random.IntN(4) == 0 {
		harmed, who = append(harmed, (first+1+n.random.IntN(members-1))%members), who+" and another"
	}
	if n.random.IntN(3) == 0 {
		d := n.upTo(4 * time.Second)
		n.did("stop etcd "+who, "%v for %v", harmed, d)
		for _, i := range harmed {
			n.must("stop", n.etcd[i].Signal(syscall.SIGSTOP))
			n.stopped[i]++
			n.in(d, func() {
				n.stopped[i]--
				n.must("go on", n.etcd[i].Signal(syscall.SIGCONT))
			})
		}
		return
	}
	n.did("kill etcd "+who, "%v", harmed)
	for _, i := range harmed {
		if n.started(etcdMember(i)) {
			n.killServer(etcdMember(i), n.etcd[i])
		}
	}
}

// leader is the number of the member that leads; -1: none does that could be asked.
func (n *nemesis) leader() int {
	for i, e := range n.etcd {
		if n.stopped[i] == 0 && n.started(etcdMember(i)) && e.Leads() {
			return i
		}
	}
	return -1
}

// killable is a server that can be killed, and started on what it has kept.
type killable interface {
	Kill() error
	Start(ctx context.Context) error
}

var (
	_ killable = (*servers.Etcd)(nil)
	_ killable = (*servers.Redis)(nil)
	_ killable = (*servers.Server)(nil)
)

// killServer kills a server that loses nothing, and starts it again up to two seconds later.
func (n *nemesis) killServer(name string, s killable) {
	n.must("kill", s.Kill())
	up := make(chan error, 1)
	n.starting[name] = up
	n.in(n.upTo(2*time.Second), func() { go func() { up <- s.Start(n.t.Context()) }() })
}
