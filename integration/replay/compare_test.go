package replay

import (
	"net"
	"strings"
	"testing"

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
	if err := Differ(direct, Run(cfg, ask("SELECT 'left'"))); err != nil {
		t.Errorf("two equal sessions: %v", err)
	}
	if err := Differ(direct, Run(cfg, ask("SELECT 'lefu'"))); err == nil || !strings.Contains(err.Error(), "lefu") {
		t.Errorf("a changed byte gives %v", err)
	}
	if err := Differ(direct, Run(cfg, ask("SELECT 'left'; DO 1"))); err == nil {
		t.Error("an added packet is not found")
	}
	p := NewTap(t, server.Addr, net.Dialer{})
	cfg.Addr = p.Addr()
	tapped := Run(cfg, ask("SELECT 'left'"))
	if err := p.check(0, tapped.C); err != nil {
		t.Errorf("a tap that is all there is between client and server: %v", err)
	}
	tapped = Run(cfg, ask("SELECT 'left'"))
	tapped.C.sent.add([]byte{0})
	if err := p.check(1, tapped.C); err == nil {
		t.Error("a byte that the server did not get is not found")
	}
}
