package examples

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"idproxy/config"
)

var (
	aBackend = regexp.MustCompile(`address = "([\d.]+)", port = (\d+), hostgroup = (\d+)`)
	aTarget  = regexp.MustCompile(`(?:default|destination)_hostgroup = (\d+)`)
)

// proxysqlFaults compares a configuration of ProxySQL with idproxy's: 10 is for idproxy, 20 for
// servers behind it, and each group that something is sent to has a server.
func proxysqlFaults(cnf string, c *config.Config) (faults []string) {
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

// TestProxySQL holds what can be held of an example that is not run.
func TestProxySQL(t *testing.T) {
	path := filepath.Join(folder, "proxysql", "idproxy.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(path, text, func(string) (string, bool) { return "secret", true })
	if err != nil {
		t.Fatal(err)
	}
	cnf, err := os.ReadFile(filepath.Join(folder, "proxysql", "proxysql.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	if faults := proxysqlFaults(string(cnf), c); faults != nil {
		t.Errorf("%q", faults)
	}
	for _, change := range [][2]string{{"port = 3307", "port = 3306"}, {"127.0.0.11", "127.0.0.10"}, {"destination_hostgroup = 20", "destination_hostgroup = 30"}, {"multiplex = 0", "multiplex = 1"}} {
		broken := regexp.MustCompile(regexp.QuoteMeta(change[0])).ReplaceAllString(string(cnf), change[1])
		if proxysqlFaults(broken, c) == nil {
			t.Errorf("%q in place of %q is not found", change[1], change[0])
		}
	}
}
