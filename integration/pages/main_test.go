package pages

import (
	"fmt"
	"os"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// A wide run takes place in a network of its own, in which the addresses of pages exist: see world.
func TestMain(m *testing.M) {
	if !width.Matrix() || program() == "" && !mayBeApart() {
		harness.Main(m)
	}
	if program() == "" {
		status, err := outside()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(status)
	}
	if err := inside(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	harness.Main(m)
}
