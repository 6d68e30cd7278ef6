package upstream

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestLogIn: connections are made with the password of the moment, by both ways to ask.
func TestLogIn(t *testing.T) {
	for _, server := range harness.Servers(t) {
		to := config.Addr{Network: "tcp", Address: server.Addr}
		u, err := OpenAlone(&config.Listener{
			Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: config.TLSAsClient, CA: server.CA},
			Account: &config.Account{User: servers.AppUser, Password: "an old one"},
		}, to, within)
		assert.Must(t, err)
		defer u.Close()
		u.DB.SetMaxIdleConns(-1) // or the connection of the right password stays
		for _, password := range []config.Secret{"", servers.AppPassword, "a wrong one"} {
			if password != "" {
				u.LogIn(config.Account{User: servers.AppUser, Password: password})
			}
			q, asked := u.Session(t.Context())
			if asked == nil {
				q.cut()
			}
			pinged := u.DB.PingContext(t.Context())
			assert.True(t, (pinged == nil) == (password == servers.AppPassword) && (asked == nil) == (pinged == nil), "%s: with %q: %v, %v", server.Kind, password, pinged, asked)
		}
	}
}

// TestPasswordStays: where the server's certificate is to be looked at, the account does not log in
// without one.
func TestPasswordStays(t *testing.T) {
	bare := harness.StartServer(t, servers.MariaDB, servers.Options{NoTLS: true})
	ca := filepath.Join(t.TempDir(), "server.pem")
	harness.WriteCertificate(t, filepath.Dir(ca), time.Hour)
	to := config.Addr{Network: "tcp", Address: bare.Addr}
	for _, mode := range []string{config.TLSAsClient, config.TLSPreferred} {
		for _, named := range []string{"", ca} {
			u, err := OpenAlone(&config.Listener{
				Name: "a", Upstream: to, UpstreamTLS: config.UpstreamTLS{Mode: mode, CA: named},
				Account: &config.Account{User: servers.AppUser, Password: servers.AppPassword},
			}, to, within)
			assert.Must(t, err)
			defer u.Close()
			q := &Session{}
			asked := q.connect(t.Context(), u)
			q.cut()
			pinged := u.Ping(t.Context())
			if refused := named != ""; (pinged != nil) != refused || (asked != nil) != refused || refused && !strings.Contains(pinged.Error(), "the server offers no TLS") {
				t.Errorf("%s, CA %t: %v, %v", mode, refused, pinged, asked)
			}
		}
	}
}
