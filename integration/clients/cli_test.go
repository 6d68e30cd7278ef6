package clients

import (
	"os/exec"
	"testing"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// shell runs a server's command-line client on cli/batch.sql. It goes on after an error, and shows
// each statement's outcome.
func shell(s *servers.Server, args ...string) func(addr, db string) *exec.Cmd {
	args = append(args, "--batch", "--force", "--skip-column-names", "-v", "-v", "--default-character-set=utf8mb4")
	return func(addr, db string) *exec.Cmd {
		client := s.ClientTo(addr, append(args[:len(args):len(args)], "--user="+db, db)...) // the last of two wins
		return exec.Command("sh", append([]string{"-c", `exec "$@" <cli/batch.sql 2>&1`, "sh"}, client.Args...)...)
	}
}

func TestCommandLine(t *testing.T) {
	const all = "single batch commit rollback upsert ignore failed explicit zero variable plain several"
	testClients(
		t,
		client{name: "mariadb", command: shell(harness.MariaDB(t)), scenarios: all},
		client{name: "mysql", command: shell(harness.MySQL(t), "--plugin-dir=../../.tools/mysql97/usr/lib/mysql/plugin"), scenarios: all},
	)
}
