package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// WriteCertificates makes a CA, and signed by it a certificate for 127.0.0.1, localhost and more names
// or addresses, and one of a client: ca.pem, server.pem, server.key, client.pem and client.key in dir.
// The CA's key is thrown away.
func WriteCertificates(dir string, names ...string) error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	ca := certificate(1, "idproxy test CA")
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	server, client := certificate(2, "localhost"), certificate(3, "idproxy")
	server.IPAddresses, server.DNSNames = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, []string{"localhost"}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			server.IPAddresses = append(server.IPAddresses, ip)
		} else {
			server.DNSNames = append(server.DNSNames, name)
		}
	}
	server.KeyUsage, server.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client.KeyUsage, client.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	return errors.Join(
		writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", der),
		signed(filepath.Join(dir, "server"), server, ca, caKey),
		signed(filepath.Join(dir, "client"), client, ca, caKey),
	)
}

// signed makes a key and its certificate: path.pem and path.key.
func signed(path string, c, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	der, err1 := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	return errors.Join(writePEM(path+".pem", "CERTIFICATE", der), writePEM(path+".key", "PRIVATE KEY", keyDER))
}

// certificate is the part that both have in common. It is valid from now on, for a day.
func certificate(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
