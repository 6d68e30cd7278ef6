package chaos

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// What the environment changes: for how long TestChaos does harm, and what its choices come from.
const (
	lastsVariable = "IDPROXY_CHAOS"
	seedVariable  = "IDPROXY_CHAOS_SEED"
	lasts         = 15 * time.Second
	rate          = 400_000 // ids per second
)

func setting[T any](t *testing.T, name string, otherwise T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// TestChaos does all kinds of harm to six processes and to what they depend on. No id comes twice, and all processes
// come back by themselves.
func TestChaos(t *testing.T) {
	t.Parallel()
	ids, twice, done := chaos(t, setting(t, lastsVariable, lasts, time.ParseDuration), true)
	if twice > 0 {
		t.Errorf("%d ids came twice; what was done:\n%s", twice, done)
	}
	if ids < 100_000 {
		t.Errorf("%d ids are too few to say anything", ids)
	}
}

// chaos returns how many ids came and how many twice, and what was done.
func chaos(t *testing.T, lasts time.Duration, fence bool) (ids, twice uint64, done string) {
	t.Helper()
	seed := setting(t, seedVariable, uint64(time.Now().UnixNano()), func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	t.Logf("seed %d", seed)
	w := newWorld(t, 6)
	for _, n := range w.nodes {
		if !fence {
			n.faults.NoFence()
		}
	}
	w.begin(t, rate, seed)
	n := newNemesis(t, w, seed)
	n.rage(lasts)
	w.mend(t)
	w.finish(t)
	ids, twice = w.report(t)
	t.Logf("%d ids, %d twice; harm: %v", ids, twice, n.done)
	return ids, twice, n.timeline()
}
