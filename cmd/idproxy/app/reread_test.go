package app

import (
	"testing"
	"time"

	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/integration/harness"
)

// TestRenewed: of the certificates that are in force those have another end whose section was read
// again, and no others.
func TestRenewed(t *testing.T) {
	used, unused := t.TempDir(), t.TempDir()
	write := func(lasts time.Duration) {
		harness.WriteCertificate(t, used, lasts)
		harness.WriteCertificate(t, unused, lasts)
	}
	write(time.Hour)
	section := func(dir string) *config.ListenerTLS { return &config.ListenerTLS{Cert: dir + "/server.pem"} }
	cfg := &config.Config{Listeners: []config.Listener{{Name: "a", TLS: section(used)}, {Name: "ab", TLS: section(unused)}}}
	log, _ := said()
	c := &certificates{log: log}
	c.add(cfg)
	write(48 * time.Hour)
	c.add(cfg)
	c.renew(cfg, []tlsconfig.Reading{{Section: "listeners.a.tls"}})
	for i, late := range []bool{true, false} {
		if one := c.state()[i]; (time.Until(one.Ends) > 24*time.Hour) != late {
			t.Errorf("%s ends %v", one.Name, one.Ends)
		}
	}
}
