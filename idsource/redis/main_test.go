package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// shared serves the tests that leave their server as it is.
var shared *servers.Redis

func TestMain(m *testing.M) {
	holders.Main(openJob)
	servers.Parallel(4)
	var err error
	if shared, err = servers.StartRedis(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("idproxy/integration/process.(*Process).own"), goleak.Cleanup(func(code int) {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// unsafe are changes to the script that tests must notice.
var unsafe = map[string]func(string) string{
	"incarnation": func(s string) string {
		return strings.Replace(s, "redis.call('HGET', pool, 'server') ~= id", "false", 1)
	},
}

// place is a Config as holders are told it.
type place struct {
	Addrs   []string
	Master  string
	Cluster bool
}

// openJob opens the store of a holder.
func openJob(j holders.Job) (lease.Store, error) {
	var p place
	if err := json.Unmarshal(j.Store, &p); err != nil {
		return nil, err
	}
	s, err := New(Config{Addrs: p.Addrs, Master: p.Master, Cluster: p.Cluster})
	if err == nil && j.Once {
		return holders.Owned(s.Disposable(), s), nil
	}
	return s, err
}

// jobOn is the job of a holder in a pool of a store.
func jobOn(c Config, pool string) holders.Job {
	text, err := json.Marshal(place{c.Addrs, c.Master, c.Cluster})
	if err != nil {
		panic(fmt.Sprintf("the configuration of a store: %v", err))
	}
	return holders.Job{Store: text, Pool: pool}
}

func jobAt(addr, pool string) holders.Job { return jobOn(Config{Addrs: []string{addr}}, pool) }

// open opens a store that waits for an answer for as long as a busy machine may take.
func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.Addrs == nil {
		c.Addrs = []string{shared.Addr}
	}
	s := assert.Of(within(c, time.Minute)).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

// TestContract has the rules obeyed by the script, and by the table that numbers which are used
// once are in.
func TestContract(t *testing.T) {
	t.Parallel()
	ahead := assert.Of(servers.NewClock()).Must(t)
	t.Cleanup(func() { assert.NoError(t, ahead.Close()) })
	r := owned(t, assert.Of(servers.StartRedisClock(t.Context(), ahead)).Must(t))
	at, clock := Config{Addrs: []string{r.Addr}}, &holders.Clock{Set: ahead.Ahead}
	holders.Contract(t, func() lease.Store { return open(t, at) }, clock, "", 600)
	holders.Contract(t, func() lease.Store { return lease.FromTable(table{open(t, at)}) }, clock, "table-", 400)
}

// TestPoolMost: a million numbers in one script would keep Redis from all others for seconds, and
// holders from their heartbeats.
func TestPoolMost(t *testing.T) {
	t.Parallel()
	s := open(t, Config{})
	fill := lease.Fill{Pool: "most", Shape: holders.Shape(), Numbers: poolMost + 1, Rules: holders.Brisk}
	n, err := s.Add(t.Context(), fill)
	assert.True(t, err != nil && n == 0, "%d numbers were added, %v", n, err)
	l, err := s.List(t.Context(), fill.Pool)
	assert.True(t, err == nil && !l.Exists, "the pool is there: %v, %v", l.Exists, err)
}
