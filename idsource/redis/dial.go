package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dialTLS returns how the client connects over TLS.
func dialTLS(config *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: config}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return alerting{c.(*tls.Conn)}, nil
	}
}

// alerting is a connection that says why the server ended it. In TLS 1.3 a client has done its part of
// the handshake before the server has looked at its certificate: what it writes next fails with a
// reset where the server's alert, which has the reason, was not read yet.
type alerting struct{ *tls.Conn }

func (c alerting) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil && c.SetReadDeadline(time.Now().Add(timeout)) == nil {
		_, read := c.Read(make([]byte, 1))
		if op, ok := errors.AsType[*net.OpError](read); ok && op.Op == "remote error" {
			return n, read
		}
	}
	return n, err
}
