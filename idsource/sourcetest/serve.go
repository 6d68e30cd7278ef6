package sourcetest

import (
	"context"
	"io"
	"net"
	"strings"
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

// LastWord asks a server, which closes a connection behind its answer, over a connection that it let in
// before it began to end. stop ends it. The answer must begin as it should.
func LastWord(t testing.TB, addr string, stop func() error, question, answer string) {
	t.Helper()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it was read to its end
		return c
	}
	asks := func(c net.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, question); err != nil {
			t.Fatal(err)
		}
		if said, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(said), answer) {
			t.Errorf("%q, %v; want %q", said, err, answer)
		}
	}
	first, second := dial(), dial()
	asks(second) // the first was let in before it
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	for { // the end has begun
		other, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = other.Close() // it said nothing
	}
	asks(first)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Waiter is a source that closes its channel and waits until its context ends.
type Waiter struct{ Waits chan struct{} }

// Fill gives no ids.
func (w Waiter) Fill(ctx context.Context, _ []uint64, _ uint64) error {
	close(w.Waits)
	<-ctx.Done()
	return ctx.Err()
}
