package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// certified is TLS for both sides of a test, whose certificate nobody verifies.
func certified(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, InsecureSkipVerify: true}
}

// secureCaps are those of a peer that has TLS.
const secureCaps = fakeCaps | uint64(mysql.CLIENT_SSL)

// withTLS is a fake server's greeting that offers TLS.
func withTLS() []byte {
	greeting := fakeGreeting()
	g, err := wire.ParseGreeting(greeting)
	if err != nil {
		panic(err)
	}
	g.SetCaps(greeting, secureCaps)
	return greeting
}

// wantsTLS is the packet that asks for TLS.
func wantsTLS() []byte {
	request := make([]byte, 32)
	binary.LittleEndian.PutUint32(request, uint32(secureCaps))
	return packet(1, request)
}

// soon has logins end soon.
func soon(mode TLSMode, t *testing.T) func(cfg *Config, live *Settings) {
	return func(cfg *Config, live *Settings) {
		l := &cfg.Listeners[0]
		l.ClientTLS, l.Upstreams[0].TLS, l.UpstreamTLSMode = certified(t), certified(t), mode
		live.Handshake = 2 * time.Second
	}
}

// TestStalledTLS: a client or server that begins TLS and says no more, or what is no TLS, is left
// when the login has taken too long, and others are served.
func TestStalledTLS(t *testing.T) {
	for name, begin := range map[string]string{"nothing": "", "half a record": "\x16\x03\x01\x02\x00\x01", "garbage": strings.Repeat("garbage ", 100)} {
		t.Run("client says "+name, func(t *testing.T) {
			t.Parallel()
			r := start(t, soon(AsClient, t))
			r.server.set(func(f *fakeServer) { f.greeting = withTLS() })
			p := r.dial()
			p.read()
			p.write(append(wantsTLS(), begin...))
			if _, err := io.Copy(io.Discard, p.conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("not closed: %v", err)
			}
			r.client() // without TLS
		})
		t.Run("server says "+name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			go stall(ln, begin)
			r := start(t, func(cfg *Config, live *Settings) {
				soon(Required, t)(cfg, live)
				cfg.Listeners[0].Upstreams[0].Addr = Address{Net: "tcp", Addr: ln.Addr().String()}
			})
			p := r.dial()
			p.login()
			reply, err := io.ReadAll(p.conn)
			if err != nil && strings.Contains(err.Error(), "timeout") || len(reply) > 0 && !strings.Contains(string(reply), "TLS connection error between idproxy and MySQL server") {
				t.Errorf("%q, %v", reply, err)
			}
		})
	}
}

// TestRenegotiation: a client that wants to begin TLS anew, over and over, costs no second handshake:
// its session ends, and others are served.
func TestRenegotiation(t *testing.T) {
	r := start(t, func(cfg *Config, live *Settings) {
		soon(Disabled, t)(cfg, live)
		live.Handshake = time.Minute
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := exec.CommandContext(ctx, "openssl", "s_client", "-starttls", "mysql", "-tls1_2", "-connect", r.srv.listeners[0].door.Addr().String())
	words, err := client.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(words, "R\n"); err != nil { // it is read once the session has TLS
		t.Fatal(err)
	}
	said, err := client.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(said), "RENEGOTIATING") || !strings.Contains(string(said), "SSL alert number") {
		t.Errorf("%v: %s", err, said)
	}
	r.client()
}

// stall greets everybody, and says begin where TLS should.
func stall(ln net.Listener, begin string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_, _ = c.Write(packet(0, withTLS()))
			_, _, _ = wire.ReadPacket(c, 1<<20)
			_, _ = c.Write([]byte(begin))
			_, _ = io.Copy(io.Discard, c)
		}()
	}
}
