package lifecycle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// passwordOf is the password of an account.
func passwordOf(user string) string {
	if user == "a_empty" {
		return ""
	}
	return replay.Password
}

// makeAccounts makes the accounts of a server anew, and returns a root connection to it.
func makeAccounts(t *testing.T, server *servers.Server) *sql.DB {
	t.Helper()
	cfg := server.Config("")
	cfg.User, cfg.Passwd = servers.RootUser, servers.RootPassword
	db := harness.Open(t, cfg, "")
	for _, a := range accounts[server.Kind] {
		harness.MustExec(t, db, "DROP USER IF EXISTS "+a.user, "CREATE USER "+a.user+" "+a.identified, "GRANT ALL ON *.* TO "+a.user)
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
			direct := l.compare(t, db, server.Addr, p.Addr("a"))
			got := replay.CodeOf(direct.Err)
			assert.True(t, got == l.code && (got == 0) == (direct.Err == nil), "%s: direct login ended with %v, want %d", l.name, direct.Err, l.code)
		}
	})
}

// compare compares a direct login, which it returns, with one through a proxy.
func (l *login) compare(t *testing.T, db *sql.DB, server, proxy string) (direct replay.Replayed) {
	run := func(addr string) replay.Replayed {
		if l.cold {
			harness.MustExec(t, db, "FLUSH PRIVILEGES")
		}
		l.cfg.Addr = addr
		return replay.Run(l.cfg, replay.Session{Name: l.name, Run: l.run})
	}
	run(server) // warms the server's cache
	direct = run(server)
	assert.NoError(t, sameEnd(direct, run(proxy)), l.name)
	return direct
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

// tlsListeners are all ways to combine TLS on the two sides of a proxy.
const tlsListeners = `
listeners:
  - {name: offered,  listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[2]s/server.pem, key: %[2]s/server.key}, upstream_tls: {ca: %[2]s/ca.pem}}
  - {name: required, listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[2]s/server.pem, key: %[2]s/server.key}, upstream_tls: {mode: required}}
  - {name: disabled, listen: "127.0.0.1:0", upstream: %[1]q, upstream_tls: {mode: disabled}}
  - {name: none,     listen: "127.0.0.1:0", upstream: %[1]q}
  - {name: distrust, listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[2]s/server.pem, key: %[2]s/server.key}, upstream_tls: {ca: %[3]s/ca.pem}}
  - {name: clients,  listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[2]s/server.pem, key: %[2]s/server.key, client_ca: %[3]s/ca.pem}}
`

// trust is the client's side of TLS with a server whose certificate is signed by the CA in file.
func trust(t *testing.T, file string) *tls.Config {
	t.Helper()
	roots := x509.NewCertPool()
	assert.MustTrue(t, roots.AppendCertsFromPEM(assert.Of(os.ReadFile(file)).Must(t)), "%s holds no certificate", file)
	return &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}
}

// clientCertificate makes a CA, ca.pem in dir, and a client's certificate signed by it.
func clientCertificate(t *testing.T, dir string) tls.Certificate {
	t.Helper()
	key := assert.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Must(t)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "clients"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	client := *ca
	client.SerialNumber, client.IsCA, client.KeyUsage = big.NewInt(2), false, x509.KeyUsageDigitalSignature
	client.Subject.CommonName = "client"
	caDER, err1 := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	der, err2 := x509.CreateCertificate(rand.Reader, &client, ca, key.Public(), key)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	assert.Must(t, errors.Join(err1, err2, os.WriteFile(filepath.Join(dir, "ca.pem"), text, 0o600)))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLS(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		dir := t.TempDir()
		cert := clientCertificate(t, dir)
		makeAccounts(t, server)
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(tlsListeners, server.Addr, server.Dir, dir)})
		secure := trust(t, filepath.Join(server.Dir, "ca.pem"))
		certified := secure.Clone()
		certified.Certificates = []tls.Certificate{cert}
		for _, tt := range []struct {
			listener string
			tls      *tls.Config
			want     string // part of the error, or empty
		}{
			{"offered", secure, ""},
			{"offered", nil, ""},
			{"required", secure, ""},
			{"required", nil, ""},
			{"disabled", secure, "does not support TLS"},
			{"disabled", nil, ""},
			{"none", secure, "does not support TLS"},
			{"none", nil, ""},
			{"clients", certified, ""},
			{"clients", secure, "invalid connection"},
			{"clients", nil, ""},
			{"distrust", secure, "unknown authority"},
			{"distrust", nil, ""},
		} {
			got, err := cipher(t, server, p.Addr(tt.listener), tt.tls)
			what := fmt.Sprintf("listener %s, TLS %t", tt.listener, tt.tls != nil)
			if tt.want != "" {
				assert.Fails(t, what, err, tt.want)
				continue
			}
			assert.NoError(t, err, what)
			assert.True(t, (got != "") == (tt.tls != nil || tt.listener == "required"), "%s: the server's cipher is %q", what, got)
		}
	})
}

