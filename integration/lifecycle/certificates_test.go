package lifecycle

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// renewal is a proxy whose certificates are replaced while it runs.
type renewal struct {
	*testing.T
	server *servers.Server
	proxy  *harness.Proxy
	used   string            // the folder of those in use
	of     map[string]string // two more, each with those of its own CA
	trust  *x509.CertPool    // both
	cache  tls.ClientSessionCache
}

func newRenewal(t *testing.T) *renewal {
	r := &renewal{T: t, server: harness.MariaDB(t), used: t.TempDir(), of: map[string]string{"old": t.TempDir(), "new": t.TempDir()}, trust: x509.NewCertPool(), cache: tls.NewLRUClientSessionCache(1)}
	for _, dir := range r.of {
		assert.Must(t, servers.WriteCertificates(dir))
		text, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
		assert.MustTrue(t, err == nil && r.trust.AppendCertsFromPEM(text), "%v", err)
	}
	for _, name := range []string{"server.pem", "server.key", "ca.pem"} {
		r.put(filepath.Join(r.of["old"], name), name)
	}
	r.put(filepath.Join(r.server.Dir, "ca.pem"), "upstream.pem")
	r.proxy = replay.StartProxy(t, harness.Spec{Config: fmt.Sprintf(`
listeners:
  - {name: a, listen: "127.0.0.1:0", upstream: %[1]q, tls: {cert: %[2]s/server.pem, key: %[2]s/server.key, client_ca: %[2]s/ca.pem}, upstream_tls: {mode: required, ca: %[2]s/upstream.pem}}
`, r.server.Addr, r.used)})
	return r
}

// put puts a file in the place of one in use, at once, as programs do that renew certificates.
func (r *renewal) put(from, name string) {
	r.Helper()
	r.write(assert.Of(os.ReadFile(from)).Must(r), name)
}

func (r *renewal) write(text []byte, name string) {
	r.Helper()
	path := filepath.Join(r.used, name)
	assert.Must(r, os.WriteFile(path+".tmp", text, 0o600))
	assert.Must(r, os.Rename(path+".tmp", path))
}

// says waits until the log has a line for the n-th time.
func (r *renewal) says(line string, n int) {
	r.Helper()
	what := fmt.Sprintf("the log says %q %d times", line, n)
	assert.Until(r, what, func() bool { return strings.Count(r.proxy.Log(), line) >= n })
}

// login logs in with the client's certificate of one CA, and returns the session.
func (r *renewal) login(of string, cache tls.ClientSessionCache) (c *replay.Conn, state tls.ConnectionState, err error) {
	r.Helper()
	dir := r.of[of]
	pair := assert.Of(tls.LoadX509KeyPair(filepath.Join(dir, "client.pem"), filepath.Join(dir, "client.key"))).Must(r)
	secure := &tls.Config{RootCAs: r.trust, ServerName: "127.0.0.1", ClientSessionCache: cache, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }}
	err = replay.Do(func() {
		c = replay.Login(replay.Config{Addr: r.proxy.Addr("a"), User: "app", Password: "app", Tls: secure})
		c.Must("SELECT 1")
		state = c.Conn.(*tls.Conn).ConnectionState()
	})
	return c, state, err
}

// shows reports whether a listener showed the certificate of one CA.
func (r *renewal) shows(state tls.ConnectionState, of string) bool {
	pair := assert.Of(tls.LoadX509KeyPair(filepath.Join(r.of[of], "server.pem"), filepath.Join(r.of[of], "server.key"))).Must(r)
	return len(state.PeerCertificates) > 0 && bytes.Equal(state.PeerCertificates[0].Raw, pair.Certificate[0])
}

// TestCertificatesReadAgain replaces certificates, a key and CAs while sessions are open. New sessions have the new
// ones, open ones go on, and what cannot be used changes nothing.
func TestCertificatesReadAgain(t *testing.T) {
	r := newRenewal(t)
	open, state, err := r.login("old", r.cache)
	assert.MustTrue(t, err == nil && r.shows(state, "old"), "%v", err)
	defer open.Close()
	alive := func(when string) {
		t.Helper()
		assert.NoError(t, replay.Do(func() { open.Must("SELECT 1") }), "the open session,", when)
	}
	try := func(of string, cache tls.ClientSessionCache) (tls.ConnectionState, error) {
		t.Helper()
		c, state, err := r.login(of, cache)
		if err == nil {
			c.Close()
		}
		return state, err
	}
	state, err = try("old", r.cache)
	assert.True(t, err == nil && state.DidResume, "before anything changed: %v, resumed %t", err, state.DidResume)

	r.put(filepath.Join(r.of["new"], "server.key"), "server.key")
	r.put(filepath.Join(r.of["new"], "server.pem"), "server.pem")
	r.says("certificates read again", 1)
	state, err = try("old", nil)
	assert.True(t, err == nil && r.shows(state, "new"), "with a new certificate: %v", err)
	state, err = try("old", r.cache)
	assert.True(t, err == nil && state.DidResume, "a session from before, with a new certificate: %v, resumed %t", err, state.DidResume)
	alive("with a new certificate")

	r.put(filepath.Join(r.of["new"], "ca.pem"), "ca.pem")
	r.says("certificates read again", 2)
	for name, cache := range map[string]tls.ClientSessionCache{"new": nil, "resumed": r.cache} {
		state, err := try("old", cache)
		assert.True(t, err != nil, "%s: a client of the old CA is let in, resumed %t", name, state.DidResume)
	}
	assert.Of(try("new", nil)).NoError(t, "a client of the new CA")
	alive("with a new CA")

	r.write([]byte("no certificate"), "server.pem")
	r.says("certificates not read again, the old ones stay in force", 1)
	state, err = try("new", nil)
	assert.True(t, err == nil && r.shows(state, "new"), "with a broken file: %v", err)

	const told = "certificates not read again"
	before := strings.Count(r.proxy.Log(), told)
	r.put(filepath.Join(r.of["old"], "ca.pem"), "upstream.pem")
	assert.Must(t, r.proxy.Signal(syscall.SIGHUP))
	r.says("certificates read again", 3)
	assert.Of(try("new", nil)).Fails(t, "with another CA for the server", "unknown authority")
	alive("with another CA for the server")
	log := r.proxy.Log()
	assert.True(t, strings.Count(log, told) == before && strings.Contains(log, "section=listeners.a.tls"), "the log: %s", log)
}
