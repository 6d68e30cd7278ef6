package tlsconfig

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"idproxy/config"
)

// Files are the files of TLS that a program uses. They are read again, and what is made of them then
// is in force for the next handshake: a tls.Config from here stays the same one. A nil Files makes
// those whose files are read once.
type Files struct {
	mu       sync.Mutex
	sections []*section
}

// section is a part of a configuration that names files.
type section struct {
	name  string // listeners.a.tls
	paths []string
	read  func() error // and puts in force
	seen  [sha256.Size]byte
	fault string // why the last read failed; empty: it did not
}

// Reading is what came of files that are not what they were.
type Reading struct {
	Section string // of the configuration
	Err     error  // why what was in force stays so; nil: the new files are
}

// add reads the files of a section for the first time.
func (f *Files) add(name string, read func() error, paths ...string) error {
	s := &section{name: name, read: read, paths: slices.DeleteFunc(paths, func(p string) bool { return p == "" })}
	s.seen = s.sum()
	if err := read(); err != nil || f == nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sections = append(f.sections, s)
	return nil
}

// sum tells files that differ apart. One that cannot be read is empty, which read says more of.
func (s *section) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range s.paths {
		text, _ := os.ReadFile(path)
		one := sha256.Sum256(text)
		h.Write(one[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Again reads all files and puts in force what has changed, or could not be read the last time. What
// cannot be used changes nothing, and is told once.
func (f *Files) Again() (readings []Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sections {
		sum := s.sum()
		if sum == s.seen && s.fault == "" {
			continue
		}
		err, fault := s.read(), ""
		if err != nil {
			fault = err.Error()
		}
		if sum != s.seen || fault != s.fault {
			readings = append(readings, Reading{Section: s.name, Err: err})
		}
		s.seen, s.fault = sum, fault
	}
	return readings
}

// Take has the files of others, and no more those of sections that are gone.
func (f *Files) Take(others *Files, gone func(section string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sections = append(slices.DeleteFunc(f.sections, func(s *section) bool { return gone(s.name) }), others.sections...)
}

// Folders are those that have the files: one that is replaced is another file under the same name.
func (f *Files) Folders() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sections {
		for _, path := range s.paths {
			all = append(all, filepath.Dir(path))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Client returns what is offered to clients, over which these protocols are spoken by ALPN; nil for
// none. name is that of the section.
func (f *Files) Client(name string, c *config.TLS, protocols ...string) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	var now atomic.Pointer[tls.Config]
	read := func() error {
		t, err := Client(c)
		if err != nil {
			return err
		}
		t.NextProtos = protocols
		now.Store(t)
		return nil
	}
	if err := f.add(name, read, c.Cert, c.Key, c.ClientCA); err != nil {
		return nil, err
	}
	// The keys of session tickets are this Config's, so that sessions are resumed across a change.
	// A client's certificate is verified again then, by the CA in force.
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil },
	}, nil
}

// Upstream returns how a server behind a listener is spoken to over TLS. Without a CA its
// certificate is not verified, as with MySQL's ssl-mode=REQUIRED.
func (f *Files) Upstream(c *config.Listener, to config.Addr) (*tls.Config, error) {
	t, err := unverified(c, to)
	if err != nil || c.UpstreamTLS.CA == "" {
		return t, err
	}
	var roots atomic.Pointer[x509.CertPool]
	read := func() error {
		pool, err := loadCA(c.UpstreamTLS.CA)
		if err != nil {
			return err
		}
		roots.Store(pool)
		return nil
	}
	if err := f.add("listeners."+c.Name+".upstream_tls", read, c.UpstreamTLS.CA); err != nil {
		return nil, fmt.Errorf("upstream_tls.ca: %w", err)
	}
	// What InsecureSkipVerify leaves out is done here, by the CA in force.
	t.VerifyConnection = func(s tls.ConnectionState) error { return verify(s.PeerCertificates, roots.Load(), t.ServerName) }
	return t, nil
}

// verify is what crypto/tls does with the certificates of a server.
func verify(chain []*x509.Certificate, roots *x509.CertPool, name string) error {
	if len(chain) == 0 {
		return errors.New("the server shows no certificate")
	}
	o := x509.VerifyOptions{Roots: roots, DNSName: name, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if _, err := chain[0].Verify(o); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err}
	}
	return nil
}
