package migrate

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

var rewrite = flag.Bool("rewrite", false, "write what idproxy migrate prints into docs/migrating.md; review the difference like code")

// TestPage: docs/migrating.md shows what idproxy migrate prints.
func TestPage(t *testing.T) {
	t.Parallel()
	s := newSite(t, 10)
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
