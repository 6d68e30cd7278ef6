package integration_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// account is a user with a plugin of its own.
type account struct{ user, identified string }

var accounts = map[servers.Kind][]account{
	servers.MariaDB: {
		{"a_native", "IDENTIFIED BY '" + password + "'"},
		{"a_ed25519", "IDENTIFIED VIA ed25519 USING PASSWORD('" + password + "')"},
		{"a_empty", ""},
	},
	servers.MySQL: {
		{"a_sha2", "IDENTIFIED WITH caching_sha2_password BY '" + password + "'"},
		{"a_sha256", "IDENTIFIED WITH sha256_password BY '" + password + "'"},
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
			if _, err := db.Exec(text); err != nil {
				t.Fatalf("%s: %v", a.user, err)
			}
		}
	}
	return db
}

// login is one way to log in, or to fail to.
type login struct {
	name string
	cfg  rawConfig
	code uint16 // of the error; 0: it succeeds
	cold bool   // the server's cache of passwords is emptied first
	then func(c *rawConn)
}

func logins(kind servers.Kind) []login {
	user := map[servers.Kind]string{servers.MariaDB: "a_native", servers.MySQL: "a_sha2"}[kind]
	tracked := uint64(mysql.CLIENT_SESSION_TRACK | mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA)
	all := []login{
		{name: "default", cfg: rawConfig{user: user, password: password}},
		{name: "lenenc and tracking", cfg: rawConfig{user: user, password: password, caps: tracked}},
		{name: "wrong password", cfg: rawConfig{user: user, password: wrongPassword}, code: 1045},
		{name: "no password", cfg: rawConfig{user: user}, code: 1045},
		{name: "unknown user", cfg: rawConfig{user: "a_nobody", password: password}, code: 1045},
		{name: "unknown schema", cfg: rawConfig{user: user, password: password, schema: "no_such_schema"}, code: 1049},
		{name: "empty password", cfg: rawConfig{user: "a_empty"}},
		{name: "other first guess", cfg: rawConfig{user: user, password: password, plugin: "dialog"}},
		{name: "attributes", cfg: rawConfig{user: user, password: password, attrs: []byte("\x0b\x04_pid\x05many\xc3")}},
		{name: "malformed attributes", cfg: rawConfig{user: user, password: password, attrs: []byte("\x05\x7fabc\xff")}},
		{name: "attributes longer than the packet", cfg: rawConfig{user: user, password: password, attrs: []byte("\xfd\xff\xff\xff")}, code: 1043},
		{name: "change user", cfg: rawConfig{user: "a_empty"}, then: func(c *rawConn) {
			check(c.changeUser(user, password, ""))
			c.must("SELECT CURRENT_USER()")
			check(c.changeUser("a_empty", "", ""))
		}},
	}
	if kind == servers.MariaDB {
		return append(all,
			login{name: "without PLUGIN_AUTH", cfg: rawConfig{user: user, password: password, without: uint64(mysql.CLIENT_PLUGIN_AUTH)}},
			login{name: "ed25519", cfg: rawConfig{user: "a_ed25519", password: password}},
			login{name: "ed25519, right guess", cfg: rawConfig{user: "a_ed25519", password: password, plugin: mysql.AUTH_MARIADB_ED25519}},
			login{name: "ed25519, wrong password", cfg: rawConfig{user: "a_ed25519", password: wrongPassword}, code: 1045})
	}
	return append(all,
		login{name: "without PLUGIN_AUTH", cfg: rawConfig{user: user, password: password, without: uint64(mysql.CLIENT_PLUGIN_AUTH)}, code: 1251},
		login{name: "cold", cfg: rawConfig{user: user, password: password}, cold: true},
		login{name: "cold, wrong password", cfg: rawConfig{user: user, password: wrongPassword}, cold: true, code: 1045},
		login{name: "cold, other first guess", cfg: rawConfig{user: user, password: password, plugin: mysql.AUTH_NATIVE_PASSWORD}, cold: true},
		login{name: "cold change user", cfg: rawConfig{user: "a_empty"}, cold: true, then: func(c *rawConn) {
			check(c.changeUser(user, password, ""))
			c.must("SELECT CURRENT_USER()")
		}},
		login{name: "sha256_password", cfg: rawConfig{user: "a_sha256", password: password}},
		login{name: "sha256_password, wrong", cfg: rawConfig{user: "a_sha256", password: wrongPassword}, code: 1045},
		login{name: "sha256_password, change user", cfg: rawConfig{user: "a_empty"}, then: func(c *rawConn) {
			check(c.changeUser("a_sha256", password, ""))
		}})
}

// TestAuthentication compares logins, byte by byte, with what happens directly.
func TestAuthentication(t *testing.T) {
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			db := makeAccounts(t, server)
			p := startProxy(t, harness.Spec{Config: fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q}]\n", server.Addr)})
			for _, l := range logins(server.Kind) {
				run := func(addr string) replayed {
					if l.cold {
						if _, err := db.Exec("FLUSH PRIVILEGES"); err != nil {
							t.Fatal(err)
						}
					}
					l.cfg.addr = addr
					return replay(l.cfg, session{l.name, l.run})
				}
				run(server.Addr) // warms the server's cache
				direct, proxied := run(server.Addr), run(p.Addr("a"))
				if got := codeOf(direct.err); got != l.code || (got == 0) != (direct.err == nil) {
					t.Errorf("%s: direct login ended with %v, want %d", l.name, direct.err, l.code)
				}
				if err := sameEnd(direct, proxied); err != nil {
					t.Errorf("%s: %v", l.name, err)
				}
			}
		})
	}
}

func (l *login) run(c *rawConn) {
	c.must("SELECT CURRENT_USER(), '" + aValue + "'")
	if l.then != nil {
		l.then(c)
	}
}

// sameEnd is differ for sessions that may end with an error: both must have the same.
func sameEnd(direct, proxied replayed) error {
	if fmt.Sprint(direct.err) != fmt.Sprint(proxied.err) {
		return fmt.Errorf("direct: %v, proxied: %v", direct.err, proxied.err)
	}
	if direct.c == nil || proxied.c == nil {
		return errors.New("no connection")
	}
	direct.err, proxied.err = nil, nil
	return differ(direct, proxied)
}
