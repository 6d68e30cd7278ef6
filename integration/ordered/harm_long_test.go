//go:build long

package ordered

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/network"
	"idproxy/integration/servers"
)

// ways are those of what is lost.
type ways int

const (
	both  ways = iota
	there      // what a host sends; it hears others all the same
)

// partition is what a host is cut from.
type partition struct {
	what    string
	etcd    bool
	proxies bool // the others
	clients bool
	ways    ways
	moves   bool // another proxy has to lead then
}

// partitions of the proxy that leads.
var partitions = []partition{
	{what: "the leader was cut from everybody", proxies: true, etcd: true, clients: true, moves: true},
	{what: "the leader was cut from etcd", etcd: true, moves: true},
	{what: "what the leader sends to etcd was lost", etcd: true, ways: there, moves: true},
	{what: "the leader was cut from all but its clients", proxies: true, etcd: true, moves: true},
	{what: "the leader was cut from the other proxies", proxies: true},
}

// cut has what a host and others send each other be lost, for as long as do takes and up to two seconds
// more.
func cut(t *testing.T, host *network.Host, others []*network.Host, ways ways, do func()) {
	t.Helper()
	for _, change := range []func(from, to *network.Host) error{(*network.Host).Lose, (*network.Host).Find} {
		for _, other := range others {
			assert.Must(t, change(host, other))
			if ways == both {
				assert.Must(t, change(other, host))
			}
		}
		if do != nil {
			do()
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			do = nil
		}
	}
}

// split is a fleet on hosts of their own.
type split struct {
	*fleet
	net   *network.Network
	hosts map[*node]*network.Host
}

// newSplit starts an etcd of three members and so many proxies, each on a host of its own.
func newSplit(t *testing.T, proxies int) *split {
	t.Helper()
	const members = 3
	net := assert.Of(network.New(members + proxies)).Must(t)
	t.Cleanup(func() { assert.NoError(t, net.Close()) })
	etcds, err := servers.StartEtcdOn(t.Context(), net.Hosts[:members])
	s := &split{&fleet{world: worldOf(t, etcds, err)}, net, map[*node]*network.Host{}}
	program := assert.Of(harness.BuildPlain()).Must(t)
	for _, h := range net.Hosts[members:] {
		n := &node{program: program, order: h.IP + ":7000", redis: h.IP + ":6399"}
		n.spec = harness.Spec{Config: s.configAt("127.0.0.1:1", n.order, n.redis, "false"), Dir: t.TempDir(), Netns: h.Netns}
		s.hosts[n], s.nodes, s.addrs = h, append(s.nodes, n), append(s.addrs, n.redis)
		n.begin(t)
	}
	return s
}

// part cuts the proxy that leads from others, until another one leads, if one has to, and ids come. It
// returns for how long none came.
func (s *split) part(t *testing.T, r *receiver, p partition) (took time.Duration) {
	lead := s.leader(t)
	var others []*network.Host
	if p.etcd {
		others = append(others, s.net.Hosts[:len(s.members)]...)
	}
	for n, h := range s.hosts {
		if p.proxies && n != lead {
			others = append(others, h)
		}
	}
	if p.clients {
		others = append(others, s.net.Here)
	}
	cut(t, s.hosts[lead], others, p.ways, func() {
		e := r.happens()
		for p.moves && s.leader(t) == lead && time.Since(e.at) < time.Minute {
			time.Sleep(10 * time.Millisecond) // it gives ids for as long as it may
		}
		e.took.Store(0)
		came(t, e)
		took = e.paused()
	})
	return took
}

// partEtcd cuts the member that leads etcd from the other members, and returns how long no ids came.
func (s *split) partEtcd(t *testing.T, r *receiver) (took time.Duration) {
	for i, m := range s.members {
		if m.Leads() {
			others := append(append([]*network.Host{}, s.net.Hosts[:i]...), s.net.Hosts[i+1:len(s.members)]...)
			cut(t, s.net.Hosts[i], others, both, func() { took = s.withoutLeader(t, r, r.happens(), m) })
			break
		}
	}
	return took
}

// TestHarm does all harm in turn: it cuts the proxy that leads from others, and the member that leads etcd
// from the other members, and does what TestChaos does to both. One receiver takes note of all ids: the
// order holds, none comes twice, and ids come again.
func TestHarm(t *testing.T) {
	s, r := newSplit(t, 3), newReceiver()
	r.patience = 2 * time.Second
	ctx, end := context.WithCancel(context.Background())
	wait := r.load(ctx, s.addrs, 12, 5000)
	defer func() { end(); wait(); r.report(t) }()
	came(t, r.happens())

	took := map[string][]time.Duration{}
	note := func(what string, d time.Duration) {
		if d > 0 {
			took[what] = append(took[what], d)
		}
	}
	for began, which := time.Now(), 0; time.Since(began) < chaosTime() && !t.Failed(); which++ {
		switch n := which % (len(partitions) + 1 + harms); {
		case n < len(partitions):
			note(partitions[n].what, s.part(t, r, partitions[n]))
		case n == len(partitions):
			note("the member that leads etcd was cut from the others", s.partEtcd(t, r))
		default:
			note(s.harm(t, r, n))
		}
	}
	for what, all := range took {
		times(t, what, all)
	}
	most := len(partitions) + harms
	assert.True(t, len(took) > most, "%d kinds of harm were done, want %d at least", len(took), most+1)
}
