package etcd

import (
	"context"
	"crypto/tls"
	"strings"
	"syscall"
	"testing"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// newSecure starts an etcd with TLS and users, and one of idproxy's rights.
func newSecure(t *testing.T) *servers.Etcd {
	t.Helper()
	s := assert.Of(servers.StartEtcdTLS(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	c := assert.Of(client.New(client.Config{Endpoints: []string{s.Addr}, TLS: s.TLS})).Must(t)
	defer c.Close() //nolint:errcheck // nothing is pending
	ctx := t.Context()
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", "r"); return err },
		func() error { _, err := c.RoleAdd(ctx, "root"); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.UserAdd(ctx, "app", "secret"); return err },
		func() error { _, err := c.RoleAdd(ctx, "ids"); return err },
		func() error {
			all := client.GetPrefixRangeEnd("/idproxy/")
			_, err := c.RoleGrantPermission(ctx, "ids", "/idproxy/", all, client.PermissionType(client.PermReadWrite))
			return err
		},
		func() error { _, err := c.UserGrantRole(ctx, "app", "ids"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		assert.Must(t, do())
	}
	return s
}

// TestUser has a user with rights to idproxy's keys alone, over TLS with a certificate. The server
// forgets who has logged in when it is restarted.
func TestUser(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	assert.Must(t, s.Signal(syscall.SIGSTOP))
	st := assert.Of(New(Config{Endpoints: []string{s.Addr}, Username: "app", Password: "secret", TLS: s.TLS})).Must(t, "while the cluster is away")
	t.Cleanup(func() { _ = st.Close() })
	assert.Must(t, s.Signal(syscall.SIGCONT))
	assert.Must(t, st.Open(t.Context(), "k", 1, 0))
	var last uint64
	reserved(t, st, &last)
	again(t, s)
	reserved(t, st, &last)
	keys, err := st.Keys(t.Context())
	assert.True(t, err == nil && len(keys) == 1, "keys %q, %v", keys, err)
	workers := st.Workers()
	holders.Fill(t, workers, "p", 2)
	a := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "x"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 2 { // as one does who got no answer
		r, err := workers.Take(ctx, a)
		assert.True(t, err == nil && r.Verdict == lease.Granted && r.Worker == 0, "a worker number: %+v, %v, want number 0", r, err)
	}
}

// TestRefused has etcd refuse who may not in.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	nobody := s.TLS.Clone()
	nobody.Certificates = nil
	for _, tt := range []struct {
		name           string
		user, password string
		tls            *tls.Config
		want           string
	}{
		{"a wrong password", "app", "wrong", s.TLS, "invalid user ID or password"},
		{"another user's", "root", "secret", s.TLS, "invalid user ID or password"},
		{"no user", "", "", s.TLS, "permission denied"}, // the certificate names one that is not there
		{"no certificate", "app", "secret", nobody, ""}, // the connection ends, with a reason or without,
		{"a server that nobody vouches for", "app", "secret", &tls.Config{Certificates: s.TLS.Certificates}, "certificate signed by unknown authority"},
		{"no TLS", "app", "secret", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			st, err := New(Config{Endpoints: []string{s.Addr}, Username: tt.user, Password: tt.password, TLS: tt.tls})
			assert.Must(t, err)
			defer st.Close() //nolint:errcheck // nothing is pending
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				// A handshake that takes too long on a busy machine tells nothing of the certificate.
				if _, err = st.Position(ctx, "k"); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "handshake failed: context deadline exceeded") {
					break
				}
			}
			assert.True(t, err != nil && strings.Contains(err.Error(), tt.want), "%v, want an error with %q", err, tt.want)
		})
	}
}
