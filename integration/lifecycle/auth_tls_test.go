package lifecycle

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

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
	text := assert.Of(os.ReadFile(file)).Must(t)
	roots := x509.NewCertPool()
	assert.MustTrue(t, roots.AppendCertsFromPEM(text), "%s holds no certificate", file)
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
			err := cipher(t, server, p.Addr(tt.listener), tt.tls, tt.tls != nil || tt.listener == "required")
			assert.True(t, (tt.want != "" || err == nil) && (tt.want == "" || err != nil && strings.Contains(err.Error(), tt.want)), "listener %s, TLS %t: %v, want an error with %q", tt.listener, tt.tls != nil, err, tt.want)
		}
	})
}

// cipher logs in with the driver and checks whether the server sees TLS.
func cipher(t *testing.T, server *servers.Server, addr string, secure *tls.Config, seen bool) error {
	cfg := server.Config("")
	cfg.TLS = secure
	var name, cipher string
	err := harness.Open(t, cfg, addr).QueryRowContext(t.Context(), "SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
	if err == nil && (cipher != "") != seen {
		return fmt.Errorf("the server's cipher is %q", cipher)
	}
	return err
}

// TestAuthenticationOverTLS compares logins over TLS on both sides, cold ones among them, with
// direct ones over TLS.
func TestAuthenticationOverTLS(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		db := makeAccounts(t, server)
		p := replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(tlsListeners, server.Addr, server.Dir, server.Dir)})
		for _, l := range logins(server.Kind) {
			l.cfg.Tls = trust(t, filepath.Join(server.Dir, "ca.pem"))
			run := func(addr string) replay.Replayed {
				if l.cold {
					assert.Of(db.Exec("FLUSH PRIVILEGES")).Must(t)
				}
				l.cfg.Addr = addr
				return replay.Run(l.cfg, replay.Session{Name: l.name, Run: l.run})
			}
			run(server.Addr)
			direct, proxied := run(server.Addr), run(p.Addr("offered"))
			assert.NoError(t, sameEnd(direct, proxied), l.name)
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

// TestCommandLineClients logs in with the servers' own clients, whose TLS libraries differ from
// Go's.
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
				for _, cold := range []bool{true, false} {
					cfg.User, cfg.Password = a.user, replay.Password
					if a.user == "a_empty" {
						cfg.Password = ""
					}
					socketLogin(t, server, cfg, cold, name)
				}
			}
		}
	})
}

func socketLogin(t *testing.T, server *servers.Server, cfg replay.Config, cold bool, name string) {
	t.Helper()
	if cold {
		assert.Of(harness.Open(t, server.Config(""), "").Exec("FLUSH PRIVILEGES")).Must(t)
	} else {
		direct := cfg
		direct.Network, direct.Addr = "", server.Addr
		assert.Must(t, replay.Do(func() { replay.Login(direct).Close() }))
	}
	err := replay.Do(func() {
		c := replay.Login(cfg)
		defer c.Close()
		c.Must("SELECT 1")
	})
	assert.NoError(t, err, fmt.Sprintf("%s by %s, cold %t", cfg.User, name, cold))
}
