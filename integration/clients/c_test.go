package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

func TestC(t *testing.T) {
	need(t, "gcc", "mariadb_config")
	program := filepath.Join(t.TempDir(), "stmt")
	flags := assert.Of(exec.Command("mariadb_config", "--cflags", "--libs").Output()).Must(t)
	args := append([]string{"-std=gnu11", "-Wall", "-O1", "-o", program, "c/stmt.c"}, strings.Fields(string(flags))...)
	out, err := exec.Command("gcc", args...).CombinedOutput()
	assert.MustTrue(t, err == nil && len(out) == 0, "compile c/stmt.c: %v\n%s", err, out)
	const prepared = "repeated bound batch two upsert failed rollback direct cursor reset reprepared no_list"
	testClients(
		t,
		client{name: "text", command: script(program, "text"), scenarios: "query"},
		client{name: "prepared", command: script(program, "prepared"), scenarios: prepared},
		client{name: "prepared, found rows", command: script(program, "prepared", "found"), scenarios: prepared},
		client{name: "bulk", command: script(program, "bulk"), scenarios: "bulk bulk_text bulk_ids", servers: []servers.Kind{servers.MariaDB}},
	)
}
