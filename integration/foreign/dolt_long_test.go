//go:build long

package foreign

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
)

// TestDolt: what it is is found out. It takes some minutes to build.
func TestDolt(t *testing.T) {
	program := build(t, "dolt", "github.com/dolthub/dolt/go/cmd/dolt")
	home := t.TempDir()
	shop := filepath.Join(home, "shop")
	assert.Must(t, os.Mkdir(shop, 0o700))
	dolt := func(in string, args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir = in
		cmd.Env = append(cmd.Environ(), "HOME="+home, "DOLT_ROOT_PATH="+home)
		return cmd
	}
	for _, args := range [][]string{
		{"config", "--global", "--add", "user.name", "test"},
		{"config", "--global", "--add", "user.email", "test@localhost"},
		{"config", "--global", "--add", "metrics.disabled", "true"},
		{"init"},
	} {
		out, err := dolt(shop, args...).CombinedOutput()
		assert.Must(t, err, fmt.Sprintf("%q", args), string(out))
	}
	server := start(t, "root", func(addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		return dolt(home, "sql-server", "--host", host, "--port", port, "--data-dir", home)
	})
	testForms(t, server, "auto", ofGoMySQLServer)
}
