package upstream

import (
	"testing"

	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestSetPassword: connections are made with the password of the moment, by both ways to ask.
func TestSetPassword(t *testing.T) {
	for _, server := range harness.Servers(t) {
		to := config.Addr{Network: "tcp", Address: server.Addr}
		u, err := OpenAlone(&config.Listener{
			Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSAsClient, CA: server.CA},
			Account: &config.Account{User: servers.AppUser, Password: "an old one"},
		}, to, within)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		u.DB.SetMaxIdleConns(-1) // or the connection of the right password stays
		for _, password := range []config.Secret{"", servers.AppPassword, "a wrong one"} {
			if password != "" {
				u.SetPassword(password)
			}
			q, asked := u.Session(t.Context())
			if asked == nil {
				q.cut()
			}
			if pinged := u.DB.PingContext(t.Context()); (pinged == nil) != (password == servers.AppPassword) || (asked == nil) != (pinged == nil) {
				t.Errorf("%s: with %q: %v, %v", server.Kind, password, pinged, asked)
			}
		}
	}
}
