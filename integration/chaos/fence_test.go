package chaos

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// fenceConfiguration has both kinds of worker numbers.
const fenceConfiguration = `
listeners: [{listen: "unix:%s", upstream: "127.0.0.1:1"}]
stores:
  leases: {redis: {addrs: [%q]}}
  own:    {file: {dir: ./own}}
sources:
  leased_id: {snowflake: {workers: leases, sequence: zero, max_ahead: 500ms, lease: {heartbeat: 500ms, reclaim: 10s}}}
  fixed_id:  {snowflake: {worker: 1, store: own, sequence: zero}}
ids: {redis: {listen: "unix:%s"}}
`

// TestFence kills a process whose clock runs ahead, and starts it with the clock put right. No id
// comes twice; with a store and a pool that keep no fence some do.
func TestFence(t *testing.T) {
	t.Parallel()
	var both sync.WaitGroup // they wait for most of their time
	defer both.Wait()
	for _, fence := range []bool{true, false} {
		fenced := func(t *testing.T) {
			r := assert.Of(servers.StartRedis(t.Context())).Must(t)
			t.Cleanup(func() { _ = r.Stop() })
			n := newNode(t, 0, nil)
			n.configure(t, fmt.Sprintf(fenceConfiguration, n.sqlSocket(), r.Addr, n.idsSocket()))
			n.command(t, "worker", "--config", n.config(), "add", "4", "--new-pool")
			if !fence {
				n.faults.NoFence()
			}
			for source, twice := range leapAndCount(t, n, fence) {
				t.Logf("%s: %d ids twice", source, twice)
				assert.True(t, fence == (twice == 0), "%s: fence %t, %d ids twice", source, fence, twice)
			}
		}
		both.Go(func() { t.Run(fmt.Sprintf("fence %t", fence), fenced) })
	}
}

// leapAndCount returns how many ids came twice, by source.
func leapAndCount(t *testing.T, n *node, fence bool) map[string]uint64 {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	w := &world{nodes: []*node{n}}
	var askers []*asker
	for i, source := range []string{"leased_id", "fixed_id"} {
		a := &asker{socket: n.idsSocket(), source: source, rate: 20_000, often: true, into: newRecord(source, math.MaxInt64), told: &w.told}
		askers = append(askers, a)
		w.load.Go(func() { a.ask(ctx, rand.New(rand.NewPCG(uint64(i), 0))) })
	}
	n.start(t)
	give := func(more int64) {
		t.Helper()
		for _, a := range askers {
			before := a.good.Load()
			assert.Until(t, "ids of "+a.source, func() bool { return a.good.Load() >= before+more }, n.tail)
		}
	}
	give(100)
	// The bound of the fixed number lies up to 8s ahead of the clock, that of the leased one, in
	// its file, up to 1.5s; a leap of 2.5s could end the lease. One leap of the wall clock is beyond
	// the bound, where nothing may be issued, and one below it, where the bound is all that the next
	// process knows of what was issued.
	const beyond, below, mono = 8200 * time.Millisecond, 5 * time.Second, 1600 * time.Millisecond
	issued := func() func() bool { // since now, of both sources, several times
		before := [2]int64{askers[0].good.Load(), askers[1].good.Load()}
		return func() bool { return askers[0].good.Load() > before[0]+20 && askers[1].good.Load() > before[1]+20 }
	}
	for range 5 { // on a machine that is busy a process may issue nothing before it is killed
		for _, wall := range []time.Duration{beyond, below} {
			n.leap(t, wall, mono, issued())
			give(1)
			time.Sleep(wall + 200*time.Millisecond)
			give(100)
		}
		if fence || askers[0].into.check().twice > 0 && askers[1].into.check().twice > 0 {
			break
		}
	}
	end()
	w.load.Wait()
	n.stop(t)
	twice := map[string]uint64{}
	for _, a := range askers {
		f := a.into.check()
		assert.True(t, len(f.outside) == 0, "%s: ids outside of the column: %v", a.source, f.outside)
		twice[a.source] = f.twice
	}
	return twice
}

// TestFaultsAreInTestBuildsOnly looks for what moves clocks in the program that users get.
func TestFaultsAreInTestBuildsOnly(t *testing.T) {
	for _, build := range []struct {
		name string
		make func() (string, error)
		want bool
	}{
		{"as users get it", func() (string, error) { return harness.BuildPlain() }, false},
		{"for tests", harness.BuildFaults, true},
	} {
		path := assert.Of(build.make()).Must(t)
		program := assert.Of(os.ReadFile(path)).Must(t)
		for _, trace := range []string{harness.FaultsVariable, "idproxy/idsource/faults"} {
			assert.Equal(t, "the program "+build.name+" has "+trace, bytes.Contains(program, []byte(trace)), build.want)
		}
	}
}
