package redis

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"idproxy/idsource/lease"
	"idproxy/integration/servers"
)

// shared serves the tests that leave their server as it is.
var shared *servers.Redis

func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	var err error
	if shared, err = servers.StartRedis(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(goleak.IgnoreTopFunction("idproxy/integration/process.(*Process).own")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.Addrs == nil {
		c.Addrs = []string{shared.Addr}
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// quick are rules a hundred times faster than the default.
var quick = lease.Rules{Heartbeat: 20, Gap: 60, Lead: 80, Ahead: 30, Loss: 20, Skew: 10, Reclaim: 200}

const shape = "41/10/12 since 2020-01-01T00:00:00Z"

func ask(pool string) lease.Ask {
	return lease.Ask{Pool: pool, Shape: shape, Label: "test|1", Rules: quick}
}

func fill(t testing.TB, s *Store, pool string, n uint64) {
	t.Helper()
	if _, err := s.Add(t.Context(), lease.Fill{Pool: pool, Shape: shape, Numbers: n, Fresh: true, Rules: quick}); err != nil {
		t.Fatal(err)
	}
}
