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
	"idproxy/integration/servers"
)

// shake does a handshake and returns what both sides say of it.
func shake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if err := raw.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, client)
	err = c.HandshakeContext(t.Context())
	return c.ConnectionState(), err
}

// TestFiles reads files again that have changed: what can be used is in force for the tls.Config
// that is there, and what cannot is told once.
func TestFiles(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, other} {
		if err := servers.WriteCertificates(d); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, text []byte) {
		if text == nil {
			var err error
			if text, err = os.ReadFile(filepath.Join(other, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(at(name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listener := func(address, name, ca string) *config.Listener {
		return &config.Listener{Name: "a", Upstream: config.Addr{Network: "tcp", Address: address}, UpstreamTLS: config.UpstreamTLS{ServerName: name, CA: ca}}
	}
	upstream := func(f *Files, l *config.Listener) (*tls.Config, error) { return f.Upstream(l, l.Upstream) }
	var f Files
	server, err := f.Client("s.tls", &config.TLS{Cert: at("server.pem"), Key: at("server.key")}, "h2", "http/1.1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := upstream(&f, listener("127.0.0.1:1", "", at("ca.pem")))
	if err != nil {
		t.Fatal(err)
	}
	client.NextProtos = []string{"h2"}
	if got := f.Folders(); !slices.Equal(got, []string{dir}) {
		t.Errorf("folders %q", got)
	}
	if state, err := shake(t, server, client); err != nil || state.NegotiatedProtocol != "h2" {
		t.Errorf("%v, protocol %q", err, state.NegotiatedProtocol)
	}
	if _, err := shake(t, server, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	for what, l := range map[string]*config.Listener{"localhost, not db1": listener("127.0.0.1:1", "db1", at("ca.pem")), "not 127.0.0.2": listener("127.0.0.2:1", "", at("ca.pem"))} {
		stranger, err := upstream(nil, l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := shake(t, server, stranger); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
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
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
	}
	again()
	put("server.pem", nil)
	again("s.tls failed") // its key is another one
	again()
	if _, err := shake(t, server, client); err != nil {
		t.Errorf("with a certificate that is not used: %v", err)
	}
	put("server.key", nil)
	again("s.tls")
	if _, err := shake(t, server, client); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a certificate of another CA: %v", err)
	}
	put("ca.pem", []byte("nothing"))
	again("listeners.a.upstream_tls failed")
	put("ca.pem", nil)
	again("listeners.a.upstream_tls")
	if _, err := shake(t, server, client); err != nil {
		t.Errorf("with the other CA: %v", err)
	}
	if _, err := upstream(&f, listener("127.0.0.1:1", "", at("gone.pem"))); err == nil || !strings.Contains(err.Error(), "upstream_tls.ca: ") {
		t.Errorf("a CA that is not there: %v", err)
	}
}

// TestReadThatFailed: files that could not be read are read again although they are the same, and
// what is told is what is new.
func TestReadThatFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pem")
	var outcome error
	reads := 0
	var f Files
	if err := f.add("a", func() error { reads++; return outcome }, path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if told := f.Again(); !slices.Equal(told, step.told) || reads != step.reads {
			t.Errorf("step %d: told %v after %d reads, want %v after %d", i, told, reads, step.told, step.reads)
		}
	}
}
