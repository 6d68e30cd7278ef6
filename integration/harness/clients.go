package harness

import (
	"os"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// CommandLine is a command-line client that users have.
type CommandLine struct {
	Name string
	Path string // PATH=..., where the client is called mysql
}

// Clients are those of MariaDB and MySQL, the newest of both among them: what pages print must
// work with each.
func Clients(t testing.TB) (list []CommandLine) {
	t.Helper()
	for _, one := range []struct {
		name  string
		kind  servers.Kind
		newer bool
	}{{"MariaDB", servers.MariaDB, false}, {"MariaDB 11.8", servers.MariaDB, true}, {"MySQL", servers.MySQL, false}} {
		dir := t.TempDir()
		assert.Must(t, servers.WriteClient(dir, one.kind, one.newer))
		list = append(list, CommandLine{one.name, "PATH=" + dir + ":" + os.Getenv("PATH")})
	}
	return list
}
