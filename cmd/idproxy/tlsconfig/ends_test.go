package tlsconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"idproxy/config"
	"idproxy/integration/assert"
)

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
