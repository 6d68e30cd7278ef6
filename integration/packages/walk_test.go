package packages

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/integration/width"
)

const root = "../.."

// bareDebian is what scripts/install-servers.sh makes.
const bareDebian = root + "/.tools/bare.tar"

// asRoot is a command of root.
func asRoot(ctx context.Context, name string, args ...string) *exec.Cmd {
	if os.Getuid() != 0 {
		name, args = "sudo", append([]string{"-n", name}, args...)
	}
	return exec.CommandContext(ctx, name, args...)
}

// must runs a command of root.
func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := asRoot(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// debian unpacks a bare Debian that runs a script when it boots, and then halts. Folder /walk has
// the script, and gets what it says.
func debian(t *testing.T, script string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bare-") // not TempDir, which cannot remove files of root
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = asRoot(context.Background(), "rm", "-rf", dir).Run() })
	must(t, "tar", "-C", dir, "-xf", bareDebian)
	must(t, "mkdir", filepath.Join(dir, "walk"))
	unit := filepath.Join(t.TempDir(), "walk.service")
	err = os.WriteFile(unit, []byte(`[Unit]
After=multi-user.target mariadb.service
[Service]
Type=oneshot
ExecStart=/bin/bash -c 'bash /walk/walk.sh >/walk/log 2>&1; echo $? >/walk/status; systemctl --no-block poweroff'
[Install]
WantedBy=default.target
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	must(t, "install", "-m", "0644", unit, filepath.Join(dir, "etc/systemd/system/walk.service"))
	must(t, "install", script, filepath.Join(dir, "walk/walk.sh"))
	must(t, "systemctl", "--root="+dir, "enable", "walk.service")
	return dir
}

// boot has systemd be process 1 there, in a network of its own, until it halts. It returns what the
// script said, and its status.
func boot(t *testing.T, dir string) (log, status string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	// Debian has control groups of version 2. With version 1 systemd in a container does not wait for
	// a process that it has not started itself, such as one that took over in an upgrade.
	console, err := asRoot(ctx, "env", "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1", "systemd-nspawn", "-q", "--register=no", "--keep-unit", "--private-network", "--boot", "-D", dir).CombinedOutput()
	if err != nil {
		t.Errorf("systemd-nspawn: %v\n%s", err, console)
	}
	said, _ := os.ReadFile(filepath.Join(dir, "walk/log"))
	ended, _ := os.ReadFile(filepath.Join(dir, "walk/status")) // it is missing when the script has not ended
	return string(said), strings.TrimSpace(string(ended))
}

// TestBareDebian installs the Debian package of this commit in a bare Debian, which boots. How long
// it takes to the first rows is in docs/operations.md.
func TestBareDebian(t *testing.T) {
	if !width.Matrix() {
		return // it takes two minutes, and a gigabyte
	}
	began := time.Now()
	built := t.TempDir()
	pack := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/dist.sh"), "package", built)
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%v for the package", time.Since(began).Round(time.Second))
	debs, err := filepath.Glob(filepath.Join(built, "*.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("packages %q, %v", debs, err)
	}
	dir := debian(t, "testdata/walk.sh")
	must(t, "install", "-m", "0644", debs[0], filepath.Join(dir, "walk/idproxy.deb"))
	booted := time.Now()
	log, status := boot(t, dir)
	t.Logf("%v in Debian:\n%s", time.Since(booted).Round(time.Second), log)
	if status != "0" || !strings.Contains(log, "s: done\n") {
		t.Errorf("the walk ended with status %q", status)
	}
}
