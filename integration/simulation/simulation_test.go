package simulation

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// spent is what this process has taken of the processors.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// hoursVariable says how many hours fleets live in TestFleets, all together; firstVariable what their first
// seed is, where it is not 0: another run has other fleets then.
const (
	hoursVariable = "IDPROXY_SIMULATION_HOURS"
	firstVariable = "IDPROXY_SIMULATION_FIRST"
)

// TestFleets has fleets of all kinds live, and finds no id twice.
func TestFleets(t *testing.T) {
	hours := max(usualHours, 50)
	if os.Getenv("IDPROXY_MATRIX") != "" {
		hours = max(usualHours, 10_000)
	}
	hours = numberOf(t, hoursVariable, hours)
	began := time.Now()
	sum := report{Kind: "all"}
	for _, r := range work(t, os.Args[0], share(hours, uint64(numberOf(t, firstVariable, 0)))) {
		t.Log(r)
		sum.add(r)
		if r.Found != "" {
			t.Error(where(t, r))
		}
	}
	t.Logf("%s, %.0f h in a minute", sum, sum.Lasted.Hours()/time.Since(began).Minutes())
	assert.True(t, sum.Lasted.Hours() >= float64(hours), "fleets lived for %.1f h, not %d", sum.Lasted.Hours(), hours)
}

// numberOf is a number of the environment.
func numberOf(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n := assert.Of(strconv.Atoi(text)).Must(t, name)
	return n
}

// where says how to play a run again with the faults that it takes.
func where(t *testing.T, r report) string {
	t.Helper()
	var list, numbers []string
	for _, f := range drawPlan(kindOf(t, r.Kind), r.Seed).only(r.Enough).faults {
		list = append(list, f.String())
		numbers = append(numbers, strconv.Itoa(f.number))
	}
	return fmt.Sprintf("%s\n%s=%s/%d/%s takes %d faults:\n%s", r.Found, seedVariable, r.Kind, r.Seed, strings.Join(numbers, ","), len(list), strings.Join(list, "\n"))
}

// share divides hours among the kinds. Segments, which do nothing between their ids, live the most
// of them; processes of an order, which ask who leads several times in a second, the fewest.
func share(hours int, first uint64) (jobs []job) {
	weights := 0.0
	for _, k := range kinds {
		weights += k.weight
	}
	parts := uint64(1)
	if hours >= 1000 {
		parts = 4
	}
	for _, k := range kinds {
		each := time.Duration(float64(hours) * float64(time.Hour) * k.weight / weights)
		for n := range parts {
			jobs = append(jobs, job{Kind: k.name, From: n<<32 + first, To: (n + 1) << 32, Until: each/time.Duration(parts) + 1})
		}
	}
	return jobs
}

// TestReplay plays seeds twice. The second time the same happens at the same moments.
func TestReplay(t *testing.T) {
	replayed := kinds[:4]
	each := uint64(3)
	if os.Getenv("IDPROXY_MATRIX") != "" || usualHours > 0 {
		replayed, each = kinds, 6
	}
	var jobs []job
	for _, k := range replayed {
		jobs = append(jobs, job{Kind: k.name, To: each, Twice: true})
	}
	seeds, other := 0, 0
	for _, r := range work(t, os.Args[0], jobs) {
		seeds += r.Seeds
		other += r.Other
	}
	t.Logf("%d of %d seeds had other events the second time", other, seeds)
	assert.True(t, other*10 <= seeds, "too many") // DESIGN.md says what is left to chance
	folder := inMemory(t)
	one, two := run(t, kinds[3], drawPlan(kinds[3], 1), folder(), nil), run(t, kinds[3], drawPlan(kinds[3], 2), folder(), nil)
	assert.True(t, one.hash != two.hash, "two seeds have the same events")
}

// seedVariable names a run: kind/seed, or kind/seed/3,7 with some of its faults alone. logVariable names a file for all events.
const (
	seedVariable = "IDPROXY_SEED"
	logVariable  = "IDPROXY_SEED_LOG"
)

// TestSeed plays one run, by default the first one.
func TestSeed(t *testing.T) {
	k, p := namedRun(t, cmp.Or(os.Getenv(seedVariable), kinds[0].name+"/1"))
	for _, f := range p.faults {
		t.Log(f)
	}
	var log io.Writer
	if name := os.Getenv(logVariable); name != "" {
		f := assert.Of(os.Create(name)).Must(t)
		defer f.Close() //nolint:errcheck // it is for people
		log = f
	}
	o := run(t, k, p, inMemory(t)(), log)
	t.Logf("%d ids, %d messages, %d faults, events %x", o.ids, o.messages, o.faults, o.hash)
	assert.Equal(t, "o.found", o.found, "")
}

// namedRun reads what names a run.
func namedRun(t *testing.T, text string) (*kind, plan) {
	t.Helper()
	parts := strings.Split(text, "/")
	assert.MustTrue(t, len(parts) >= 2, "%s=%q is not kind/seed", seedVariable, text)
	seed := assert.Of(strconv.ParseUint(parts[1], 10, 64)).Must(t)
	k := kindOf(t, parts[0])
	p := drawPlan(k, seed)
	if len(parts) == 2 {
		return k, p
	}
	var numbers []int
	for _, part := range strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' }) {
		n := assert.Of(strconv.Atoi(part)).Must(t)
		numbers = append(numbers, n)
	}
	return k, p.only(numbers)
}
