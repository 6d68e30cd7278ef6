package chaos

import (
	"bytes"
	"os"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestFaultsAreInTestBuildsOnly looks for what moves clocks in the program that users get.
func TestFaultsAreInTestBuildsOnly(t *testing.T) {
	for _, build := range []struct {
		name string
		make func() (string, error)
		want bool
	}{
		{"as users get it", func() (string, error) { return harness.BuildPlain() }, false},
		{"for tests", harness.BuildFaults, true},
	} {
		path := assert.Of(build.make()).Must(t)
		program := assert.Of(os.ReadFile(path)).Must(t)
		for _, trace := range []string{harness.FaultsVariable, "idproxy/idsource/faults"} {
			assert.Equal(t, "the program "+build.name+" has "+trace, bytes.Contains(program, []byte(trace)), build.want)
		}
	}
}
