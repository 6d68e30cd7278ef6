package zookeeper

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// TestLeaderKilled kills the leader of three again and again while two holders issue ids. They go on,
// with the numbers that they have or with others, and no id comes twice.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	all := assert.Of(servers.StartZooKeeperEnsemble(t.Context(), 3)).Must(t)
	var addrs []string
	for _, s := range all {
		owned(t, s, nil)
		addrs = append(addrs, s.Addr)
	}
	store := open(t, Config{Servers: addrs})
	holders.Fill(t, store.Workers(), "p", 8)
	var issued holders.Record
	j := jobAt(t, strings.Join(addrs, ","), "p")
	both := []*holders.Process{holders.Start(t, j, &issued), holders.Start(t, j, &issued)}
	held := func() (n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		l := assert.Of(store.Workers().List(ctx, "p")).Must(t)
		for _, r := range l.Records {
			if r.State == lease.Held {
				n++
			}
		}
		return n
	}
	for round := range 3 {
		for _, p := range both {
			p.Issues(t, 200)
		}
		assert.GreaterOrEqual(t, fmt.Sprintf("round %d: numbers held", round), held(), len(both))
		leader := leaderOf(t, all)
		assert.Must(t, leader.Kill())
		leaderOf(t, slices.DeleteFunc(slices.Clone(all), func(s *servers.ZooKeeper) bool { return s == leader }))
		for _, p := range both {
			p.Issues(t, 200)
		}
		assert.Must(t, leader.Start(t.Context()))
	}
	for _, p := range both {
		p.End(t)
	}
	assert.Equal(t, "ids twice", len(issued.Twice()), 0)
}

// leaderOf waits for the server that leads.
func leaderOf(t *testing.T, all []*servers.ZooKeeper) *servers.ZooKeeper {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if i := slices.IndexFunc(all, (*servers.ZooKeeper).Leads); i >= 0 {
			return all[i]
		}
	}
	t.Fatal("no server leads")
	return nil
}

// TestTLS has a pool in an ensemble that is spoken to over TLS, by clients with a certificate. Who
// trusts another, has no certificate or speaks no TLS gets nothing.
func TestTLS(t *testing.T) {
	t.Parallel()
	s, err := servers.StartZooKeeperTLS(t.Context())
	owned(t, s, err)
	store := open(t, Config{Servers: []string{s.Addr}, Username: "idproxy", Password: "secret", TLS: s.TLS})
	w := store.Workers()
	holders.Fill(t, w, "p", 2)
	a := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "x"}}
	take := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 2 { // as one does who got no answer
			r, err := w.Take(ctx, a)
			assert.True(t, err == nil && r.Verdict == lease.Granted && r.Worker == 0, "a worker number: %+v, %v, want number 0", r, err)
		}
	}
	take()
	again(t, s, func() error { return nil })
	assert.NoError(t, store.Ping(t.Context()), "after a restart")
	nobody := s.TLS.Clone()
	nobody.Certificates = nil
	for _, tt := range []struct {
		name string
		tls  *tls.Config
		want string
	}{
		{"no certificate", nobody, "tls: "},
		{"another CA", &tls.Config{Certificates: s.TLS.Certificates}, "signed by unknown authority"},
		{"no TLS", nil, "asked how it runs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := open(t, Config{Servers: []string{s.Addr}, TLS: tt.tls})
			for end := time.Now().Add(time.Minute); ; { // a busy machine has no reason to tell at first
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				err := store.Ping(ctx)
				cancel()
				if err != nil && strings.Contains(err.Error(), tt.want) {
					return
				}
				assert.MustTrue(t, err != nil && !time.Now().After(end), "%v, want %q in it", err, tt.want)
			}
		})
	}
}
