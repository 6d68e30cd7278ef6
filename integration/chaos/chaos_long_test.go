//go:build long

package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestChaosWithout is TestChaos with a guard left out: the control that shows that duplicates are seen.
func TestChaosWithout(t *testing.T) {
	for source, without := range map[string]func(*harness.Faults){
		"leased_id": (*harness.Faults).NoFence,
		"moving_id": (*harness.Faults).NoBegin,
		"main_id":   (*harness.Faults).NoSeal,
	} {
		t.Run(source, func(t *testing.T) {
			r, done := chaos(t, uint64(time.Now().UnixNano()), time.Minute, without)
			assert.True(t, r.twice != 0, "without its guard none of %d ids came twice; what was done:\n%s", r.ids, done)
		})
	}
}

const clockConfiguration = `
listeners: [{listen: "unix:%s", upstream: "127.0.0.1:1"}]
stores:    {moved: {redis: {addrs: [%q]}}}
sources:
  moved_id: {snowflake: {workers: moved, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
ids: {redis: {listen: "unix:%s"}}
`

// TestClockAndLoss sets the clock of a store back, and lets the time pass that it has shown before.
// No id comes twice then. Some do when the store also forgot its pool: the two disasters must come
// together for that, so TestChaos keeps them apart.
func TestClockAndLoss(t *testing.T) {
	t.Parallel()
	for _, loses := range []bool{false, true} {
		t.Run(fmt.Sprintf("loses %t", loses), func(t *testing.T) {
			t.Parallel()
			const ahead, between = 15 * time.Second, 4 * time.Second
			clock := newClock(t)
			r := startRedis(t, clock)
			n := newNode(t, 0, nil)
			n.configure(t, fmt.Sprintf(clockConfiguration, n.sqlSocket(), r.Addr, n.idsSocket()))
			addTwo(t, n, "--new-pool")
			a := &asker{socket: n.idsSocket(), source: "moved_id", rate: 20_000, often: true, into: newRecord("moved_id", math.MaxInt64), told: &tally{}}
			ctx, end := context.WithCancel(t.Context())
			w := &world{nodes: []*node{n}}
			w.load.Go(func() { a.ask(ctx, rand.New(rand.NewPCG(1, 0))) })
			clock.Ahead(ahead)
			n.start(t)
			giveMore(t, n, a)
			time.Sleep(between)
			n.kill(t)
			clock.Ahead(0)
			assert.Must(t, os.RemoveAll(filepath.Join(n.dir, "idproxy-leases")))
			if loses {
				assert.Of(r.Do("FLUSHALL")).Must(t)
				addTwo(t, n)
			}
			n.start(t)
			time.Sleep(ahead + between)
			giveMore(t, n, a)
			end()
			w.load.Wait()
			n.stop(t)
			f := a.into.check()
			t.Logf("%d ids, %d twice", f.ids, f.twice)
			assert.True(t, loses == (f.twice > 0), "the store lost its pool: %t; %d ids twice", loses, f.twice)
		})
	}
}

// addTwo adds two numbers to the pool.
func addTwo(t *testing.T, n *node, more ...string) {
	t.Helper()
	n.command(t, append([]string{"worker", "--config", n.config(), "add", "2"}, more...)...)
}

// giveMore waits for ids.
func giveMore(t *testing.T, n *node, a *asker) {
	t.Helper()
	before := a.good.Load()
	assert.Until(t, "ids come", func() bool { return a.good.Load() > before+100 }, n.tail)
}
