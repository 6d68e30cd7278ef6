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
	unix  bool
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
	c := &Client{http: &http.Client{Transport: transport}, base: "http://", token: token, unix: network == "unix"}
	if secure != nil {
		c.base = "https://"
	}
	if c.unix {
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

// Refusals asks for the shapes of statements that were refused or observed.
func (c *Client) Refusals(ctx context.Context) (all []Refusal, err error) {
	return all, c.get(ctx, "/api/v1/refusals", &all)
}

// ConfigText asks for the configuration in force, as YAML with stars for secrets.
func (c *Client) ConfigText(ctx context.Context) ([]byte, error) {
	var text yamlText
	err := c.do(ctx, http.MethodGet, "/api/v1/config", http.StatusOK, &text)
	return text, err
}

// Events asks for what is remembered of the log, the oldest first.
func (c *Client) Events(ctx context.Context) (all []Event, err error) {
	return all, c.get(ctx, "/api/v1/events", &all)
}

// MayClose reports whether the client has what closing a session takes: a token, or the unix socket.
func (c *Client) MayClose() bool { return c.token != "" || c.unix }

// CloseSession cuts a session.
func (c *Client) CloseSession(ctx context.Context, id uint64) error {
	return c.do(ctx, http.MethodDelete, fmt.Sprintf("/api/v1/sessions/%d", id), http.StatusNoContent, nil)
}

// Drain has the program let its sessions go.
func (c *Client) Drain(ctx context.Context) error { return c.post(ctx, "/api/v1/drain") }

// Resume takes that back.
func (c *Client) Resume(ctx context.Context) error { return c.post(ctx, "/api/v1/resume") }

// Reload has the program put its file in force, and says what changed.
func (c *Client) Reload(ctx context.Context) (changes []string, err error) {
	var said Reloaded
	err = c.do(ctx, http.MethodPost, "/api/v1/reload", http.StatusOK, &said)
	return said.Changes, err
}

// Preview says what Reload would change.
func (c *Client) Preview(ctx context.Context) (changes []string, err error) {
	var said Reloaded
	err = c.get(ctx, "/api/v1/reload", &said)
	return said.Changes, err
}

// Upgrade has a successor serve in the program's place. It returns once that does.
func (c *Client) Upgrade(ctx context.Context) error { return c.post(ctx, "/api/v1/upgrade") }

func (c *Client) post(ctx context.Context, path string) error {
	return c.do(ctx, http.MethodPost, path, http.StatusNoContent, nil)
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 256 << 20

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, http.StatusOK, into)
}

// do sends a request whose answer has a status when all is well. into takes the body; nil: there is
// none.
func (c *Client) do(ctx context.Context, method, path string, status int, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
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
	if answer.StatusCode != status {
		var said struct{ Detail string }
		_ = body.Decode(&said) // what is no JSON says nothing
		return fmt.Errorf("%s answers %s: %s", c.base, answer.Status, said.Detail)
	}
	if into == nil {
		return nil
	}
	if text, ok := into.(*yamlText); ok {
		*text, err = io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	} else {
		err = body.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("%s%s: %w", c.base, path, err)
	}
	return nil
}

// yamlText is an answer that is no JSON.
type yamlText []byte
