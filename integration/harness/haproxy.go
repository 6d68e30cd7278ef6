package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/process"
)

// HAProxy starts an HAProxy with this configuration. It ends with the test.
func HAProxy(t testing.TB, config string) *process.Process {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	assert.Must(t, os.WriteFile(path, []byte(config), 0o600))
	p := assert.Of(process.Start(process.Spec{Path: program, Args: []string{"-db", "-f", path}, Log: path + ".log"})).Must(t, "make test installs HAProxy")
	t.Cleanup(func() { assert.NoError(t, p.Kill()) })
	return p
}
