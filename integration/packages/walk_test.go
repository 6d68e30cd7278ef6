package packages

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/width"
)

const root = "../.."

// run runs a script of the repository, and returns what it says.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it removes what it has made
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestBareDebian installs the Debian package of this commit in a bare Debian, which boots. How long
// it takes to the first rows is in docs/operations.md.
func TestBareDebian(t *testing.T) {
	if !width.Matrix() {
		return // it takes two minutes, and a gigabyte
	}
	began := time.Now()
	walk := t.TempDir()
	run(t, "dist.sh", "package", walk)
	t.Logf("%v for the package", time.Since(began).Round(time.Second))
	if out, err := exec.CommandContext(t.Context(), "cp", "testdata/walk.sh", walk).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	booted := time.Now()
	log := run(t, "boot-bare.sh", walk, "bash", "walk.sh")
	t.Logf("%v in Debian:\n%s", time.Since(booted).Round(time.Second), log)
	if !strings.Contains(log, "s: done\n") {
		t.Error("the walk did not end")
	}
}
