package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// What the environment changes: for how long TestChaos does harm, how many ids per second it asks for, and what
// its choices come from.
const (
	lastsVariable, lasts = "IDPROXY_CHAOS", 15 * time.Second
	rateVariable, rate   = "IDPROXY_CHAOS_RATE", 100_000.0
	seedVariable         = "IDPROXY_CHAOS_SEED"
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
	seed := setting(t, seedVariable, uint64(time.Now().UnixNano()), func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	t.Logf("seed %d", seed)
	w := newWorld(t, 6)
	w.begin(t, setting(t, rateVariable, rate, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }), seed)
	n := nemesis{world: w, random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	n.rage(t, setting(t, lastsVariable, lasts, time.ParseDuration))
	w.mend(t)
	w.finish(t)
	ids, twice := w.report(t)
	t.Logf("harm: %v", n.done)
	if twice > 0 {
		t.Errorf("%d ids came twice", twice)
	}
	if ids < 100_000 {
		t.Errorf("%d ids are too few to say anything", ids)
	}
}
