package replay

import (
	"net"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestParityFindsDifferences shows that the comparison is not blind: a relay that changes one byte
// is found, in either direction, and so is one that adds a packet of its own.
func TestParityFindsDifferences(t *testing.T) {
	server := harness.MariaDB(t)
	cfg := Config{Addr: server.Addr, User: servers.AppUser, Password: servers.AppPassword}
	ask := func(text string) Session {
		return Session{"one query", func(c *Conn) { Check(c.Query(text)) }}
	}
	direct := Run(cfg, ask("SELECT 'left'"))
	assert.NoError(t, Differ(direct, Run(cfg, ask("SELECT 'left'"))), "two equal sessions")
	assert.Fails(t, "a changed byte", Differ(direct, Run(cfg, ask("SELECT 'lefu'"))), "lefu")
	assert.Fails(t, "an added packet is not found", Differ(direct, Run(cfg, ask("SELECT 'left'; DO 1"))), "")
	p := NewTap(t, server.Addr, net.Dialer{})
	cfg.Addr = p.Addr()
	tapped := Run(cfg, ask("SELECT 'left'"))
	assert.NoError(t, p.check(0, tapped.C), "a tap that is all there is between client and server")
	tapped = Run(cfg, ask("SELECT 'left'"))
	tapped.C.sent.add([]byte{0})
	assert.Fails(t, "a byte that the server did not get is not found", p.check(1, tapped.C), "")
}
