package main

import (
	"fmt"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestSourceShowServerOut: a source is not called fine while one of the servers behind it is out.
func TestSourceShowServerOut(t *testing.T) {
	both := harness.Servers(t)
	names := []string{harness.Database(t, both[0]), harness.Database(t, both[1])}
	dsns := []string{both[0].DSN(names[0]), both[1].DSN(names[1])}
	config := func(second string) string {
		return harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {several: {mysql: {dsns: [%q, %q]}}}
sources: {ticket: {segment: {store: several}}}
`, dsns[0], second))
	}
	path := config(dsns[1])
	if got := runWith(t, "", "source", "set", "ticket", "100", "--config", path); got.status != statusFine {
		t.Fatalf("set: %+v", got)
	}
	got := runWith(t, "", "source", "show", "ticket", "--config", path)
	assert.True(t, got.status == statusFine, "both are there: %+v", got)
	path = config("app:app@tcp(127.0.0.1:1)/" + names[1])
	for _, args := range [][]string{{}, {"--json"}} {
		got = runWith(t, "", append([]string{"source", "show", "ticket", "--config", path}, args...)...)
		assert.True(t, got.status == statusFinding, "one is out: status %d, %s", got.status, got.out)
		holds(t, "show", got.out, "127.0.0.1:1")
		if len(args) == 0 {
			holds(t, "show", got.out, "state   not all of its servers are used")
		}
	}
}
