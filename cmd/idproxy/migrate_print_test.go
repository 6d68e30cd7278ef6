package main

import (
	"strings"
	"testing"

	"idproxy/cmd/idproxy/migrate"
	"idproxy/integration/assert"
)

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
