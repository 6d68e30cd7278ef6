package redis

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// steady are rules by which holders survive the change to another master.
var steady = lease.Rules{Heartbeat: 300, Gap: 60_000, Lead: 60_300, Ahead: 200, Loss: 300, Skew: 200, Reclaim: 121_000}

// TestSentinel kills the master of a group. Holders that may be without a store
// for long enough go on, others stop and come back; a number that is in use is
// given to nobody.
func TestSentinel(t *testing.T) {
	t.Parallel()
	g, err := servers.StartRedisGroup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := Config{Addrs: g.Addrs(), Master: g.Name}
	s := open(t, c)
	holders.FillBy(t, s, steady, lease.Fill{Pool: "steady", Numbers: 2, Fresh: true})
	holders.Fill(t, s, "brisk", 2)
	var all, brisk holders.Record // ids of two pools are not compared
	slow, quick := jobOn(c, "steady"), jobOn(c, "brisk")
	slow.Rules = steady
	goesOn := []*holders.Process{holders.Start(t, slow, &all), holders.Start(t, slow, &all)}
	comesBack := []*holders.Process{holders.Start(t, quick, &brisk), holders.Start(t, quick, &brisk)}
	for _, p := range append(goesOn, comesBack...) {
		p.Issues(t, 200)
	}
	if _, err := g.Master.Do("SET", "last", "1"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) { // the replica has all
		if n, err := g.Replica.Do("EXISTS", "last"); err == nil && n == ":1" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the replica does not follow")
		}
	}
	// No other server becomes the master before the holders that cannot go on have stopped.
	if err := g.Replica.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := g.Master.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, p := range comesBack {
		p.Says(t, "lease of the worker number ended")
	}
	if err := g.Replica.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	mastered(t, s)
	ask := lease.Ask{Pool: "steady", Shape: holders.Shape(), Rules: steady, Use: lease.Use{Token: "other"}, Reclaim: true}
	if reply, err := s.Take(t.Context(), ask); err != nil || reply.Verdict != lease.Wait {
		t.Errorf("a number after another server became the master: %+v, %v; want a wait", reply, err)
	}
	for _, p := range append(goesOn, comesBack...) {
		p.Issues(t, 500)
	}
	for _, p := range goesOn {
		if n := strings.Count(p.Log(), "worker number taken"); n != 1 {
			t.Errorf("a holder that could go on took %d numbers\n%s", n, p.Log())
		}
		p.End(t)
	}
	for _, p := range comesBack {
		p.End(t)
	}
	if again := len(all.Twice()) + len(brisk.Twice()); again > 0 {
		t.Errorf("%d ids twice", again)
	}
}

// mastered waits until the group has a master again.
func mastered(t *testing.T, s *Store) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, err := s.client.Set(ctx, "alive", 1, 0).Result()
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the group has no master: %v", err)
		}
	}
}

// TestCluster moves a pool to another node of a cluster while it is used.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster, err := servers.StartRedisCluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	key := keys("p")[0]
	from, err := cluster.Owner(key)
	if err != nil {
		t.Fatal(err)
	}
	to := cluster.Nodes[0]
	if to == from {
		to = cluster.Nodes[1]
	}
	c := Config{Addrs: []string{to.Addr}, Cluster: true} // a node that has none of the pool's keys
	s := open(t, c)
	holders.FillBy(t, s, steady, lease.Fill{Pool: "p", Numbers: 2, Fresh: true}) // none is a spare one
	var all holders.Record
	j := jobOn(c, "p")
	j.Rules = steady
	a, b := holders.Start(t, j, &all), holders.Start(t, j, &all)
	a.Issues(t, 200)
	b.Issues(t, 200)
	moveSlot(t, cluster, from, to, keys("p"))
	if now, err := cluster.Owner(key); err != nil || now != to {
		t.Fatalf("the pool is on %v, %v; want it moved", now, err)
	}
	before, err := s.List(t.Context(), "p")
	if err != nil {
		t.Fatal(err)
	}
	renewed := func() (n int) {
		after, err := s.List(t.Context(), "p")
		if err != nil {
			t.Fatal(err)
		}
		for w, r := range after.Records {
			if r.State == lease.Held && r.Beat > before.Records[w].Beat {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(time.Minute); renewed() < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d numbers were renewed on the other node, want 2", renewed())
		}
	}
	for _, p := range []*holders.Process{a, b} {
		p.Issues(t, 500)
		if n := strings.Count(p.Log(), "worker number taken"); n != 1 {
			t.Errorf("a holder took %d numbers\n%s", n, p.Log())
		}
		p.End(t)
	}
	if again := len(all.Twice()); again > 0 {
		t.Errorf("%d ids twice", again)
	}
}

// moveSlot moves keys, all of one slot, and the slot from one node to another.
func moveSlot(t *testing.T, c *servers.RedisCluster, from, to *servers.Redis, keys []string) {
	t.Helper()
	do := func(r *servers.Redis, words ...string) string {
		t.Helper()
		answer, err := r.Do(words...)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	slot := strings.TrimPrefix(do(from, "CLUSTER", "KEYSLOT", keys[0]), ":")
	for _, key := range keys {
		if other := strings.TrimPrefix(do(from, "CLUSTER", "KEYSLOT", key), ":"); other != slot {
			t.Errorf("keys of one pool have slots %s and %s", slot, other)
		}
	}
	id := func(r *servers.Redis) string { return do(r, "CLUSTER", "MYID") }
	host, port, err := net.SplitHostPort(to.Addr)
	if err != nil {
		t.Fatal(err)
	}
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	do(from, append([]string{"MIGRATE", host, port, `""`, "0", "5000", "KEYS"}, keys...)...)
	for _, r := range append([]*servers.Redis{to}, c.Nodes...) {
		do(r, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
}
