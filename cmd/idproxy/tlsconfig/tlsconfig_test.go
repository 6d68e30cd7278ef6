package tlsconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

// shake does a handshake and returns what both sides say of it.
func shake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, err error) {
	t.Helper()
	ln := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer ln.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if c, err := ln.Accept(); err == nil {
			defer c.Close()
			_ = tls.Server(c, server).HandshakeContext(t.Context()) // the client says what came of it
		}
	}()
	defer func() { <-served }()
	raw := assert.Of(net.Dial("tcp", ln.Addr().String())).Must(t)
	defer raw.Close()
	assert.Must(t, raw.SetDeadline(time.Now().Add(time.Minute)))
	c := tls.Client(raw, client)
	err = c.HandshakeContext(t.Context())
	return c.ConnectionState(), err
}

// TestFiles reads files again that have changed: what can be used is in force for the tls.Config
// that is there, and what cannot is told once.
func TestFiles(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		assert.Must(t, servers.WriteCertificates(d))
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, text []byte) {
		if text == nil {
			var err error
			text, err = os.ReadFile(filepath.Join(other, name))
			assert.Must(t, err)
		}
		assert.Must(t, os.WriteFile(at(name), text, 0o600))
	}
	listener := func(address, name, ca string) *config.Listener {
		return &config.Listener{Name: "a", Upstream: config.Addr{Network: "tcp", Address: address}, UpstreamTLS: config.UpstreamTLS{ServerName: name, CA: ca}}
	}
	upstream := func(f *Files, l *config.Listener) (*tls.Config, error) { return f.Upstream(l, l.Upstream) }
	var f Files
	server := assert.Of(f.Client("s.tls", &config.TLS{Cert: at("server.pem"), Key: at("server.key")}, "h2", "http/1.1")).Must(t)
	client := assert.Of(upstream(&f, listener("127.0.0.1:1", "", at("ca.pem")))).Must(t)
	client.NextProtos = []string{"h2"}
	got := f.Folders()
	assert.True(t, slices.Equal(got, []string{dir}), "folders %q", got)
	state, err := shake(t, server, client)
	assert.True(t, err == nil && state.NegotiatedProtocol == "h2", "%v, protocol %q", err, state.NegotiatedProtocol)
	assert.Of(shake(t, server, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})).Fails(t, "TLS 1.1 is spoken", "")
	for what, l := range map[string]*config.Listener{"localhost, not db1": listener("127.0.0.1:1", "db1", at("ca.pem")), "not 127.0.0.2": listener("127.0.0.2:1", "", at("ca.pem"))} {
		stranger := assert.Of(upstream(nil, l)).Must(t)
		assert.Of(shake(t, server, stranger)).Fails(t, what, what)
	}
	again := func(want ...string) {
		t.Helper()
		var got []string
		for _, r := range f.Again() {
			said := r.Section
			if r.Err != nil {
				said += " failed"
			}
			got = append(got, said)
		}
		assert.True(t, slices.Equal(got, want), "read %q, want %q", got, want)
	}
	again()
	put("server.pem", nil)
	again("s.tls failed") // its key is another one
	again()
	assert.Of(shake(t, server, client)).NoError(t, "with a certificate that is not used")
	put("server.key", nil)
	again("s.tls")
	assert.Of(shake(t, server, client)).Fails(t, "a certificate of another CA", "unknown authority")
	put("ca.pem", []byte("nothing"))
	again("listeners.a.upstream_tls failed")
	put("ca.pem", nil)
	again("listeners.a.upstream_tls")
	assert.Of(shake(t, server, client)).NoError(t, "with the other CA")
	assert.Of(upstream(&f, listener("127.0.0.1:1", "", at("gone.pem")))).Fails(t, "a CA that is not there", "upstream_tls.ca: ")
}

