//go:build long

package order

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"idproxy/integration/harness"
	"idproxy/integration/network"
	"idproxy/integration/servers"
)

// partition is what a host is cut from.
type partition struct {
	what    string
	etcd    bool
	proxies bool // the others
	clients bool
	oneWay  bool // it hears them all the same
	moves   bool // another proxy has to lead then
}

// partitions of the proxy that leads.
var partitions = []partition{
	{what: "the leader was cut from everybody", proxies: true, etcd: true, clients: true, moves: true},
	{what: "the leader was cut from etcd", etcd: true, moves: true},
	{what: "what the leader sends to etcd was lost", etcd: true, oneWay: true, moves: true},
	{what: "the leader was cut from all but its clients", proxies: true, etcd: true, moves: true},
	{what: "the leader was cut from the other proxies", proxies: true},
}

// cut has what a host and others send each other be lost, for as long as do takes and up to two seconds
// more.
func cut(t *testing.T, host *network.Host, others []*network.Host, oneWay bool, do func()) {
	t.Helper()
	for _, change := range []func(from, to *network.Host) error{(*network.Host).Lose, (*network.Host).Find} {
		for _, other := range others {
			if err := change(host, other); err != nil {
				t.Fatal(err)
			}
			if oneWay {
				continue
			}
			if err := change(other, host); err != nil {
				t.Fatal(err)
			}
		}
		if do != nil {
			do()
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			do = nil
		}
	}
}

// TestPartitions cuts the proxy that leads from others, and the member that leads etcd from the other
// members: the order holds, and ids come again.
func TestPartitions(t *testing.T) {
	const members, proxies = 3, 3
	net, err := network.New(members + proxies)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := net.Close(); err != nil {
			t.Error(err)
		}
	})
	etcds, err := servers.StartEtcdOn(t.Context(), net.Hosts[:members])
	f := &fleet{world: worldOf(t, etcds, err)}
	program, err := harness.Build(false)
	if err != nil {
		t.Fatal(err)
	}
	hosts := map[*node]*network.Host{}
	for _, h := range net.Hosts[members:] {
		n := &node{program: program, order: h.IP + ":7000", redis: h.IP + ":6399"}
		n.spec = harness.Spec{Config: f.configAt("127.0.0.1:1", n.order, n.redis, "false"), Dir: t.TempDir(), Netns: h.Netns}
		hosts[n], f.nodes, f.addrs = h, append(f.nodes, n), append(f.addrs, n.redis)
		n.begin(t)
	}
	r := newReceiver()
	r.patience = 2 * time.Second
	ctx, end := context.WithCancel(context.Background())
	wait := r.load(ctx, f.addrs, 12, 2000)
	defer func() { end(); wait(); r.report(t) }()
	came(t, r.happens())

	took := map[string][]time.Duration{}
	for began, which := time.Now(), 0; time.Since(began) < chaosTime() && !t.Failed(); which++ {
		lead := f.leader(t)
		if which%(len(partitions)+1) == len(partitions) {
			for i, m := range f.members {
				if m.Leads() {
					const what = "the member that leads etcd was cut from the others"
					others := append(append([]*network.Host{}, net.Hosts[:i]...), net.Hosts[i+1:members]...)
					cut(t, net.Hosts[i], others, false, func() { took[what] = append(took[what], came(t, r.happens())) })
					break
				}
			}
			continue
		}
		p := partitions[which%(len(partitions)+1)]
		var others []*network.Host
		if p.etcd {
			others = append(others, net.Hosts[:members]...)
		}
		for n, h := range hosts {
			if p.proxies && n != lead {
				others = append(others, h)
			}
		}
		if p.clients {
			others = append(others, net.Here)
		}
		cut(t, hosts[lead], others, p.oneWay, func() {
			at := time.Now()
			for p.moves && f.leader(t) == lead && time.Since(at) < time.Minute {
				time.Sleep(10 * time.Millisecond) // it gives ids for as long as it may
			}
			came(t, r.happens())
			took[p.what] = append(took[p.what], time.Since(at))
		})
	}
	for what, all := range took {
		times(t, what, all)
	}
	if len(took) <= len(partitions) {
		t.Errorf("%d kinds of partitions were made, want %d", len(took), len(partitions)+1)
	}
}
