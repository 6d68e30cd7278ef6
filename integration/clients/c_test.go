package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/servers"
)

func TestC(t *testing.T) {
	need(t, "gcc", "mariadb_config")
	program := filepath.Join(t.TempDir(), "stmt")
	flags, err := exec.Command("mariadb_config", "--cflags", "--libs").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-std=gnu11", "-Wall", "-O1", "-o", program, "c/stmt.c"}, strings.Fields(string(flags))...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("compile c/stmt.c: %v\n%s", err, out)
	}
	const prepared = "repeated bound batch two upsert failed rollback direct cursor reset reprepared no_list"
	testClients(
		t,
		client{name: "text", command: script(program, "text"), scenarios: "query"},
		client{name: "prepared", command: script(program, "prepared"), scenarios: prepared},
		client{name: "prepared, found rows", command: script(program, "prepared", "found"), scenarios: prepared},
		client{name: "bulk", command: script(program, "bulk"), scenarios: "bulk bulk_text bulk_ids", servers: []servers.Kind{servers.MariaDB}},
	)
}
