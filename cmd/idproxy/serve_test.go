package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/config"
	"idproxy/rule"
)

func TestServeNamesPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	path := writeConfig(t, fmt.Sprintf("listeners: [{name: free, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}, {name: a, listen: %q, upstream: 127.0.0.1:1}]\n", addr))
	got := runWith(t, "", "serve", "--config", path)
	if got.status != statusFinding || got.out != "" {
		t.Errorf("status %d, standard output %q", got.status, got.out)
	}
	holds(t, "standard error", got.err, "idproxy: listener a: listen tcp "+addr+": bind: address already in use\n")
	if strings.Contains(got.err, "msg=listening") {
		t.Errorf("it says that it listens: %q", got.err)
	}
}

func TestServeStopsInGoodOrder(t *testing.T) {
	path := writeConfig(t, "listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\n")
	log := serveUntilListening(t, path)()
	holds(t, "the log", log, "msg=listening listen=127.0.0.1:")
	holds(t, "the log", log, "msg=stopped")
}

func TestServeRefusesBadFile(t *testing.T) {
	path := writeConfig(t, malformed)
	got := runWith(t, "", "serve", "--config", path)
	if got.status != statusFinding || got.out != "" {
		t.Errorf("got %+v", got)
	}
	for _, line := range []string{":2:", ":4:", ":6:", ":7:"} {
		holds(t, "standard error", got.err, path+line)
	}
}

// serveUntilListening runs serve and returns, once it listens, what stops it
// and returns its log.
func serveUntilListening(t *testing.T, path string) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := &watched{word: "msg=listening", seen: make(chan struct{})}
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"serve", "--config", path}, streams{nil, io.Discard, log}) }()
	select {
	case <-log.seen:
	case s := <-status:
		t.Fatalf("it ended with status %d: %s", s, log)
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not listen: %s", log)
	}
	return sync.OnceValue(func() string {
		cancel()
		if s := <-status; s != statusFine {
			t.Errorf("it ended with status %d", s)
		}
		return log.String()
	})
}

// watched is a buffer that tells when a word was written to it.
type watched struct {
	word string
	seen chan struct{}
	once sync.Once

	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(b)
	if strings.Contains(w.buf.String(), w.word) {
		w.once.Do(func() { close(w.seen) })
	}
	return len(b), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// TestRulesOf holds that every word of a rule reaches the proxy.
func TestRulesOf(t *testing.T) {
	cfg, err := config.Load(writeConfig(t, `listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}, {name: b, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {ids: {segment: {}}}
rules:
  - {table: shop.orders, column: id, source: ids, explicit: advance, last_insert_id: packet}
  - {table: shop.orders, column: nr, source: ids, explicit: reject, unsupported: forward, mode: observe}
  - {table: shop.items, column: id, source: ids, listeners: [b]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []rule.Rule{
		{Schema: "shop", Table: "orders", Column: "id", Source: "ids", Explicit: rule.Advance, Packet: true},
		{Schema: "shop", Table: "orders", Column: "nr", Source: "ids", Explicit: rule.Reject, Forward: true, Observe: true},
	}
	if got := ruleset.Of(cfg, "a"); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := ruleset.Of(cfg, "b"); len(got) != 3 {
		t.Errorf("%d rules on b, want 3", len(got))
	}
}