// TestReadThatFailed: files that could not be read are read again although they are the same, and
// what is told is what is new.
func TestReadThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pem")
	var outcome error
	reads := 0
	var f Files
	assert.Must(t, f.add("a", func() error { reads++; return outcome }, path))
	assert.Must(t, os.WriteFile(path, []byte("new"), 0o600))
	busy, other := errors.New("too many open files"), errors.New("no PEM")
	for i, step := range []struct {
		outcome error
		reads   int
		told    []Reading
	}{{busy, 2, []Reading{{"a", busy}}}, {busy, 3, nil}, {other, 4, []Reading{{"a", other}}}, {nil, 5, []Reading{{"a", nil}}}, {nil, 5, nil}} {
		outcome = step.outcome
		told := f.Again()
		assert.True(t, slices.Equal(told, step.told) && reads == step.reads, "step %d: told %v after %d reads, want %v after %d", i, told, reads, step.told, step.reads)
	}
}

// writeEnds writes a file of certificates that end on these days.
func writeEnds(t *testing.T, path string, days ...time.Time) {
	t.Helper()
	key := assert.Of(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Must(t)
	text := []byte("what stands around certificates is passed over\n")
	for _, day := range days {
		c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: day.AddDate(-1, 0, 0), NotAfter: day}
		der := assert.Of(x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)).Must(t)
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	assert.Must(t, os.WriteFile(path, text, 0o600))
}

// TestCertificates: a chain ends with its first certificate, and a file of CAs with its last one.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	day := func(n int) time.Time { return time.Date(2030, 1, n, 0, 0, 0, 0, time.UTC) }
	writeEnds(t, at("chain.pem"), day(9), day(5), day(7))
	writeEnds(t, at("ca.pem"), day(2), day(8), day(3))
	cfg := &config.Config{
		Listeners: []config.Listener{
			{Name: "a", TLS: &config.ListenerTLS{Cert: at("chain.pem"), ClientCA: at("ca.pem")}, UpstreamTLS: config.UpstreamTLS{CA: at("ca.pem")}},
			{Name: "b"},
		},
		Stores: []config.Store{
			{Name: "s", Redis: &config.RedisStore{TLS: &config.StoreTLS{CA: at("ca.pem"), Cert: at("chain.pem")}}},
			{Name: "e", Etcd: &config.EtcdStore{TLS: &config.StoreTLS{}}},
			{Name: "f", File: &config.FileStore{}},
		},
		Order: &config.Order{TLS: &config.OrderTLS{CA: at("ca.pem"), Cert: at("chain.pem")}},
		Admin: &config.Admin{TLS: &config.TLS{Cert: at("chain.pem")}},
		IDs:   &config.IDs{HTTP: &config.IDsHTTP{TLS: &config.TLS{Cert: at("chain.pem")}}},
	}
	got, err := Certificates(cfg)
	assert.Must(t, err)
	want := []Certificate{
		{"listeners.a.tls.cert", at("chain.pem"), day(5)},
		{"listeners.a.tls.client_ca", at("ca.pem"), day(8)},
		{"listeners.a.upstream_tls.ca", at("ca.pem"), day(8)},
		{"stores.s.redis.tls.ca", at("ca.pem"), day(8)},
		{"stores.s.redis.tls.cert", at("chain.pem"), day(5)},
		{"order.tls.ca", at("ca.pem"), day(8)},
		{"order.tls.cert", at("chain.pem"), day(5)},
		{"admin.tls.cert", at("chain.pem"), day(5)},
		{"ids.http.tls.cert", at("chain.pem"), day(5)},
	}
	d := cmp.Diff(want, got)
	assert.True(t, d == "", "want -, got +: %s", d)

	writeEnds(t, at("none.pem"))
	cfg.Listeners[0].TLS.Cert, cfg.Admin.TLS.Cert = at("none.pem"), at("missing.pem")
	got, err = Certificates(cfg)
	assert.True(t, err != nil && strings.Contains(err.Error(), "holds no PEM certificate") && strings.Contains(err.Error(), "admin.tls.cert") && len(got) == 7, "%d others, and %v", len(got), err)
}
