package migration

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

var rewrite = flag.Bool("rewrite", false, "write what idproxy migrate prints into docs/migrating.md; review the difference like code")

// TestPage: docs/migrating.md shows what idproxy migrate prints.
func TestPage(t *testing.T) {
	s := startSite(t)
	var printed strings.Builder
	printed.WriteString("\n    $ idproxy init --switch migration --server shard0=db0:3306 --server shard1=db1:3306 --account idproxy --password-file password --proxies 2 --schema shop\n")
	for line := range strings.Lines(s.plain(s.initial())) {
		printed.WriteString(strings.TrimRight("    "+line, " \n") + "\n")
	}
	for _, args := range []string{"", "--run observe", "--run lift", "--run enforce", "--run watch", "--run drop", "--run drop --back", "--run watch --back", "--run enforce --back", "--run lift --back"} {
		shown := "idproxy migrate --plan plan.json " + args
		if args == "" {
			shown += "--proxy 10.0.0.7:9307 --proxy 10.0.0.8:9307"
		}
		printed.WriteString("\n    $ " + strings.TrimSpace(shown) + "\n")
		for line := range strings.Lines(s.plain(s.must(args))) {
			printed.WriteString(strings.TrimRight("    "+line, " \n") + "\n")
		}
	}
	out, status := s.migrate("--json")
	var report map[string]any
	err := json.Unmarshal([]byte(out), &report)
	assert.True(t, err == nil && status == 0 && report["state"] == "observe" && len(report["steps"].([]any)) == 5, "--json: %v, status %d: %s", err, status, out)
	for _, args := range [][]string{{"--back"}, {"--run", "leap"}, {"more"}} {
		out, status := s.migrate(args...)
		assert.True(t, status == 2, "%q: status %d: %s", args, status, out)
	}
	const page, heading = "../../docs/migrating.md", "## What it prints\n"
	data := assert.Of(os.ReadFile(page)).Must(t)
	before, after, ok := strings.Cut(string(data), heading)
	assert.MustTrue(t, ok, "%s has no %q", page, heading)
	if *rewrite {
		assert.Must(t, os.WriteFile(page, []byte(before+heading+printed.String()), 0o644))
	} else if after != printed.String() {
		t.Errorf("%s shows:\n%s\nit prints:\n%s\n(-rewrite writes that)", page, after, printed.String())
	}
}

// initial is what idproxy init prints of the tables, as they are before the first step.
func (s *site) initial() string {
	s.t.Helper()
	dir := s.t.TempDir()
	c := exec.CommandContext(s.t.Context(), s.program, "init", "--switch", "migration", "--server", "shard0="+s.shards[0].Addr, "--server", "shard1="+s.shards[1].Addr,
		"--account", servers.AppUser, "--password-env", "PASSWORD", "--proxies", "2", "--schema", s.shop)
	c.Dir, c.Env = dir, append(os.Environ(), "PASSWORD="+servers.AppPassword)
	out, err := c.CombinedOutput()
	assert.Must(s.t, err, "init", string(out))
	return strings.NewReplacer(s.shards[0].Addr, "db0:3306", s.shards[1].Addr, "db1:3306", "-- GRANT SELECT, INSERT ON `"+s.shop+"`.* TO '"+servers.AppUser, "-- GRANT SELECT, INSERT ON `"+s.shop+"`.* TO 'app",
		"'"+servers.AppUser+"'@", "'idproxy'@").Replace(string(out))
}

// plain has what differs from run to run be what it is on the page.
func (s *site) plain(out string) string {
	for i, address := range []string{"10.0.0.7:9307", "10.0.0.8:9307"} {
		out = strings.ReplaceAll(out, s.proxies[i].socket, address)
	}
	out = strings.ReplaceAll(strings.ReplaceAll(out, s.plan, "plan.json"), s.shop, "shop")
	for pattern, with := range map[string]string{
		`20[0-9-]+T[0-9:]+Z  [^ \n]+`: "2026-11-24T10:00:00Z  ann@ops", `within [0-9.]+m?s\n`: "within 60ms\n",
		`(?m)^PROXY +`: "PROXY          ", `(?m)^(10\.0\.0\.[78]:9307) +`: "$1  ",
	} {
		out = regexp.MustCompile(pattern).ReplaceAllString(out, with)
	}
	return out
}

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
	assert.Must(t, c.Wait(), &screen)
	text := assert.Of(os.ReadFile(path)).Must(t)
	s.says(string(text), "etcd: {endpoints: [\""+cluster.Addr+"\"]}", "For 2 proxies.", "${IDPROXY_PASSWORD}")
	t.Setenv("IDPROXY_PASSWORD", servers.AppPassword)
	out, err := harness.Command(t, "check", "--online", "--config", path)
	assert.NoError(t, err, "check --online", out)
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
