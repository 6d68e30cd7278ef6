package redis

import (
	"context"
	"crypto/tls"
	"net/http/httptest"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// TestAlert: whoever writes to a server that has refused the certificate is told so, and not of a
// reset.
func TestAlert(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()
	c, err := dialTLS(&tls.Config{InsecureSkipVerify: true})(context.Background(), "tcp", s.Listener.Addr().String())
	assert.Must(t, err)
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err = c.Write([]byte("PING\r\n")); err != nil {
			break
		}
	}
	assert.Fails(t, "the error", err, "remote error: tls: ")
}
