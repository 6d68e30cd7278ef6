package pages

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// twoPorts are free ports, one behind the other.
func twoPorts(t *testing.T) (int, int) {
	t.Helper()
	for range 100 {
		_, port, _ := net.SplitHostPort(harness.FreeAddr(t)) // it has one
		first := assert.Of(strconv.Atoi(port)).Must(t)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+1)); err == nil {
			l.Close()
			return first, first + 1
		}
	}
	t.Fatal("no two ports are free")
	return 0, 0
}

// TestQuickStart does what docs/quick-start.md says, on two servers, and compares what it shows.
func TestQuickStart(t *testing.T) {
	width.Wide(t, "it starts two servers")
	const page = "docs/quick-start.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	assert.Must(t, err)
	program := assert.Of(harness.BuildPlain()).Must(t)
	var shards [2]*servers.Server
	for i := range shards {
		shards[i] = harness.StartServer(t, servers.MariaDB, servers.Options{})
	}
	first, second := twoPorts(t)
	port := func(s *servers.Server) string {
		_, port, _ := net.SplitHostPort(s.Addr)
		return port
	}
	here := strings.NewReplacer(
		"bin/idproxy init", fmt.Sprintf("bin/idproxy init --listen 127.0.0.1:%d", first),
		"23306", port(shards[0]), "23307", port(shards[1]), "-P 3307", fmt.Sprint("-P ", first), "-P 3308", fmt.Sprint("-P ", second),
	)
	var script, shown []string
	for _, b := range blocksOf(page, string(text)) {
		switch {
		case strings.HasPrefix(b.text, "CREATE DATABASE"):
			for _, s := range shards {
				db := harness.Open(t, s.Config(""), "")
				harness.MustExec(t, db, "DROP USER app@'%'") // the server of tests has one
				for _, statement := range strings.Split(strings.TrimSpace(b.text), ";\n") {
					harness.MustExec(t, db, strings.TrimSuffix(statement, ";"))
				}
			}
		case strings.HasPrefix(b.text, "printf"), strings.HasPrefix(b.text, "bin/idproxy"):
			script = append(script, here.Replace(b.text))
		default:
			shown = append(shown, b.text)
		}
	}
	assert.MustTrue(t, len(script) == 3 && len(shown) == 4, "%d blocks of commands, %d of what is shown", len(script), len(shown))
	for line := range strings.Lines(script[2]) {
		if connect, _, is := strings.Cut(line, " -e "); is { // as each client that users have
			for _, client := range harness.Clients(t) {
				script = append(script, client.Path+" "+connect+" -e 'INSERT INTO orders (item) VALUES (1)'\n")
			}
		}
	}
	dir := t.TempDir()
	assert.Must(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	assert.Must(t, os.Symlink(program, filepath.Join(dir, "bin/idproxy")))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", "trap 'kill $(jobs -p) && wait' EXIT\n"+strings.Join(script, "")+"cat idproxy.yaml")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "idproxy.log"))
		t.Fatalf("%v\n%s%s", err, out, log)
	}
	// Columns of `mysql` are apart by tabs, and the page shows them by spaces.
	said := strings.Join(strings.Fields(string(out)), " ")
	lines := []string{"idproxy.yaml: fine (listeners 2, stores 1, sources 1, rules 1)"}
	for _, b := range shown {
		lines = append(lines, strings.Split(strings.TrimSpace(b), "\n")...)
	}
	for _, line := range lines {
		want := strings.Join(strings.Fields(line), " ")
		assert.True(t, strings.Contains(said, want), "%q is not what it says:\n%s", want, out)
	}
}
