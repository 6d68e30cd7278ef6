package chaos

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// What the environment changes: for how long TestChaos does harm, what its choices come from, how
// often it is done, and the file that has a line for each time.
const (
	lastsVariable = "IDPROXY_CHAOS"
	seedVariable  = "IDPROXY_CHAOS_SEED"
	runsVariable  = "IDPROXY_CHAOS_RUNS"
	sumVariable   = "IDPROXY_CHAOS_SUM"
	lasts         = 15 * time.Second
)

// Ids per second that one process is asked for of one source.
const (
	snowflakeRate = 8000 // few at a time
	segmentRate   = 60_000
)

func setting[T any](t *testing.T, name string, otherwise T, parse func(string) (T, error)) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	return assert.Of(parse(text)).Must(t, name)
}

// result is what came of a run. Its text is a line of the file that adds them up.
type result struct {
	seed                uint64
	lasts               time.Duration
	ids, answers, twice uint64
}

const resultFormat = "seed %d lasts %v: %d ids in %d answers, %d twice"

func (r result) String() string {
	return fmt.Sprintf(resultFormat, r.seed, r.lasts, r.ids, r.answers, r.twice)
}

// TestChaos does all kinds of harm to six processes and to what they depend on. No id comes twice,
// and all processes come back by themselves.
func TestChaos(t *testing.T) {
	width.Wide(t, "integration/simulation harms fleets in virtual time")
	t.Parallel()
	seed := setting(t, seedVariable, uint64(time.Now().UnixNano()), func(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) })
	lasts := setting(t, lastsVariable, lasts, time.ParseDuration)
	for i := range setting(t, runsVariable, 1, strconv.Atoi) {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			r, done := chaos(t, seed+uint64(i), lasts, func(*harness.Faults) {})
			assert.True(t, r.twice <= 0, "%d ids came twice; what was done:\n%s", r.twice, done)
			assert.True(t, r.ids >= 100_000, "%d ids are too few to say anything", r.ids)
			if path := os.Getenv(sumVariable); path != "" {
				sum(t, path, r)
			}
		})
	}
}

// chaos returns what came of a run, and what was done. Each process has a fault.
func chaos(t *testing.T, seed uint64, lasts time.Duration, fault func(*harness.Faults)) (r result, done string) {
	t.Helper()
	w := newWorld(t, 6)
	for _, n := range w.nodes {
		fault(n.faults)
	}
	w.begin(t, seed)
	n := newNemesis(t, w, seed)
	n.rage(lasts)
	w.mend(t)
	w.finish(t)
	r = w.report(t)
	r.seed, r.lasts = seed, lasts
	t.Logf("%v; harm: %v", r, n.done)
	return r, n.timeline()
}

// sum adds a line to a file and says what all of its lines come to.
func sum(t *testing.T, path string, r result) {
	t.Helper()
	f := assert.Of(os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)).Must(t)
	_, err := fmt.Fprintln(f, r)
	assert.Must(t, errors.Join(err, f.Close()))
	text := assert.Of(os.ReadFile(path)).Must(t)
	var all result
	runs := 0
	for line := range strings.Lines(string(text)) {
		one := assert.Of(parseResult(line)).Must(t, fmt.Sprintf("%s: %q", path, line))
		runs++
		all.lasts += one.lasts
		all.ids, all.answers, all.twice = all.ids+one.ids, all.answers+one.answers, all.twice+one.twice
	}
	t.Logf("in all %d runs of %v: %d ids in %d answers, %d twice", runs, all.lasts, all.ids, all.answers, all.twice)
}

func parseResult(line string) (r result, err error) {
	var lasts string
	if _, err := fmt.Sscanf(strings.Replace(line, ":", " :", 1), strings.Replace(resultFormat, ":", " :", 1), &r.seed, &lasts, &r.ids, &r.answers, &r.twice); err != nil {
		return result{}, err
	}
	r.lasts, err = time.ParseDuration(lasts)
	return r, err
}

// TestSum shows the sum a file of two runs.
func TestSum(t *testing.T) {
	want := result{seed: 1795348253933091048, lasts: 5 * time.Minute, ids: 130_000_000, answers: 400_000, twice: 3}
	assert.Of(parseResult(want.String()+"\n")).Equal(t, fmt.Sprintf("%q is read as", want), want)
	assert.Of(parseResult("seed 1 lasts 5m0s: no ids\n")).Fails(t, "a broken line", "")
}
