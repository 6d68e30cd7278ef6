package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

// closed is what keeps a container from changing anything but its volumes.
type closed struct {
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

// TestComposeIsClosed holds that the service has what TestReadOnlyRoot shows that it can do with.
func TestComposeIsClosed(t *testing.T) {
	var c struct {
		Services map[string]closed `yaml:"services"`
	}
	assert.Must(t, yaml.Unmarshal([]byte(readCompose(t)), &c))
	s := c.Services["idproxy"]
	assert.True(t, s.ReadOnly && fmt.Sprint(s.CapDrop, s.SecurityOpt) == "[ALL] [no-new-privileges:true]", "%+v", s)
}

// nonroot is the user of the image.
const nonroot = 65532

// unshare begins a command that has mounts of its own. In a chroot, where / is no mount point, it cannot
// change how they propagate.
const unshare = "unshare -m --propagation unchanged"

// inContainer is a script that starts a program as the container has it: nothing can be written but
// the volume, by a user without privileges. Its root is a folder on which / is mounted once more, for
// in a chroot / itself cannot be remounted.
func inContainer(program, root, volume string) string {
	return fmt.Sprintf(`exec `+unshare+` sh -ec '
mount --make-rprivate / 2>/dev/null || true
mount --rbind / %[2]q
mount --make-rprivate %[2]q
cd %[2]q
mount --bind .%[3]q .%[3]q
for at in / /dev/shm /run %[4]q; do if mountpoint -q ".$at"; then mount -o remount,bind,ro ".$at"; fi; done
exec chroot . setpriv --reuid %[5]d --regid %[5]d --clear-groups --no-new-privs --bounding-set=-all "$0" "$@"' %[1]q "$@"`,
		program, root, volume, os.TempDir(), nonroot)
}

// newRoot is a folder for the root of [inContainer].
func newRoot(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("", "idproxy-root-") // not t.TempDir: with / on it, it must not be removed with what it holds
	assert.Must(t, err)
	t.Cleanup(func() {
		_ = exec.Command("umount", "--recursive", "--lazy", root).Run() // from a chroot a mount may have come here, too
		assert.NoError(t, os.Remove(root))
	})
	return root
}

// copied returns a copy of a program that everybody can run.
func copied(t *testing.T, from, dir string) string {
	t.Helper()
	text := assert.Of(os.ReadFile(from)).Must(t)
	to := filepath.Join(dir, "idproxy")
	assert.Must(t, os.WriteFile(to, text, 0o755))
	return to
}

// TestReadOnlyRoot lives on a file system of which only the volume can be written.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	width.Need(t, "the right to have mounts of its own (unshare)", exec.Command("sh", "-c", unshare+" true").Run() == nil)
	server := harness.MySQL(t)
	dir, root := t.TempDir(), newRoot(t)
	assert.Must(t, os.Chmod(filepath.Dir(dir), 0o755))
	volume := filepath.Join(dir, "volume")
	assert.Must(t, os.Mkdir(volume, 0o700))
	assert.Must(t, os.Chown(volume, nonroot, nonroot))
	writes := func(path string) bool {
		t.Helper()
		out, err := exec.Command("sh", "-c", inContainer("/bin/sh", root, volume), "sh", "-c", "echo tried; echo 1 >"+strconv.Quote(path)).CombinedOutput()
		assert.MustTrue(t, strings.HasPrefix(string(out), "tried"), "the container does not start: %v, %s", err, out)
		return err == nil
	}
	assert.Must(t, os.Mkdir(filepath.Join(dir, "beside"), 0o777))
	assert.Must(t, os.Chmod(filepath.Join(dir, "beside"), 0o777)) // everybody may, but for the mount
	assert.MustTrue(t, writes(filepath.Join(volume, "x")) && !writes(filepath.Join(dir, "beside", "x")), "the volume cannot be written, or something beside it can")
	db := harness.Database(t, server)
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %[1]q}]
admin: {listen: "127.0.0.1:0"}
stores: {here: {file: {dir: %[3]q}}}
sources: {ids: {segment: {store: here, start: 1000}}}
rules: [{table: %[2]s.t, column: id, source: ids}]
`, server.Addr, db, filepath.Join(volume, "data"))
	script := fmt.Sprintf("chmod a+r %q\n", filepath.Join(dir, "idproxy.yaml")) + inContainer(copied(t, program(t), dir), root, volume)
	start(t, server, db, dir, config, script).whole("a")
}
