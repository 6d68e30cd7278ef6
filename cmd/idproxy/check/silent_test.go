package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/cmd/idproxy/store"
	"idproxy/config"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestCheckOnlineSilentServer has servers that do not answer, one at once and one after
// some questions. What could not be asked is named, and all others are looked at.
func TestCheckOnlineSilentServer(t *testing.T) {
	server := harness.MariaDB(t)
	name := harness.Database(t, server)
	db := harness.Open(t, server.Config(name), "")
	assert.Of(db.Exec("CREATE TABLE t (small DATE)")).Must(t)
	cfg, err := config.Load(harness.WriteConfig(t, fmt.Sprintf(`listeners:
  - {name: silent, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}
  - {name: stuck, listen: 127.0.0.1:0, upstream_tls: {mode: disabled}, upstream: %q, account: {user: app, password: app}}
  - {name: fine, listen: 127.0.0.1:0, upstream: %q, account: {user: app, password: app}}
sources: {ids: {snowflake: {worker: 1}}}
rules: [{table: %s.t, column: small, source: ids}]
`, silentAt(t, server.Addr, ""), silentAt(t, server.Addr, "SELECT * FROM"), server.Addr, name)))
	assert.Must(t, err)
	// The server that answers has as long as it takes.
	c := &checker{cfg: cfg, patience: patience{first: 10 * time.Second, all: 10 * time.Second}}
	var out strings.Builder
	for _, f := range c.run(t.Context()) {
		fmt.Fprintf(&out, "%s: %s: %s\n", f.Position, f.Level, f.Message)
	}
	for _, want := range []string{
		":2:5: error: listener silent: server " + cfg.Listeners[0].Upstream.String() + ": no answer within 10s: NOT checked, nor are its tables\n",
		":3:5: error: listener stuck: server " + cfg.Listeners[1].Upstream.String() + ": no answer within 10s: NOT checked: " + name + ".t\n",
		name + ".t.small: listener fine: the column's type cannot hold generated ids exactly",
	} {
		assert.True(t, strings.Contains(out.String(), want), "%q is not in %q", want, out.String())
	}
}

// silentAt returns the address of a relay that passes on what a client says until that has
// the text in it, and nothing from there on.
func silentAt(t *testing.T, upstream, text string) string {
	t.Helper()
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			relays.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", upstream)
				if err != nil {
					t.Error(err)
					return
				}
				defer server.Close()
				relays.Go(func() {
					if text != "" {
						_, _ = io.Copy(client, server)
					}
				})
				buf := make([]byte, 4096)
				for said, silent := "", text == ""; ; {
					n, err := client.Read(buf)
					if said += string(buf[:n]); err != nil { // the client gave up
						return
					}
					if silent = silent || strings.Contains(said, text); !silent {
						_, _ = server.Write(buf[:n])
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		relays.Wait()
	})
	return l.Addr().String()
}

// TestCheckSilentStore: a store that does not answer costs its time once, and takes none of what
// others have.
func TestCheckSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c, other storeAsker
		began := time.Now()
		for range 3 {
			err := c.ask(t.Context(), func(ctx context.Context) error {
				<-ctx.Done()
				return fmt.Errorf("etcd store: %w", ctx.Err())
			})
			assert.True(t, errors.Is(err, context.DeadlineExceeded), "%v", err)
		}
		assert.NoError(t, other.ask(t.Context(), func(ctx context.Context) error { return ctx.Err() }), "another store")
		assert.Equal(t, "it took", time.Since(began), store.AskTime)
	})
}

func TestMain(m *testing.M) { harness.Main(m) }
