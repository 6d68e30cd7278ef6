package chaos

import (
	"bytes"
	"os"
	"testing"

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
		path, err := build.make()
		if err != nil {
			t.Fatal(err)
		}
		program, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, trace := range []string{harness.FaultsVariable, "idproxy/idsource/faults"} {
			if got := bytes.Contains(program, []byte(trace)); got != build.want {
				t.Errorf("the program %s has %s: %t", build.name, trace, got)
			}
		}
	}
}
