package main

import (
	"strings"
	"testing"

	"idproxy/cmd/idproxy/migrate"
	"idproxy/integration/assert"
	"idproxy/monitor"
)

// TestStatusPrintsWhatItIsTold: what a server or a store said does nothing to a terminal, and makes
// no line of its own.
func TestStatusPrintsWhatItIsTold(t *testing.T) {
	const hostile = "a \"quoted\" \\ \x1b[31m\x07\nb\tc\u202e é"
	s := &monitor.State{
		Version: "v", Config: monitor.Config{Problem: hostile}, Listeners: []monitor.Listener{{Name: "l", Problem: hostile, Unbegun: []monitor.Unbegun{{Problem: hostile}}}},
		Sources: []monitor.Source{{Name: "s", Problem: hostile}}, Stores: []monitor.Store{{Name: "m", Problem: hostile}}, Switches: []monitor.Switch{{Name: "w", Problem: hostile}},
	}
	var out strings.Builder
	assert.Must(t, printState(&out, s))
	const want = `a "quoted" \ \x1b[31m\a\nb\tc\u202e é`
	if n := strings.Count(out.String(), want); n != 6 {
		t.Errorf("%q stands there %d times, want 6:\n%q", want, n, out.String())
	}
	i := strings.IndexFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x202e })
	assert.True(t, i < 0, "%q has a control character", out.String())
	n := strings.Count(out.String(), "\n")
	assert.True(t, n == 19, "%d lines:\n%s", n, out.String())
}

// TestRunNamesForce: a step that --force would run says so, and no other.
func TestRunNamesForce(t *testing.T) {
	for _, tt := range []struct {
		levels []string
		failed bool
		named  bool
	}{
		{[]string{migrate.LevelForce, migrate.LevelNote}, true, true},
		{[]string{migrate.LevelForce, migrate.LevelError}, true, false},
		{[]string{migrate.LevelError}, true, false},
		{[]string{migrate.LevelForce}, false, false}, // it was forced
	} {
		r := &migrate.Report{Failed: tt.failed}
		for _, level := range tt.levels {
			r.Findings = append(r.Findings, migrate.Finding{Level: level, Message: "a reason"})
		}
		var out strings.Builder
		assert.Must(t, (&migrateFlags{run: "drop"}).printRun(&out, r))
		assert.True(t, strings.Contains(out.String(), "--force") == tt.named, "%+v: %s", tt, &out)
	}
}