// cipher logs in with the driver, and returns the cipher that the server sees.
func cipher(t *testing.T, server *servers.Server, addr string, secure *tls.Config) (seen string, err error) {
	cfg := server.Config("")
	cfg.TLS = secure
	var name string
	err = harness.Open(t, cfg, addr).QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &seen)
	return seen, err
}

// TestAuthenticationOverTLS compares logins over TLS, cold ones among them, with direct ones over TLS.
func TestAuthenticationOverTLS(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := makeAccounts(t, server)
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(tlsListeners, server.Addr, server.Dir, server.Dir)})
		for _, l := range logins(server.Kind) {
			l.cfg.Tls = trust(t, filepath.Join(server.Dir, "ca.pem"))
			l.compare(t, db, server.Addr, p.Addr("offered"))
		}
		for _, s := range []replay.Session{{Name: "text", Run: replay.TextSession}, {Name: "pipelined", Run: replay.PipelinedSession}, {Name: "10,000 rows", Run: replay.ManyRowsSession}} {
			cfg := replay.Config{Addr: server.Addr, User: "app", Password: "app", Schema: harness.Database(t, server), Caps: replay.DeprecateEOF}
			cfg.Tls = trust(t, filepath.Join(server.Dir, "ca.pem"))
			direct := replay.Run(cfg, s)
			cfg.Addr = p.Addr("required")
			assert.NoError(t, replay.Differ(direct, replay.Run(cfg, s)), s.Name)
		}
	})
}

// TestCommandLineClients logs in with the servers' own clients, whose TLS libraries differ from Go's.
func TestCommandLineClients(t *testing.T) {
	for _, server := range harness.Servers(t) {
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(tlsListeners, server.Addr, server.Dir, server.Dir)})
		ca := "--ssl-ca=" + filepath.Join(server.Dir, "ca.pem")
		flags := map[servers.Kind][2][]string{
			servers.MariaDB: {{"--ssl", ca, "--ssl-verify-server-cert"}, {"--skip-ssl"}},
			servers.MySQL:   {{"--ssl-mode=VERIFY_CA", ca}, {"--ssl-mode=DISABLED", "--get-server-public-key"}},
		}[server.Kind]
		for i, secure := range []bool{true, false} {
			args := append(flags[i], "-N", "-e", "SHOW STATUS LIKE 'Ssl_cipher'")
			out, err := output(t, server.ClientTo(p.Addr("offered"), args...))
			assert.True(t, err == nil && strings.Contains(out, "Ssl_cipher\tTLS_") == secure, "%s, TLS %t: %v, %q", server.Kind, secure, err, out)
			out, err = output(t, server.ClientTo(p.Addr("required"), args...))
			assert.True(t, err == nil && strings.Contains(out, "Ssl_cipher\tTLS_"), "%s, TLS %t where the server's is required: %v, %q", server.Kind, secure, err, out)
		}
	}
}

// output runs a program and returns all that it prints.
func output(t *testing.T, cmd *exec.Cmd) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it has ended, or is about to
		}
	})
	defer stop()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestSockets reaches servers and proxy over unix sockets, which servers take for secure.
func TestSockets(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		makeAccounts(t, server)
		dir := t.TempDir()
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(`
listeners:
  - {name: out,  listen: "127.0.0.1:0", upstream: "unix:%[1]s"}
  - {name: in,   listen: "unix:%[2]s/in.sock", upstream: %[3]q}
  - {name: both, listen: "unix:%[2]s/both.sock", upstream: "unix:%[1]s"}
`, server.Socket, dir, server.Addr)})
		in, both := filepath.Join(dir, "in.sock"), filepath.Join(dir, "both.sock")
		for name, cfg := range map[string]replay.Config{"out": {Addr: p.Addr("out")}, "in": {Network: "unix", Addr: in}, "both": {Network: "unix", Addr: both}} {
			for _, a := range accounts[server.Kind] {
				cfg.User, cfg.Password = a.user, passwordOf(a.user)
				harness.MustExec(t, harness.Open(t, server.Config(""), ""), "FLUSH PRIVILEGES")
				socketLogin(t, cfg, "cold by "+name)
				direct := cfg
				direct.Network, direct.Addr = "", server.Addr
				assert.Must(t, replay.Do(func() { replay.Login(direct).Close() }))
				socketLogin(t, cfg, "warm by "+name)
			}
		}
	})
}

func socketLogin(t *testing.T, cfg replay.Config, how string) {
	t.Helper()
	assert.NoError(t, replay.Do(func() {
		c := replay.Login(cfg)
		defer c.Close()
		c.Must("SELECT 1")
	}), cfg.User, how)
}
