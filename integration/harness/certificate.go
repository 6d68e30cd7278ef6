package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// WriteCertificate writes server.pem and server.key, for 127.0.0.1.
func WriteCertificate(tb testing.TB, dir string, lasts time.Duration) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	assert.Must(tb, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(lasts), IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err1 := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	keyDER, err2 := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(
		err1, err2,
		os.WriteFile(filepath.Join(dir, "server.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "server.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600),
	)
	assert.Must(tb, err)
}
