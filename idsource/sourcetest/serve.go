package sourcetest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Serve has a server of ids serve on a port of its own until the test ends, or stop is called.
func Serve(t testing.TB, serve func(context.Context, net.Listener) error) (addr string, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String(), stop
}

// Waiter is a source that closes its channel and waits until its context ends.
type Waiter struct{ Waits chan struct{} }

// Fill gives no ids.
func (w Waiter) Fill(ctx context.Context, _ []uint64, _ uint64) error {
	close(w.Waits)
	<-ctx.Done()
	return ctx.Err()
}
