package etcd

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"idproxy/idsource/segment"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
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
	i := -1
	assert.Until(t, "a member leads", func() bool { i = slices.IndexFunc(all, (*servers.Etcd).Leads); return i >= 0 })
	return all[i]
}

// TestLeaderKilled kills the leader of three again and again. Ranges are had again as soon as there
// is another one, which etcd takes a second or two to elect, and a source that holds ids is not
// disturbed.
func TestLeaderKilled(t *testing.T) {
	t.Parallel()
	all, endpoints := cluster(t)
	var stores [2]*Store
	for i := range stores {
		stores[i] = assert.Of(New(Config{Endpoints: endpoints})).Must(t)
		t.Cleanup(func() { _ = stores[i].Close() })
	}
	assert.Must(t, stores[0].Open(t.Context(), "k", 1, 0))
	assert.Must(t, stores[0].Open(t.Context(), "order_id", 1, 0))
	src := assert.Of(segment.New(segment.Config{Name: "order_id", Store: stores[1], Step: 500_000, MaxStep: 500_000})).Must(t)
	ids := make([]uint64, 5)
	assert.Until(t, "the first range", func() bool { return src.Fill(t.Context(), ids, 1) == nil })
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

// TestAskedAgain has questions be lost, answered late, or answered by members without a leader.
func TestAskedAgain(t *testing.T) {
	broken := errors.New("broken")
	type ask = func(ctx context.Context) (int, error)
	at := func(d time.Duration, n int, err error) ask {
		return func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(d):
				return n, err
			}
		}
	}
	lost := at(time.Hour, 0, nil)
	for _, tt := range []struct {
		name  string
		asks  []ask // the last one stands for all that follow
		want  int
		err   error
		takes time.Duration
	}{
		{"answered", []ask{at(time.Millisecond, 1, nil)}, 1, nil, time.Millisecond},
		{"lost with a leader", []ask{lost, at(time.Millisecond, 2, nil)}, 2, nil, 201 * time.Millisecond},
		{"two lost", []ask{lost, lost, at(time.Millisecond, 3, nil)}, 3, nil, 226 * time.Millisecond},
		{"a slow cluster", []ask{at(3*time.Second, 1, nil)}, 1, nil, 3 * time.Second},
		{"no leader", []ask{at(0, 0, rpctypes.ErrNoLeader), at(0, 0, rpctypes.ErrNoLeader), at(0, 3, nil)}, 3, nil, 50 * time.Millisecond},
		{"another error", []ask{at(0, 0, broken)}, 0, broken, 0},
		{"none comes", []ask{lost}, 0, context.DeadlineExceeded, 5 * time.Second},
		{"no leader for long", []ask{at(0, 0, rpctypes.ErrNoLeader)}, 0, rpctypes.ErrNoLeader, 5 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				var asked atomic.Int64
				got, err := try(ctx, &Store{beside: askBeside}, func(ctx context.Context) (int, error) {
					n := asked.Add(1)
					return tt.asks[min(int(n), len(tt.asks))-1](ctx)
				})
				took := time.Since(began)
				assert.True(t, got == tt.want && errors.Is(err, tt.err) && took == tt.takes, "%d, %v after %v; want %d, %v after %v", got, err, took, tt.want, tt.err, tt.takes)
				assert.True(t, asked.Load() <= 40 || errors.Is(err, rpctypes.ErrNoLeader), "it was asked %d times", asked.Load())
			})
		})
	}
}

// TestAskedInTime: nothing is asked once the time for it is over.
func TestAskedInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		assert.Of(try(ctx, &Store{beside: askBeside}, func(context.Context) (int, error) {
			t.Error("it was asked")
			return 0, nil
		})).ErrorIs(t, "the answer", context.Canceled)
	}
}

// TestSilentMember: once a member was silent and another one answered, two are asked at once for a while.
func TestSilentMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{beside: askBeside}
		takes := func(silent int64, most time.Duration) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			var asked atomic.Int64
			if _, err := try(ctx, s, func(ctx context.Context) (int, error) {
				if asked.Add(1) <= silent {
					<-ctx.Done()
				}
				return 0, ctx.Err()
			}); err != nil || time.Since(began) != most {
				t.Errorf("%v after %v, want an answer after %v", err, time.Since(began), most)
			}
		}
		takes(1, askBeside)
		takes(1, askPause)
		takes(0, 0)
		time.Sleep(askTwice)
		takes(1, askBeside)
	})
}

// TestConnections: each of these waits for some ten seconds, side by side.
func TestConnections(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	defer all.Wait()
	for name, test := range map[string]func(*testing.T){"made again": connectsAgain, "forgotten": forgottenConnection, "of a watch": watchEnds} {
		all.Go(func() { t.Run(name, test) })
	}
}

// connectsAgain has a cluster be away: however long that lasts, attempts to connect follow each
// other within a second or two, so that ids come soon after the cluster does.
func connectsAgain(t *testing.T) {
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	attempts := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		for range attempts { // until nobody accepts
		}
	})
	go func() {
		defer close(attempts)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
			attempts <- struct{}{}
		}
	}()
	st := assert.Of(New(Config{Endpoints: []string{l.Addr().String()}})).Must(t)
	defer st.Close() //nolint:errcheck // nothing is pending
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for ctx.Err() == nil {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			assert.Of(st.Position(ctx, "k")).Fails(t, "a position came of nowhere", "")
			cancel()
		}
	}()
	defer func() { stop(); <-asked }()
	late := time.After(140 * time.Second) // by then there are at most 10 attempts of a client that waits ever longer
	for n := range 12 {
		select {
		case <-attempts:
		case <-late:
			t.Fatalf("%d attempts to connect in 140 s", n)
		}
	}
}

// forgottenConnection is one that a firewall forgot, so that neither an answer nor an
// end comes: it is left for another one.
func forgottenConnection(t *testing.T) {
	s := newServer(t)
	f := holders.NewForward(t, s.Addr)
	st := assert.Of(New(Config{Endpoints: []string{f.Addr()}})).Must(t)
	defer st.Close() //nolint:errcheck // nothing is pending
	reserve := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return sourcetest.ErrorOf(st.Reserve(ctx, ask("k", 1)))
	}
	assert.Must(t, st.Open(t.Context(), "k", 1, 0))
	assert.Must(t, sourcetest.ErrorOf(st.Reserve(t.Context(), ask("k", 1))))
	f.Forget()
	assert.Fails(t, "the connection is not forgotten", reserve(), "")
	for end := time.Now().Add(2 * time.Minute); reserve() != nil; {
		assert.MustTrue(t, !time.Now().After(end), "no range in two minutes")
	}
}
