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
				e, err := servers.StartEtcd(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := e.Stop(); err != nil {
						t.Error(err)
					}
				})
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
	program, err := harness.Build()
	if err != nil {
		t.Fatal(err)
	}
	path := harness.WriteConfig(t, config)
	idproxy := func(args ...string) (out string, err error) {
		t.Helper()
		b, err := exec.CommandContext(t.Context(), program, append(args, "--config", path)...).CombinedOutput()
		return string(b), err
	}
	add := func(args ...string) (secret string) {
		t.Helper()
		out, err := idproxy(append([]string{"user", "add"}, args...)...)
		if err != nil || len(out) < 32 {
			t.Fatalf("%v: %s", err, out)
		}
		return out[:32]
	}
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	overHTTP := func(p *harness.Proxy, token string) (status int) {
		t.Helper()
		m := httpAddress.FindStringSubmatch(p.Log())
		if m == nil {
			return 0
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m[1]+"/v1/ids", strings.NewReader(`{"key":"token"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, a.Body)
		_ = a.Body.Close()
		return a.StatusCode
	}
	asks := func(ctx context.Context, p *harness.Proxy, name, secret string) error {
		return redisTo(t, p, name, secret).Do(ctx, "IDS.NEXT", "token").Err()
	}
	if err := asks(t.Context(), proxies[0], "own", "mine"); err != nil {
		t.Errorf("a user of the configuration: %v", err)
	}
	if err := asks(t.Context(), proxies[0], "", ""); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("nobody: %v", err)
	}
	ann := add("ann", "--sources", "token,app:*", "--create")
	for _, p := range proxies {
		within(t, "ann over Redis", func() error { return asks(t.Context(), p, "ann", ann) })
		if status := overHTTP(p, ann); status != http.StatusOK {
			t.Errorf("ann over HTTP: %d", status)
		}
		if err := asks(t.Context(), p, "ann", "wrong"); err == nil {
			t.Error("ann with a wrong password")
		}
		if err := redisTo(t, p, "ann", ann).Incr(t.Context(), "order_id").Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("ann asks for what she may not: %v", err)
		}
	}
	if out, err := idproxy("user", "list"); err != nil || !strings.Contains(out, "ann   -     -     true    false  token, app:*") || strings.Contains(out, ann) {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := idproxy("user", "add", "ann"); err == nil || !strings.Contains(out, "--replace") {
		t.Errorf("ann twice: %s", out)
	}

	// A key that she creates on one proxy is soon served by the other.
	first, second := redisTo(t, proxies[0], "ann", ann), redisTo(t, proxies[1], "ann", ann)
	if err := first.Do(t.Context(), "IDS.CREATE", "app:new", 500, 20).Err(); err != nil {
		t.Fatal(err)
	}
	if id, err := first.Incr(t.Context(), "app:new").Result(); err != nil || id != 500 {
		t.Errorf("%d, %v", id, err)
	}
	within(t, "a key of the other proxy, whose range begins above the 20 of the first", func() error {
		id, err := second.Incr(t.Context(), "app:new").Result()
		if err == nil && id != 520 {
			t.Errorf("id %d, want 520", id)
		}
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
		if status := overHTTP(p, ann); status != http.StatusUnauthorized {
			t.Errorf("the old token: %d", status)
		}
	}
	if out, err := idproxy("user", "remove", "ann"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range proxies {
		within(t, "she is gone", func() error {
			if status := overHTTP(p, again); status != http.StatusUnauthorized {
				return fmt.Errorf("status %d", status)
			}
			return nil
		})
	}
	if out, err := idproxy("user", "remove", "ann"); err == nil {
		t.Errorf("removed twice: %s", out)
	}
}
