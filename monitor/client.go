package monitor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Client asks the admin listener of a running program.
type Client struct {
	http  *http.Client
	base  string
	token string
}

// NewClient returns a client of an address: network is "tcp" or "unix". token may be empty. secure
// is how TLS is spoken; nil: it is not.
func NewClient(network, address, token string, secure *tls.Config) *Client {
	transport := &http.Transport{
		TLSClientConfig: secure,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}
	c := &Client{http: &http.Client{Transport: transport}, base: "http://", token: token}
	if secure != nil {
		c.base = "https://"
	}
	if network == "unix" {
		c.base += "localhost"
	} else {
		c.base += address
	}
	return c
}

// State asks what the program does now.
func (c *Client) State(ctx context.Context) (s State, err error) {
	return s, c.get(ctx, "/api/v1/status", &s)
}

// Sessions asks for the open sessions.
func (c *Client) Sessions(ctx context.Context) (s []Session, err error) {
	return s, c.get(ctx, "/api/v1/sessions", &s)
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 256 << 20

func (c *Client) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("is idproxy running, with an admin section? %w", err)
	}
	defer answer.Body.Close()
	body := json.NewDecoder(io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode != http.StatusOK {
		var said struct{ Detail string }
		_ = body.Decode(&said) // what is no JSON says nothing
		return fmt.Errorf("%s answers %s: %s", c.base, answer.Status, said.Detail)
	}
	if err := body.Decode(into); err != nil {
		return fmt.Errorf("%s%s: %w", c.base, path, err)
	}
	return nil
}
