//go:build long

package foreign

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestDolt: what it is is found out. It takes some minutes to build.
func TestDolt(t *testing.T) {
	program := build(t, "dolt", "github.com/dolthub/dolt/go/cmd/dolt")
	home := t.TempDir()
	shop := filepath.Join(home, "shop")
	if err := os.Mkdir(shop, 0o700); err != nil {
		t.Fatal(err)
	}
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
		if out, err := dolt(shop, args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	server := start(t, "root", func(addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		return dolt(home, "sql-server", "--host", host, "--port", port, "--data-dir", home)
	})
	testForms(t, server, "auto", ofGoMySQLServer)
}
