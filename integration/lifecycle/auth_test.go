package lifecycle

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// account is a user with a plugin of its own.
type account struct{ user, identified string }

var accounts = map[servers.Kind][]account{
	servers.MariaDB: {
		{"a_native", "IDENTIFIED BY '" + replay.Password + "'"},
		{"a_ed25519", "IDENTIFIED VIA ed25519 USING PASSWORD('" + replay.Password + "')"},
		{"a_empty", ""},
	},
	servers.MySQL: {
		{"a_sha2", "IDENTIFIED WITH caching_sha2_password BY '" + replay.Password + "'"},
		{"a_sha256", "IDENTIFIED WITH sha256_password BY '" + replay.Password + "'"},
		{"a_empty", "IDENTIFIED WITH caching_sha2_password BY ''"},
	},
}

// makeAccounts makes the accounts of a server anew, and returns a root connection to it.
func makeAccounts(t *testing.T, server *servers.Server) *sql.DB {
	t.Helper()
	cfg := server.Config("")
	cfg.User, cfg.Passwd = servers.RootUser, servers.RootPassword
	db := harness.Open(t, cfg, "")
	for _, a := range accounts[server.Kind] {
		for _, text := range []string{"DROP USER IF EXISTS " + a.user, "CREATE USER " + a.user + " " + a.identified, "GRANT ALL ON *.* TO " + a.user} {
			assert.Of(db.Exec(text)).Must(t, a.user)
		}
	}
	return db
}

// login is one way to log in, or to fail to.
type login struct {
	name string
	cfg  replay.Config
	code uint16 // of the error; 0: it succeeds
	cold bool   // the server's cache of passwords is emptied first
	then func(c *replay.Conn)
}

func logins(kind servers.Kind) []login {
	user := map[servers.Kind]string{servers.MariaDB: "a_native", servers.MySQL: "a_sha2"}[kind]
	tracked := uint64(mysql.CLIENT_SESSION_TRACK | mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	all := []login{
		{name: "default", cfg: replay.Config{User: user, Password: replay.Password}},
		{name: "lenenc and tracking", cfg: replay.Config{User: user, Password: replay.Password, Caps: tracked}},
		{name: "wrong password", cfg: replay.Config{User: user, Password: replay.WrongPassword}, code: 1045},
		{name: "no password", cfg: replay.Config{User: user}, code: 1045},
		{name: "unknown user", cfg: replay.Config{User: "a_nobody", Password: replay.Password}, code: 1045},
		{name: "unknown schema", cfg: replay.Config{User: user, Password: replay.Password, Schema: "no_such_schema"}, code: 1049},
		{name: "empty password", cfg: replay.Config{User: "a_empty"}},
		{name: "other first guess", cfg: replay.Config{User: user, Password: replay.Password, Plugin: "dialog"}},
		{name: "attributes", cfg: replay.Config{User: user, Password: replay.Password, Attrs: []byte("\x0b\x04_pid\x05many\xc3")}},
		{name: "malformed attributes", cfg: replay.Config{User: user, Password: replay.Password, Attrs: []byte("\x05\x7fabc\xff")}},
		{name: "attributes longer than the packet", cfg: replay.Config{User: user, Password: replay.Password, Attrs: []byte("\xfd\xff\xff\xff")}, code: 1043},
		{name: "change user", cfg: replay.Config{User: "a_empty"}, then: func(c *replay.Conn) {
			replay.Check(c.ChangeUser(user, replay.Password, ""))
			c.Must("SELECT CURRENT_USER()")
			replay.Check(c.ChangeUser("a_empty", "", ""))
		}},
	}
	if kind == servers.MariaDB {
		return append(all,
			login{name: "without PLUGIN_AUTH", cfg: replay.Config{User: user, Password: replay.Password, Without: uint64(mysql.CLIENT_PLUGIN_AUTH)}},
			login{name: "ed25519", cfg: replay.Config{User: "a_ed25519", Password: replay.Password}},
			login{name: "ed25519, right guess", cfg: replay.Config{User: "a_ed25519", Password: replay.Password, Plugin: mysql.AUTH_MARIADB_ED25519}},
			login{name: "ed25519, wrong password", cfg: replay.Config{User: "a_ed25519", Password: replay.WrongPassword}, code: 1045})
	}
	return append(all,
		login{name: "without PLUGIN_AUTH", cfg: replay.Config{User: user, Password: replay.Password, Without: uint64(mysql.CLIENT_PLUGIN_AUTH)}, code: 1251},
		login{name: "cold", cfg: replay.Config{User: user, Password: replay.Password}, cold: true},
		login{name: "cold, wrong password", cfg: replay.Config{User: user, Password: replay.WrongPassword}, cold: true, code: 1045},
		login{name: "cold, other first guess", cfg: replay.Config{User: user, Password: replay.Password, Plugin: mysql.AUTH_NATIVE_PASSWORD}, cold: true},
		login{name: "cold change user", cfg: replay.Config{User: "a_empty"}, cold: true, then: func(c *replay.Conn) {
			replay.Check(c.ChangeUser(user, replay.Password, ""))
			c.Must("SELECT CURRENT_USER()")
		}},
		login{name: "sha256_password", cfg: replay.Config{User: "a_sha256", Password: replay.Password}},
		login{name: "sha256_password, wrong", cfg: replay.Config{User: "a_sha256", Password: replay.WrongPassword}, code: 1045},
		login{name: "sha256_password, change user", cfg: replay.Config{User: "a_empty"}, then: func(c *replay.Conn) {
			replay.Check(c.ChangeUser("a_sha256", replay.Password, ""))
		}})
}

// TestAuthentication compares logins, byte by byte, with what happens directly.
func TestAuthentication(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := makeAccounts(t, server)
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q}]\n", server.Addr)})
		for _, l := range logins(server.Kind) {
			run := func(addr string) replay.Replayed {
				if l.cold {
					assert.Of(db.Exec("FLUSH PRIVILEGES")).Must(t)
				}
				l.cfg.Addr = addr
				return replay.Run(l.cfg, replay.Session{Name: l.name, Run: l.run})
			}
			run(server.Addr) // warms the server's cache
			direct, proxied := run(server.Addr), run(p.Addr("a"))
			got := replay.CodeOf(direct.Err)
			assert.True(t, got == l.code && (got == 0) == (direct.Err == nil), "%s: direct login ended with %v, want %d", l.name, direct.Err, l.code)
			assert.NoError(t, sameEnd(direct, proxied), l.name)
		}
	})
}

func (l *login) run(c *replay.Conn) {
	c.Must("SELECT CURRENT_USER(), '" + replay.Value + "'")
	if l.then != nil {
		l.then(c)
	}
}

// sameEnd is differ for sessions that may end with an error: both must have the same.
func sameEnd(direct, proxied replay.Replayed) error {
	if fmt.Sprint(direct.Err) != fmt.Sprint(proxied.Err) {
		return fmt.Errorf("direct: %v, proxied: %v", direct.Err, proxied.Err)
	}
	if direct.C == nil || proxied.C == nil {
		return errors.New("no connection")
	}
	direct.Err, proxied.Err = nil, nil
	return replay.Differ(direct, proxied)
}
