package tlsconfig

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"idproxy/config"
)

// Certificate is a file of certificates that a configuration names.
type Certificate struct {
	Name string    // of the key that names it: listeners.shard0.tls.cert
	File string    // its path
	Ends time.Time // from then on it is good for nothing
}

// Certificates returns those of all TLS sections of a configuration, in their order. An error is of
// files that cannot be read; the others are returned all the same.
func Certificates(cfg *config.Config) (all []Certificate, err error) {
	add := func(name, file string, ends func([]*x509.Certificate) time.Time) {
		if file == "" {
			return
		}
		chain, rerr := readCertificates(file)
		if rerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", name, rerr))
			return
		}
		all = append(all, Certificate{name, file, ends(chain)})
	}
	offered := func(name string, c *config.TLS) {
		if c != nil {
			add(name+".tls.cert", c.Cert, firstEnd)
			add(name+".tls.client_ca", c.ClientCA, lastEnd)
		}
	}
	for i := range cfg.Listeners {
		l := &cfg.Listeners[i]
		offered("listeners."+l.Name, l.TLS.Files())
		add("listeners."+l.Name+".upstream_tls.ca", l.UpstreamTLS.CA, lastEnd)
	}
	for i := range cfg.Stores {
		if c, kind := storeTLS(&cfg.Stores[i]); c != nil {
			name := "stores." + cfg.Stores[i].Name + "." + kind + ".tls"
			add(name+".ca", c.CA, lastEnd)
			add(name+".cert", c.Cert, firstEnd)
		}
	}
	if cfg.Order != nil && cfg.Order.TLS != nil {
		add("order.tls.ca", cfg.Order.TLS.CA, lastEnd)
		add("order.tls.cert", cfg.Order.TLS.Cert, firstEnd)
	}
	if cfg.Admin != nil {
		offered("admin", cfg.Admin.TLS)
	}
	if cfg.IDs != nil && cfg.IDs.Redis != nil {
		offered("ids.redis", cfg.IDs.Redis.TLS)
	}
	if cfg.IDs != nil && cfg.IDs.HTTP != nil {
		offered("ids.http", cfg.IDs.HTTP.TLS)
	}
	return all, err
}

// Keys returns the files of private keys that a configuration names.
func Keys(cfg *config.Config) (files []string) {
	add := func(file string) {
		if file != "" {
			files = append(files, file)
		}
	}
	offered := func(c *config.TLS) {
		if c != nil {
			add(c.Key)
		}
	}
	for i := range cfg.Listeners {
		offered(cfg.Listeners[i].TLS.Files())
	}
	for i := range cfg.Stores {
		if c, _ := storeTLS(&cfg.Stores[i]); c != nil {
			add(c.Key)
		}
	}
	if cfg.Order != nil && cfg.Order.TLS != nil {
		add(cfg.Order.TLS.Key)
	}
	if cfg.Admin != nil {
		offered(cfg.Admin.TLS)
	}
	if cfg.IDs != nil && cfg.IDs.Redis != nil {
		offered(cfg.IDs.Redis.TLS)
	}
	if cfg.IDs != nil && cfg.IDs.HTTP != nil {
		offered(cfg.IDs.HTTP.TLS)
	}
	return files
}

func storeTLS(c *config.Store) (secure *config.StoreTLS, kind string) {
	switch {
	case c.Etcd != nil:
		return c.Etcd.TLS, "etcd"
	case c.Redis != nil:
		return c.Redis.TLS, "redis"
	case c.ZooKeeper != nil:
		return c.ZooKeeper.TLS, "zookeeper"
	}
	return nil, ""
}

// firstEnd is when a certificate, or one of those that lead from it to the CA, ends.
func firstEnd(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain {
		if c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// lastEnd is when the last of several CAs ends: while one follows another, a file has both.
func lastEnd(cas []*x509.Certificate) (ends time.Time) {
	for _, c := range cas {
		if c.NotAfter.After(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// readCertificates returns those of a PEM file, of which there is at least one.
func readCertificates(path string) (all []*x509.Certificate, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s holds no PEM certificate", path)
	}
	return all, nil
}
