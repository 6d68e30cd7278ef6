package tlsconfig

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
		_, err := shake(t, server, stranger)
		assert.True(t, err != nil && strings.Contains(err.Error(), what), "%s: %v", what, err)
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
	}{
		{busy, 2, []Reading{{"a", busy}}},
		{busy, 3, nil},
		{other, 4, []Reading{{"a", other}}},
		{nil, 5, []Reading{{"a", nil}}},
		{nil, 5, nil},
	} {
		outcome = step.outcome
		told := f.Again()
		assert.True(t, slices.Equal(told, step.told) && reads == step.reads, "step %d: told %v after %d reads, want %v after %d", i, told, reads, step.told, step.reads)
	}
}
