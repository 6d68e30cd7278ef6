package migrate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// TestFromTerminal: someone at a terminal answers the questions of init, of tables on two shards and an
// etcd cluster. What it writes passes check, and a proxy of it walks the tables to enforce and back.
func TestFromTerminal(t *testing.T) {
	width.Wide(t, "it starts etcd")
	cluster := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	s := newSite(t, 10)
	dir := t.TempDir()
	path := filepath.Join(dir, "idproxy.yaml")
	c := exec.CommandContext(t.Context(), s.program, "init", "--etcd", cluster.Addr, "--switch", "migration", "--schema", s.shop, path)
	tty := assert.Of(pty.Start(c)).Must(t)
	defer tty.Close()
	var screen strings.Builder
	for _, said := range [][2]string{
		{"Server of shard0, host:port (nothing when that is all): ", s.shards[0].Addr},
		{"Server of shard1, host:port (nothing when that is all): ", "shard1=" + s.shards[1].Addr},
		{"Server of shard2, host:port (nothing when that is all): ", ""},
		{"Account that reads them: ", servers.AppUser},
		{"How many processes of idproxy will run (1): ", "2"},
		{"Password of account " + servers.AppUser + ": ", servers.AppPassword + ""},
		{"Next: read the file", ""},
	} {
		buffer := make([]byte, 4096)
		for !strings.Contains(screen.String(), said[0]) {
			n, err := tty.Read(buffer)
			screen.Write(buffer[:n])
			assert.MustTrue(t, err == nil, "nobody says %q: %v\n%s", said[0], err, &screen)
		}
		_, after, _ := strings.Cut(screen.String(), said[0])
		screen.Reset()
		screen.WriteString(after)
		assert.Of(fmt.Fprintln(tty, said[1])).Must(t)
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &screen)
	}
	text := assert.Of(os.ReadFile(path)).Must(t)
	s.says(string(text), "etcd: {endpoints: [\""+cluster.Addr+"\"]}", "For 2 proxies.", "${IDPROXY_PASSWORD}")
	t.Setenv("IDPROXY_PASSWORD", servers.AppPassword)
	check := exec.CommandContext(t.Context(), s.program, "check", "--online", "--config", path)
	out, err := check.CombinedOutput()
	assert.NoError(t, err, "check --online", string(out))
	// Each of the two gets an admin socket of its own.
	apart := strings.NewReplacer(`"127.0.0.1:3307"`, "127.0.0.1:0", `"127.0.0.1:3308"`, "127.0.0.1:0", "admin: {socket: \"unix:./admin.sock\"}\n", "")
	s.restart(0, apart.Replace(string(text)))
	s.restart(1, apart.Replace(string(text)))
	a := s.run()
	s.begin("observe", "lift", "enforce")
	a.more(60)
	s.must("--run enforce --back")
	a.more(30)
	s.must("--run lift --back")
	a.end(10)
}
