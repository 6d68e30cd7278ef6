package etcd

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource/segment"
	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// cluster starts three members.
func cluster(t *testing.T) (all []*servers.Etcd, endpoints []string) {
	t.Helper()
	all = assert.Of(servers.StartEtcdCluster(t.Context(), 3)).Must(t)
	for _, m := range all {
		endpoints = append(endpoints, m.Addr)
		t.Cleanup(func() { assert.NoError(t, m.Stop()) })
	}
	return all, endpoints
}

// leader waits for the member that leads.
func leader(t *testing.T, all []*servers.Etcd) *servers.Etcd {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if i := slices.IndexFunc(all, (*servers.Etcd).Leads); i >= 0 {
			return all[i]
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("no member leads")
	return nil
}

// TestLeaderKilled kills the leader of three again and again. Ranges are had again as soon as there
// is another one, which etcd takes a second or two to elect, and a source that holds ids is not
// disturbed.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	all, endpoints := cluster(t)
	var stores [2]*Store
	for i := range stores {
		var err error
		stores[i], err = New(Config{Endpoints: endpoints})
		assert.Must(t, err)
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	assert.Must(t, stores[0].Advance(t.Context(), "k", 1))
	src := assert.Of(segment.New(segment.Config{Name: "order_id", Store: stores[1], Step: 500_000, MaxStep: 500_000})).Must(t)
	ids := make([]uint64, 5)
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { // the first range
		err := src.Fill(t.Context(), ids, 1)
		if err == nil {
			break
		}
		assert.MustTrue(t, time.Since(began) <= time.Minute, "%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var filled atomic.Int64
	done := make(chan struct{})
	go func() { // a client, 5000 ids a second
		defer close(done)
		for ctx.Err() == nil {
			assert.NoError(t, src.Fill(context.Background(), ids, 1), "a source that holds ids")
			filled.Add(1)
			time.Sleep(time.Millisecond)
		}
	}()
	defer func() { stop(); <-done; _ = src.Close(context.Background()) }()
	var last uint64
	for range 6 {
		first := leader(t, all)
		for range 5 { // each member has been asked
			reserved(t, stores[0], &last)
		}
		assert.Must(t, first.Kill())
		began := time.Now()
		elected := make(chan time.Duration)
		go func() {
			leader(t, all)
			elected <- time.Since(began)
		}()
		reserved(t, stores[0], &last)
		took, election := time.Since(began), <-elected
		t.Logf("another leader %v after the one before was killed, a range after %v", election.Round(10*time.Millisecond), took.Round(10*time.Millisecond))
		// A member answers by itself after 7 s that a question got lost with its leader.
		assert.True(t, took-election <= 5*time.Second, "it took %v to have a range after another leader was elected", took-election)
		assert.Must(t, first.Start(t.Context()))
	}
	assert.True(t, filled.Load() != 0, "no ids were had meanwhile")
}

// reserved has a range above the last one. It is one call.
func reserved(t *testing.T, s *Store, last *uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lo, hi, err := s.Reserve(ctx, ask("k", 10))
	assert.Must(t, err, "no range")
	assert.True(t, lo >= *last, "the range %d to %d was given before", lo, hi)
	*last = hi
}
