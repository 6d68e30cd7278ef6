package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

var (
	aBackend = regexp.MustCompile(`address = "([\d.]+)", port = (\d+), hostgroup = (\d+)`)
	aTarget  = regexp.MustCompile(`(?:default|destination)_hostgroup = (\d+)`)
)

// inFrontFaults compares a ProxySQL in front of idproxy with idproxy's configuration: 10 is for idproxy, 20 for
// servers behind it, and each group that something is sent to has a server.
func inFrontFaults(cnf string, c *config.Config) (faults []string) {
	listen, primary := c.Listeners[0].Listen.String(), c.Listeners[0].Upstreams[0].String()
	groups := map[string]bool{}
	for _, m := range aBackend.FindAllStringSubmatch(cnf, -1) {
		address := m[1] + ":" + m[2]
		groups[m[3]] = true
		switch m[3] {
		case "10":
			if address != listen {
				faults = append(faults, fmt.Sprintf("writes go to %s, and idproxy is at %s", address, listen))
			}
		case "20":
			if address == listen || address == primary {
				faults = append(faults, "reads go to "+address)
			}
		}
	}
	for _, m := range aTarget.FindAllStringSubmatch(cnf, -1) {
		if !groups[m[1]] {
			faults = append(faults, "no server is in hostgroup "+m[1])
		}
	}
	if len(groups) != 2 || !regexp.MustCompile(`INSERT.*destination_hostgroup = 10, multiplex = 0`).MatchString(cnf) {
		faults = append(faults, "writes have no rule, or no server")
	}
	return faults
}

var (
	anInterface = regexp.MustCompile(`interfaces = "([^"]+)"`)
	aRule       = regexp.MustCompile(`\{ rule_id[^}]*\}`)
)

// behindFaults does so for a ProxySQL behind it: all statements of all users go to one server, over
// the session's own connection.
func behindFaults(cnf string, c *config.Config) (faults []string) {
	l := &c.Listeners[0]
	if m := anInterface.FindStringSubmatch(cnf); m == nil || m[1] != l.Upstream.String() {
		faults = append(faults, fmt.Sprintf("ProxySQL is at %q, and the upstream at %s", m, l.Upstream))
	}
	rules := aRule.FindAllString(cnf, -1)
	if len(rules) != 1 || !regexp.MustCompile(`active = 1, destination_hostgroup = 10, multiplex = 0`).MatchString(rules[0]) {
		faults = append(faults, fmt.Sprintf("rules %q", rules))
	}
	if !regexp.MustCompile(`username = "` + l.Account.User + `"`).MatchString(cnf) {
		faults = append(faults, "the account is no user of ProxySQL")
	}
	if !regexp.MustCompile(`\n +server_version =`).MatchString(cnf) || !regexp.MustCompile(`port = 3306, hostgroup = 10`).MatchString(cnf) {
		faults = append(faults, "there is no version, or no server")
	}
	return faults
}

// TestProxySQL holds what can be held of an example that is not run.
func TestProxySQL(t *testing.T) {
	for name, c := range map[string]struct {
		faults  func(string, *config.Config) []string
		changes [][2]string
	}{
		"in-front": {inFrontFaults, [][2]string{
			{"port = 3307", "port = 3306"}, {"127.0.0.11", "127.0.0.10"}, {"destination_hostgroup = 20", "destination_hostgroup = 30"}, {"multiplex = 0", "multiplex = 1"},
		}},
		"behind": {behindFaults, [][2]string{
			{"127.0.0.3:6033", "127.0.0.3:3306"},
			{"multiplex = 0", "multiplex = 1"},
			{`active = 1, dest`, `active = 1, match_digest = "^SELECT", dest`},
			{`"idproxy"`, `"proxy"`},
			{"server_version", "# server_version"},
			{"hostgroup = 10 }", "hostgroup = 20 }"},
		}},
	} {
		path := filepath.Join(folder, "proxysql", name+".yaml")
		text := assert.Of(os.ReadFile(path)).Must(t)
		parsed := assert.Of(config.Parse(path, text, func(string) (string, bool) { return "secret", true })).Must(t)
		cnf := assert.Of(os.ReadFile(filepath.Join(folder, "proxysql", name+".cnf"))).Must(t)
		faults := c.faults(string(cnf), parsed)
		assert.True(t, faults == nil, "%s: %q", name, faults)
		for _, change := range c.changes {
			broken := strings.ReplaceAll(string(cnf), change[0], change[1])
			assert.True(t, broken != string(cnf) && c.faults(broken, parsed) != nil, "%s: %q in place of %q is not found", name, change[1], change[0])
		}
	}
}
