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

// rulesFor are the smallest times that differ from each other as they must. A number that changed hands rests for longer
// than for Loss only where that can matter.
func rulesFor(c class, lasting bool) Rules {
	l := Rules{Gap: 1, Lead: 2, Ahead: 1, Loss: 1, Skew: 1, Reclaim: 6}
	if c.restore {
		l.Heartbeat = 1
	}
	if lasting {
		l = l.Lasting()
	}
	return l
}

var (
	none     = class{name: "no disaster"}
	emptied  = class{name: "emptied", flush: true}
	replaced = class{name: "replaced", promote: true}
	vanished = class{name: "writes vanish", vanish: true}
	clockSet = class{name: "the clock is set", set: 3}
	restored = class{name: "older data, the same server", restore: true}
)

// inLong is long in make test-long, which is the one run beside make test that has these walks.
func inLong(usual, long int) int {
	if width.Long {
		return long
	}
	return usual
}

// TestModel visits states of the protocol, under each disaster: all of them in make test-long, but where there are more than
// fit into the memory of a small machine; else a part where there are many.
func TestModel(t *testing.T) {
	total, start := 0, time.Now()
	for _, run := range []struct {
		class   class
		lasting bool // the store loses nothing
		ahead   bool
		prompt  bool
		limit   int
		part    bool // there are more states
	}{
		{none, false, true, false, 1e7, false},
		{none, true, true, false, inLong(400_000, 10_000_000), !width.Long},
		{emptied, false, true, false, 1e7, false},
		{vanished, false, true, false, inLong(400_000, 10_000_000), !width.Long},
		{clockSet, false, false, false, inLong(200_000, 10_000_000), true},
		{restored, false, true, true, inLong(400_000, 20_000_000), !width.Long},
		{replaced, true, true, true, inLong(200_000, 10_000_000), true},
		{replaced, false, false, false, inLong(200_000, 40_000_000), true},
		{replaced, false, true, false, inLong(200_000, 1_000_000), true},
	} {
		m := model{rules: rulesFor(run.class, run.lasting), class: run.class, owners: 2, numbers: 1, ahead: run.ahead, prompt: run.prompt}
		states, whole, trace := m.search(run.limit)
		assert.Equal(t, run.class.name+": a timestamp is used twice, or a number is given that cannot be used", trace, "")
		assert.True(t, whole || run.part, "%s: there are more than %d states", run.class.name, run.limit)
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
		name    string
		guard   guard
		class   class
		lasting bool // the store loses nothing: no rest makes good what the rule does
		prompt  bool
	}{
		{"fence", guardFence, none, false, false},
		{"start", guardStart, none, true, false},
		{"token", guardToken, none, false, false},
		{"release", guardRelease, none, true, false},
		{"quarantine", guardQuarantine, emptied, false, false},
		{"incarnation", guardIncarnation, replaced, false, false},
		{"reclaim", guardReclaim, replaced, true, false},
		{"activation", guardActivation, vanished, false, false},
		{"gap", guardGap, vanished, false, false},
		{"silence", guardSilence, replaced, true, true},
		{"used", guardUsed, none, false, false},
		{"forgotten", guardForgotten, restored, false, true},
		{"rest", guardRest, restored, false, true},
		{"waits", guardWaits, restored, false, true},
		{"reach", guardReach, clockSet, false, false},
		// The deadline is a second line behind the gap, for a store whose clock
		// cannot be trusted to notice it: it holds where messages are not late.
		{"gap and deadline", guardGap | guardDeadline, vanished, false, true},
	} {
		rules := rulesFor(run.class, run.lasting)
		rules.without = run.guard
		m := model{rules: rules, class: run.class, owners: 2, numbers: 1, ahead: true, prompt: run.prompt}
		states, _, trace := m.search(5e6)
		assert.True(t, trace != "", "without %s, %s: nothing found in %d states", run.name, run.class.name, states)
		t.Logf("without %s, %s, after %d states:\n%s", run.name, run.class.name, states, trace)
	}
	rules := rulesFor(vanished, false)
	rules.without = guardGap
	m := model{rules: rules, class: vanished, owners: 2, numbers: 1, ahead: true, prompt: true}
	states, whole, trace := m.search(5e6)
	assert.True(t, trace == "" && whole, "without gap but with the deadline, messages prompt: %d states, all of them: %t\n%s", states, whole, trace)
}
