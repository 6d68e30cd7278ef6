package clients

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// gorm is the program of Go's clients.
func gorm(t *testing.T) string {
	t.Helper()
	program := assert.Of(harness.BuildOther("./gorm")).Must(t)
	return program
}

func TestGo(t *testing.T) {
	program := gorm(t)
	const all = "single batch repeated commit rollback upsert failed explicit zero plain"
	const orm = "single batch children rollback upsert failed explicit mixed plain"
	const text = "interpolateParams=true"
	testClients(
		t,
		client{name: "GORM, interpolating", command: script(program, "orm", text), scenarios: orm},
		client{name: "GORM", command: script(program, "orm", ""), scenarios: orm},
		client{name: "database sql, interpolating", command: script(program, "sql", text), scenarios: all},
		client{name: "database sql", command: script(program, "sql", ""), scenarios: all},
		client{name: "database sql, found rows", command: script(program, "sql", "clientFoundRows=true"), scenarios: all},
	)
}
