package packages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
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
	out, err := asRoot(t.Context(), name, args...).CombinedOutput()
	assert.Must(t, err, fmt.Sprintf("%s %q", name, args), string(out))
}

// debian unpacks a bare Debian.
func debian(t *testing.T) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bare-") // not TempDir, which cannot remove files of root
	assert.Must(t, err)
	t.Cleanup(func() { _ = asRoot(context.Background(), "rm", "-rf", dir).Run() })
	must(t, "chmod", "0755", dir)
	must(t, "tar", "-C", dir, "-xf", bareDebian)
	return dir
}

// run runs a script of the repository, and returns what it says.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", name), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it removes what it has made
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	assert.Must(t, err, fmt.Sprintf("%s %q", name, args), string(out))
	return string(out)
}

// TestPackages installs the packages of this commit in a bare Debian.
func TestPackages(t *testing.T) {
	width.Wide(t, "it takes two minutes, and a gigabyte")
	began := time.Now()
	walk := t.TempDir()
	run(t, "dist.sh", "package", walk)
	t.Logf("%v for the packages", time.Since(began).Round(time.Second))
	out, err := exec.CommandContext(t.Context(), "cp", "testdata/walk.sh", walk).CombinedOutput()
	assert.Must(t, err, string(out))
	one := func(t *testing.T, format string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(walk, "*."+format))
		assert.MustTrue(t, err == nil && len(found) == 1, "packages %q, %v", found, err)
		return found[0]
	}
	t.Run("rpm", func(t *testing.T) { installRPM(t, one(t, "rpm")) })
	t.Run("deb", func(t *testing.T) { bootWith(t, walk, one(t, "deb")) })
}

// bootWith boots Debian, which installs its package. How long it takes to the first rows is in
// docs/operations.md.
func bootWith(t *testing.T, walk, deb string) {
	assert.Must(t, os.Rename(deb, filepath.Join(walk, "idproxy.deb")))
	booted := time.Now()
	log := run(t, "boot-bare.sh", walk, "bash", "walk.sh")
	t.Logf("%v in Debian:\n%s", time.Since(booted).Round(time.Second), log)
	assert.True(t, strings.Contains(log, "s: done\n"), "the walk did not end")
}

// installRPM has rpm install a package where systemd does not run, upgrade it over a configuration that
// was changed, and remove it. There is no distribution with RPM to be had.
func installRPM(t *testing.T, path string) {
	dir := debian(t)
	config := filepath.Join(dir, "etc/idproxy/idproxy.yaml")
	rpm := func(args ...string) {
		t.Helper()
		must(t, "rpm", append([]string{"--root", dir, "--nodeps"}, args...)...)
	}
	inside := func(args ...string) { t.Helper(); must(t, "chroot", append([]string{dir}, args...)...) }
	inside("groupadd", "--system", "idproxy") // somebody has made it by hand, and a configuration
	inside("sh", "-c", "install -d /etc/idproxy; echo 'listeners: [{listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}]' >/etc/idproxy/idproxy.yaml")
	rpm("--install", path)
	inside("grep", "-q", "^listeners: .{listen", "/etc/idproxy/idproxy.yaml")
	inside("mv", "/etc/idproxy/idproxy.yaml.rpmnew", "/etc/idproxy/idproxy.yaml")
	out, err := exec.CommandContext(t.Context(), "rpm", "-qp", "--requires", path).CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), "(shadow-utils or shadow)"), "requires: %v\n%s", err, out)
	rpm("--verify", "idproxy")
	inside("idproxy", "check")
	inside("runuser", "-u", "idproxy", "--", "idproxy", "check")
	inside("sh", "-c", "! runuser -u nobody -- cat /etc/idproxy/idproxy.yaml")
	inside("runuser", "-u", "idproxy", "--", "touch", "/var/lib/idproxy/state")
	inside("sh", "-c", "echo '# mine' >>/etc/idproxy/idproxy.yaml")
	inside("rm", "/usr/bin/idproxy")
	assert.Fails(t, "rpm does not see that the program is missing", asRoot(t.Context(), "rpm", "--root", dir, "--nodeps", "--verify", "idproxy").Run(), "")
	rpm("--upgrade", "--force", path)
	inside("grep", "mine", "/etc/idproxy/idproxy.yaml")
	inside("idproxy", "--version")
	rpm("--erase", "idproxy")
	must(t, "grep", "mine", config+".rpmsave")
	must(t, "test", "-e", filepath.Join(dir, "var/lib/idproxy/state"))
	must(t, "test", "!", "-e", filepath.Join(dir, "usr/bin/idproxy"))
}
