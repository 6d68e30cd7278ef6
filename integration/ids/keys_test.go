package ids

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// documented returns the commands of docs/id-sources.md, and their answers.
func documented(t *testing.T) (commands, answers []string) {
	t.Helper()
	page := assert.Of(os.ReadFile("../../docs/id-sources.md")).Must(t)
	_, text, _ := strings.Cut(string(page), "## Ids for other programs")
	text, _, _ = strings.Cut(text, "\n| command")
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(line, "    ")
		if c, asked := strings.CutPrefix(line, "> "); ok && asked {
			commands, answers = append(commands, strings.TrimSpace(c)), append(answers, "")
		} else if ok && len(answers) > 0 {
			answers[len(answers)-1] += line
		}
	}
	assert.MustTrue(t, len(commands) >= 10, "the page has the commands %q", commands)
	return commands, answers
}

var aUUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// TestKeysOverRedis asks two proxies for ids over TLS, as the page of sources shows it: each command
// there is run and answered so. A key that one proxy makes is served by the other, and of its
// series no id comes twice.
func TestKeysOverRedis(t *testing.T) {
	s := harness.MariaDB(t)
	kept := harness.Database(t, s)
	dir := t.TempDir()
	pem := func(name string) string { return filepath.Join(dir, name) }
	if out, err := exec.CommandContext(t.Context(), "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=ids",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem("ids.key"), "-out", pem("ids.pem")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:  {main: {mysql: {dsn: %q}}}
sources: {order_id: {segment: {store: main}}, token: {uuidv7: {}}, object: {objectid: {}}}
ids:
  redis:
    listen: 127.0.0.1:0
    tls: {cert: %q, key: %q}
    create_in: main
    users: {app: {password: secret, sources: [order_id, token, object, "app:*"], max_incrby: 5000, rate: 10000, create: true, set: true}, other: {password: x, sources: ["app:*"]}}
`, s.Addr, harness.StoreDSN(s, kept), pem("ids.pem"), pem("ids.key"))
	program := assert.Of(harness.Build()).Must(t)
	out, err := exec.CommandContext(t.Context(), program, "source", "set", "order_id", "1", "--config", harness.WriteConfig(t, config)).CombinedOutput()
	assert.Must(t, err, string(out))
	first, second := harness.StartProxy(t, config), harness.StartProxy(t, config)

	ca := assert.Of(os.ReadFile(pem("ids.pem"))).Must(t)
	roots := x509.NewCertPool()
	assert.MustTrue(t, roots.AppendCertsFromPEM(ca), "no certificate")
	client := func(p *harness.Proxy, user, password string) *redis.Client {
		t.Helper()
		plain := redisTo(t, p, user, password)
		options := plain.Options()
		c := redis.NewClient(&redis.Options{
			Addr: options.Addr, Username: user, Password: password, MaxRetries: -1, TLSConfig: &tls.Config{RootCAs: roots}, Protocol: 3,
		})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two := client(first, "app", "secret"), client(second, "app", "secret")
	host, port, _ := net.SplitHostPort(one.Options().Addr)
	commands, answers := documented(t)
	for i, command := range commands {
		args := append([]string{"-h", host, "-p", port, "--tls", "--cacert", pem("ids.pem"), "--user", "app", "--pass", "secret", "--no-auth-warning", "--no-raw"}, strings.Fields(command)...)
		out, err := exec.CommandContext(t.Context(), "redis-cli", args...).CombinedOutput()
		got, want := strings.TrimSpace(aUUID.ReplaceAllString(string(out), "UUID")), strings.TrimSpace(aUUID.ReplaceAllString(answers[i], "UUID"))
		assert.True(t, (err == nil || errors.As(err, new(*exec.ExitError))) && got == want, "%s: %v\n%s\nwant\n%s", command, err, got, want)
	}
	object, err := one.Do(t.Context(), "IDS.NEXT", "object", 2).StringSlice()
	assert.True(t, err == nil && len(object) == 2 && len(object[1]) == 24 && object[0] < object[1], "ObjectIds: %q, %v", object, err)
	for _, wrong := range []struct {
		c    *redis.Client
		args []any
		want string
	}{
		{one, []any{"IDS.CREATE", "app:invoices"}, `there is a key "app:invoices" already`},
		{two, []any{"IDS.CREATE", "app:invoices"}, `there is a key "app:invoices" already`},
		{one, []any{"IDS.CREATE", "order_id"}, `key "order_id" is the name of a source`},
		{one, []any{"IDS.CREATE", "else"}, "NOPERM"},
		{client(first, "other", "x"), []any{"IDS.CREATE", "app:x"}, "NOPERM user 'other' has no right to create keys"},
		{client(first, "other", "x"), []any{"IDS.SET", "app:invoices", 9}, "NOPERM user 'other' has no right to set keys"},
		{one, []any{"INCRBY", "order_id", 5001}, "at most 5000 ids"},
	} {
		assert.Fails(t, fmt.Sprint(wrong.args), wrong.c.Do(t.Context(), wrong.args...).Err(), wrong.want)
	}

	assert.Must(t, second.Signal(syscall.SIGHUP)) // else within a minute
	for deadline := time.Now().Add(time.Minute); two.Do(t.Context(), "IDS.NEXT", "app:invoices").Err() != nil; time.Sleep(50 * time.Millisecond) {
		assert.MustTrue(t, !time.Now().After(deadline), "the other proxy does not serve the key")
	}
	var mu sync.Mutex
	seen := map[int64]bool{}
	var all sync.WaitGroup
	for _, c := range []*redis.Client{one, two} {
		all.Go(func() {
			for range 300 {
				ids, err := c.Do(t.Context(), "IDS.NEXT", "app:invoices", 10).Int64Slice()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, id := range ids {
					assert.True(t, !seen[id] && id >= 6001, "id %d came twice, or from below", id)
					seen[id] = true
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, "ids", len(seen), 6000)
}
