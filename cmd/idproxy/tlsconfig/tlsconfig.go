// Package tlsconfig makes what a configuration says of TLS into what crypto/tls takes: for clients,
// servers and stores.
package tlsconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"idproxy/config"
)

// Client returns what is offered to clients by files that are read once; nil for none.
func Client(c *config.TLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	// Go would start with records of 1.2 kB and make one write of each.
	t := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	if c.ClientCA != "" {
		if t.ClientCAs, err = loadCA(c.ClientCA); err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		t.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return t, nil
}

// unverified is TLS to a server behind a listener, whatever its certificate.
func unverified(c *config.Listener, to config.Addr) (*tls.Config, error) {
	t := &tls.Config{
		ServerName: c.UpstreamTLS.ServerName, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true, InsecureSkipVerify: true,
	}
	if t.ServerName == "" && to.Network == "tcp" {
		host, _, err := net.SplitHostPort(to.Address)
		if err != nil {
			return nil, err
		}
		t.ServerName = host
	}
	return t, nil
}

// Store is how a store is spoken to over TLS; nil: it is not.
func Store(c *config.StoreTLS) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	t := &tls.Config{ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.CA != "" {
		roots, err := loadCA(c.CA)
		if err != nil {
			return nil, fmt.Errorf("tls.ca: %w", err)
		}
		t.RootCAs = roots
	} else if roots, err := x509.SystemCertPool(); err == nil { // now, and not in the time that a server has to answer
		t.RootCAs = roots
	}
	if c.Cert != "" {
		cert, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}

func loadCA(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return pool, nil
}

// Admin is how a program on the same host asks the admin listener; nil: without TLS. The listener's
// own certificate is the one that is trusted, whatever name it has.
func Admin(c *config.TLS, host string) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	if c.ClientCA != "" {
		return nil, errors.New("admin.tls.client_ca asks clients for certificates: use admin.socket for commands on this host")
	}
	own, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("admin.tls: %w", err)
	}
	return &tls.Config{
		ServerName: host, InsecureSkipVerify: true, // the check of names is left out, VerifyConnection is the check
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, own.Certificate[0]) {
				return errors.New("the admin listener shows another certificate than admin.tls.cert")
			}
			return nil
		},
	}, nil
}
