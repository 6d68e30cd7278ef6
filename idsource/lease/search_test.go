//go:build !race

package lease

// The race detector makes these walks ten times slower and has nothing to find in them, so that
// they are not in its builds.

import (
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/states"
	"idproxy/integration/width"
)

// search visits all states until a timestamp was used twice, or a number was given that cannot be used,
// or limit is reached.
func (m *model) search(limit int) (visited int, whole bool, trace string) {
	return states.Walk(m.first(), limit, m.steps)
}

func (m *model) steps(from modelState, say bool) states.Steps[modelState] {
	m.tell = say
	m.next(from)
	return states.Steps[modelState]{To: m.out, Said: m.say, Bad: m.bad}
}

// The smallest times that differ from each other as they must.
var modelRules = Rules{Heartbeat: 1, Gap: 1, Lead: 2, Ahead: 1, Loss: 1, Skew: 1, Reclaim: 6}

var (
	none     = class{name: "no disaster"}
	emptied  = class{name: "emptied", flush: true}
	replaced = class{name: "replaced", promote: true}
	vanished = class{name: "writes vanish", vanish: true}
	clockSet = class{name: "the clock is set", set: 3}
)

// inLong is long in make test-long, which is the one run beside make test that has these walks.
func inLong(usual, long int) int {
	if width.Long {
		return long
	}
	return usual
}

// TestModel visits every state of the protocol, under each disaster: all of them in make test-long, else
// a part where there are many.
func TestModel(t *testing.T) {
	total, start := 0, time.Now()
	for _, run := range []struct {
		class class
		ahead bool
		limit int
	}{
		{none, true, 1e7},
		{emptied, true, 1e7},
		{vanished, true, inLong(400_000, 10_000_000)},
		{clockSet, false, inLong(200_000, 10_000_000)},
		{replaced, false, inLong(200_000, 40_000_000)},
		{replaced, true, inLong(200_000, 1_000_000)}, // there are more than fit into the memory of a small machine
	} {
		m := model{rules: modelRules, class: run.class, owners: 2, numbers: 1, ahead: run.ahead}
		states, whole, trace := m.search(run.limit)
		assert.Equal(t, run.class.name+": a timestamp is used twice, or a number is given that cannot be used", trace, "")
		assert.True(t, whole || run.limit <= 1e6, "%s: there are more than %d states", run.class.name, run.limit)
		t.Logf("compared: %d states", states)
		t.Logf("%s, ahead of the clock %t: %d states, all of them: %t (%v)", run.class.name, run.ahead, states, whole, time.Since(start))
		total += states
	}
	assert.True(t, total >= 1e6, "%d states are less than a million", total)
}

// TestGuards takes one rule away at a time. A rule that nothing is found
// without would be useless, or the model too weak.
func TestGuards(t *testing.T) {
	for _, run := range []struct {
		name   string
		guard  guard
		class  class
		prompt bool
	}{
		{"fence", guardFence, none, false},
		{"start", guardStart, none, false},
		{"token", guardToken, none, false},
		{"release", guardRelease, none, false},
		{"quarantine", guardQuarantine, emptied, false},
		{"incarnation", guardIncarnation, replaced, false},
		{"reclaim", guardReclaim, replaced, false},
		{"activation", guardActivation, vanished, false},
		{"gap", guardGap, vanished, false},
		{"silence", guardSilence, replaced, true},
		{"used", guardUsed, none, false},
		{"reach", guardReach, clockSet, false},
		// The deadline is a second line behind the gap, for a store whose clock
		// cannot be trusted to notice it: it holds where messages are not late.
		{"gap and deadline", guardGap | guardDeadline, vanished, true},
	} {
		rules := modelRules
		rules.without = run.guard
		m := model{rules: rules, class: run.class, owners: 2, numbers: 1, ahead: true, prompt: run.prompt}
		states, _, trace := m.search(5e6)
		assert.True(t, trace != "", "without %s, %s: nothing found in %d states", run.name, run.class.name, states)
		t.Logf("without %s, %s, after %d states:\n%s", run.name, run.class.name, states, trace)
	}
	rules := modelRules
	rules.without = guardGap
	m := model{rules: rules, class: vanished, owners: 2, numbers: 1, ahead: true, prompt: true}
	states, whole, trace := m.search(5e6)
	assert.True(t, trace == "" && whole, "without gap but with the deadline, messages prompt: %d states, all of them: %t\n%s", states, whole, trace)
}
