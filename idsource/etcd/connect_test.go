package etcd

import (
	"context"
	"net"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/holders"
)

// TestConnectsAgain has a cluster be away: however long that lasts, attempts to connect follow each
// other within a second or two, so that ids come soon after the cluster does.
func TestConnectsAgain(t *testing.T) {
	t.Parallel()
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

// TestForgottenConnection: a connection that a firewall forgot, so that neither an answer nor an
// end comes, is left for another one.
func TestForgottenConnection(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	f := holders.NewForward(t, s.Addr)
	st := assert.Of(New(Config{Endpoints: []string{f.Addr()}})).Must(t)
	defer st.Close() //nolint:errcheck // nothing is pending
	reserve := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := st.Reserve(ctx, ask("k", 1))
		return err
	}
	assert.Must(t, st.Advance(t.Context(), "k", 1))
	_, _, err := st.Reserve(t.Context(), ask("k", 1))
	assert.Must(t, err)
	f.Forget()
	assert.Fails(t, "the connection is not forgotten", reserve(), "")
	for end := time.Now().Add(2 * time.Minute); reserve() != nil; {
		assert.MustTrue(t, !time.Now().After(end), "no range in two minutes")
	}
}
