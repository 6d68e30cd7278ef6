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
		owned(t, s)
		addrs = append(addrs, s.Addr)
	}
	store := open(t, Config{Servers: addrs})
	holders.Fill(t, store.Workers(), "p", 8)
	var issued holders.Record
	j := jobAt(t, strings.Join(addrs, ","), "p")
	both := []*holders.Process{holders.Start(t, j, &issued), holders.Start(t, j, &issued)}
	for round := range 3 {
		holders.EachIssues(t, 200, both...)
		assert.GreaterOrEqual(t, fmt.Sprintf("round %d: numbers held", round), held(t, store.Workers(), "p"), len(both))
		leader := leaderOf(t, all)
		assert.Must(t, leader.Kill())
		leaderOf(t, slices.DeleteFunc(slices.Clone(all), func(s *servers.ZooKeeper) bool { return s == leader }))
		holders.EachIssues(t, 200, both...)
		assert.Must(t, leader.Start(t.Context()))
	}
	holders.End(t, &issued, both...)
}

// leaderOf waits for the server that leads.
func leaderOf(t *testing.T, all []*servers.ZooKeeper) *servers.ZooKeeper {
	t.Helper()
	i := -1
	assert.Until(t, "a server leads", func() bool { i = slices.IndexFunc(all, (*servers.ZooKeeper).Leads); return i >= 0 })
	return all[i]
}

// TestTLS has a pool in an ensemble that is spoken to over TLS, by clients with a certificate. Who
// trusts another, has no certificate or speaks no TLS gets nothing.
func TestTLS(t *testing.T) {
	t.Parallel()
	s := owned(t, assert.Of(servers.StartZooKeeperTLS(t.Context())).Must(t))
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
