package etcd

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	client "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/credentials"
)

// login is a user of a cluster: the cluster gives a token for name and password,
// and forgets it after minutes, or when it is restarted. The client can do the
// same, but it logs in when it is made, so that it cannot be made while the cluster
// is away, and it shows a forgotten token when it asks for another one, which
// etcd 3.4 refuses, over and over.
type login struct {
	name, password string

	mu    sync.Mutex
	done  bool   // there is no need to log in
	token string // empty: the cluster has no users
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (l *login) GetRequestMetadata(_ context.Context, service ...string) (map[string]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.token == "" || len(service) > 0 && strings.HasSuffix(service[0], "/etcdserverpb.Auth") {
		return nil, nil
	}
	return map[string]string{rpctypes.TokenFieldNameGRPC: l.token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (l *login) RequireTransportSecurity() bool { return false }

// first logs in unless that was done. Without a user there is no need.
func (l *login) first(ctx context.Context, c *client.Client) error {
	if l == nil || l.isDone() {
		return nil
	}
	r, err := c.Authenticate(ctx, l.name, l.password)
	off := errors.Is(err, rpctypes.ErrAuthNotEnabled)
	if err != nil && !off {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done, l.token = true, ""; !off {
		l.token = r.Token
	}
	return nil
}

func (l *login) isDone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done
}

// forgotten says whether an error means that the cluster does not know any more who asks.
func (l *login) forgotten(err error) bool {
	if l == nil || !errors.Is(err, rpctypes.ErrUserEmpty) && !errors.Is(err, rpctypes.ErrInvalidAuthToken) && !errors.Is(err, rpctypes.ErrAuthOldRevision) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = false
	return true
}

// named is TLS with servers whose certificates carry another name than that of their address.
type named struct {
	credentials.TransportCredentials
	name string
}

// ClientHandshake implements credentials.TransportCredentials.
func (n named) ClientHandshake(ctx context.Context, _ string, c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return n.TransportCredentials.ClientHandshake(ctx, n.name, c)
}

// Clone implements credentials.TransportCredentials.
func (n named) Clone() credentials.TransportCredentials {
	return named{n.TransportCredentials.Clone(), n.name}
}
