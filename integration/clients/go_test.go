package clients

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestGo(t *testing.T) {
	program := filepath.Join(t.TempDir(), "gorm")
	if out, err := exec.Command("go", "build", "-o", program, "./gorm").CombinedOutput(); err != nil {
		t.Fatalf("build gorm: %v\n%s", err, out)
	}
	const all = "single batch repeated commit rollback upsert failed explicit zero plain"
	const gorm = "single batch children rollback upsert failed explicit mixed plain"
	const text = "interpolateParams=true"
	testClients(
		t,
		client{name: "GORM, interpolating", command: script(program, "orm", text), scenarios: gorm},
		client{name: "GORM", command: script(program, "orm", ""), scenarios: gorm},
		client{name: "database sql, interpolating", command: script(program, "sql", text), scenarios: all},
		client{name: "database sql", command: script(program, "sql", ""), scenarios: all},
		client{name: "database sql, found rows", command: script(program, "sql", "clientFoundRows=true"), scenarios: all},
	)
}
