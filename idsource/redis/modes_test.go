package redis

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// steady are rules by which holders survive the change to another master.
var steady = lease.Rules{Heartbeat: 300, Gap: 60_000, Lead: 60_300, Ahead: 200, Loss: 300, Skew: 200, Reclaim: 121_000}

// TestSentinel kills the master of a group. Holders that may be without a store for long enough go
// on, others stop and come back; a number that is in use is given to nobody.
func TestSentinel(t *testing.T) {
	t.Parallel()
	g := assert.Of(servers.StartRedisGroup(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, g.Stop()) })
	c := Config{Addrs: g.Addrs(), Master: g.Name}
	s := open(t, c)
	holders.FillBy(t, s, steady, lease.Fill{Pool: "steady", Numbers: 2, Fresh: true})
	holders.Fill(t, s, "brisk", 2)
	var all, brisk holders.Record // ids of two pools are not compared
	slow, quick := jobOn(c, "steady"), jobOn(c, "brisk")
	slow.Rules = steady
	goesOn := []*holders.Process{holders.Start(t, slow, &all), holders.Start(t, slow, &all)}
	comesBack := []*holders.Process{holders.Start(t, quick, &brisk), holders.Start(t, quick, &brisk)}
	holders.EachIssues(t, 200, append(goesOn, comesBack...)...)
	assert.Of(g.Master.Do("SET", "last", "1")).Must(t)
	follows(t, g.Replica, "last") // it has all then
	// No other server becomes the master before the holders that cannot go on have stopped.
	assert.Must(t, g.Replica.Signal(syscall.SIGSTOP))
	assert.Must(t, g.Master.Kill())
	for _, p := range comesBack {
		p.Says(t, "lease of the worker number ended")
	}
	assert.Must(t, g.Replica.Signal(syscall.SIGCONT))
	mastered(t, s)
	ask := lease.Ask{Pool: "steady", Shape: holders.Shape(), Rules: steady, Use: lease.Use{Token: "other"}, Reclaim: true}
	reply, err := s.Take(t.Context(), ask)
	assert.True(t, err == nil && reply.Verdict == lease.Wait, "a number after another server became the master: %+v, %v; want a wait", reply, err)
	holders.EachIssues(t, 500, append(goesOn, comesBack...)...)
	keptTheirs(t, goesOn...)
	holders.End(t, &all, goesOn...)
	holders.End(t, &brisk, comesBack...)
}

// keptTheirs: each holder has the number that it took first.
func keptTheirs(t *testing.T, all ...*holders.Process) {
	t.Helper()
	for _, p := range all {
		assert.Equal(t, "numbers taken, by the log\n"+p.Log(), strings.Count(p.Log(), "worker number taken"), 1)
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
		assert.MustTrue(t, !time.Now().After(end), "the group has no master: %v", err)
	}
}

// TestCluster moves a pool to another node of a cluster while it is used.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := assert.Of(servers.StartRedisCluster(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	key := keys("p")[0]
	from := assert.Of(cluster.Owner(key)).Must(t)
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
	holders.EachIssues(t, 200, a, b)
	moveSlot(t, cluster, from, to, keys("p"))
	now, err := cluster.Owner(key)
	assert.MustTrue(t, err == nil && now == to, "the pool is on %v, %v; want it moved", now, err)
	before := assert.Of(s.List(t.Context(), "p")).Must(t)
	renewed := func() (n int) {
		after := assert.Of(s.List(t.Context(), "p")).Must(t)
		for w, r := range after.Records {
			if r.State == lease.Held && r.Beat > before.Records[w].Beat {
				n++
			}
		}
		return n
	}
	assert.Until(t, "two numbers were renewed on the other node", func() bool { return renewed() >= 2 })
	holders.EachIssues(t, 500, a, b)
	keptTheirs(t, a, b)
	holders.End(t, &all, a, b)
}

// moveSlot moves keys, all of one slot, and the slot from one node to another.
func moveSlot(t *testing.T, c *servers.RedisCluster, from, to *servers.Redis, keys []string) {
	t.Helper()
	do := func(r *servers.Redis, words ...string) string {
		t.Helper()
		return assert.Of(r.Do(words...)).Must(t)
	}
	slot := strings.TrimPrefix(do(from, "CLUSTER", "KEYSLOT", keys[0]), ":")
	for _, key := range keys {
		assert.Equal(t, "slots of the keys of one pool", strings.TrimPrefix(do(from, "CLUSTER", "KEYSLOT", key), ":"), slot)
	}
	id := func(r *servers.Redis) string { return do(r, "CLUSTER", "MYID") }
	host, port, err := net.SplitHostPort(to.Addr)
	assert.Must(t, err)
	do(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	do(from, append([]string{"MIGRATE", host, port, `""`, "0", "5000", "KEYS"}, keys...)...)
	for _, r := range append([]*servers.Redis{to}, c.Nodes...) {
		do(r, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
}

// TestAlert: whoever writes to a server that has refused the certificate is told so, and not of a
// reset.
func TestAlert(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	c, err := dialTLS(&tls.Config{InsecureSkipVerify: true})(context.Background(), "tcp", s.Listener.Addr().String())
	assert.Must(t, err)
	defer c.Close()
	assert.Until(t, "a write fails", func() bool { _, err = c.Write([]byte("PING\r\n")); return err != nil })
	assert.Fails(t, "the error", err, "remote error: tls: ")
}
