package ids

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// within tries something again until it succeeds.
func within(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for limit := time.Now().Add(2 * time.Minute); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// TestUsersInStore adds, changes and removes users with the command: two proxies know them over both
// protocols, without a reload. A key that one of them creates is soon served by the other.
func TestUsersInStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mysql", "etcd"} {
		t.Run(kind, func(t *testing.T) {
			s := harness.MariaDB(t)
			store := fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(s, harness.Database(t, s)))
			if kind == "etcd" {
				e := assert.Of(servers.StartEtcd(t.Context())).Must(t)
				t.Cleanup(func() { assert.NoError(t, e.Stop()) })
				store = fmt.Sprintf("etcd: {endpoints: [%q]}", e.Addr)
			}
			usersInStore(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:  {main: {%s}}
sources: {order_id: {segment: {store: main}}, token: {uuidv7: {}}}
ids:
  users_in: main
  redis: {listen: "127.0.0.1:0", create_in: main, users: {own: {password: mine}}}
  http:  {listen: "127.0.0.1:0"}
`, s.Addr, store))
		})
	}
}

func usersInStore(t *testing.T, config string) {
	program := assert.Of(harness.Build()).Must(t)
	path := harness.WriteConfig(t, config)
	idproxy := func(args ...string) (out string, err error) {
		t.Helper()
		b, err := exec.CommandContext(t.Context(), program, append(args, "--config", path)...).CombinedOutput()
		return string(b), err
	}
	add := func(args ...string) (secret string) {
		t.Helper()
		out, err := idproxy(append([]string{"user", "add"}, args...)...)
		assert.MustTrue(t, err == nil && len(out) >= 32, "%v: %s", err, out)
		return out[:32]
	}
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	overHTTP := func(p *harness.Proxy, token string) (status int) {
		t.Helper()
		m := httpAddress.FindStringSubmatch(p.Log())
		if m == nil {
			return 0
		}
		r := assert.Of(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m[1]+"/v1/ids", strings.NewReader(`{"key":"token"}`))).Must(t)
		r.Header.Set("Authorization", "Bearer "+token)
		a := assert.Of(http.DefaultClient.Do(r)).Must(t)
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		return a.StatusCode
	}
	asks := func(ctx context.Context, p *harness.Proxy, name, secret string) error {
		return redisTo(t, p, name, secret).Do(ctx, "IDS.NEXT", "token").Err()
	}
	assert.NoError(t, asks(t.Context(), proxies[0], "own", "mine"), "a user of the configuration")
	assert.Fails(t, "nobody", asks(t.Context(), proxies[0], "", ""), "NOAUTH")
	ann := add("ann", "--sources", "token,app:*", "--create")
	for _, p := range proxies {
		within(t, "ann over Redis", func() error { return asks(t.Context(), p, "ann", ann) })
		assert.Equal(t, "ann over HTTP", overHTTP(p, ann), http.StatusOK)
		assert.Fails(t, "ann with a wrong password", asks(t.Context(), p, "ann", "wrong"), "")
		assert.Fails(t, "ann asks for what she may not", redisTo(t, p, "ann", ann).Incr(t.Context(), "order_id").Err(), "NOPERM")
	}
	out, err := idproxy("user", "list")
	assert.True(t, err == nil && strings.Contains(out, "ann   -     -     true    false  token, app:*") && !strings.Contains(out, ann), "%v: %s", err, out)
	out, err = idproxy("user", "add", "ann")
	assert.True(t, err != nil && strings.Contains(out, "--replace"), "ann twice: %s", out)

	// A key that she creates on one proxy is soon served by the other.
	first, second := redisTo(t, proxies[0], "ann", ann), redisTo(t, proxies[1], "ann", ann)
	assert.Must(t, first.Do(t.Context(), "IDS.CREATE", "app:new", 500, 20).Err())
	assert.Of(first.Incr(t.Context(), "app:new").Result()).Equal(t, `first.Incr("app:new").Result()`, 500)
	within(t, "a key of the other proxy, whose range begins above the 20 of the first", func() error {
		id, err := second.Incr(t.Context(), "app:new").Result()
		assert.True(t, err != nil || id == 520, "id %d, want 520", id)
		return err
	})

	// Connections that are open follow.
	again := add("ann", "--replace")
	for _, c := range []*redis.Client{first, second} {
		within(t, "the old password is refused", func() error {
			if err := c.Incr(t.Context(), "app:new").Err(); err == nil {
				return errors.New("ann goes on")
			}
			return nil
		})
	}
	for _, p := range proxies {
		within(t, "the new password", func() error { return asks(t.Context(), p, "ann", again) })
		assert.Equal(t, "the old token", overHTTP(p, ann), http.StatusUnauthorized)
	}
	out, err = idproxy("user", "remove", "ann")
	assert.Must(t, err, out)
	for _, p := range proxies {
		within(t, "she is gone", func() error {
			if status := overHTTP(p, again); status != http.StatusUnauthorized {
				return fmt.Errorf("status %d", status)
			}
			return nil
		})
	}
	out, err = idproxy("user", "remove", "ann")
	assert.True(t, err != nil, "removed twice: %s", out)
}
