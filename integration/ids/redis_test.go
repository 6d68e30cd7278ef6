package ids

import (
	"context"
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

var idsAddress = regexp.MustCompile(`msg="ids over redis" listen=(\S+)`)

// logged waits for a line of a proxy's log, and returns the address in it.
func logged(t *testing.T, p *harness.Proxy, line *regexp.Regexp) string {
	t.Helper()
	var found []string
	assert.Until(t, "the log has "+line.String(), func() bool {
		found = line.FindStringSubmatch(p.Log())
		return found != nil
	}, p.Log)
	return found[1]
}

// redisTo is a Redis client of a proxy's ids.
func redisTo(t *testing.T, p *harness.Proxy, user, password string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: logged(t, p, idsAddress), Username: user, Password: password, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestIDsOverRedis has programs ask two proxies for ids while INSERTs go through them: of one
// series no id comes twice. Keys of the store that no source has are served too, those that are new
// after a reload; others are an error at once.
func TestIDsOverRedis(t *testing.T) {
	s := harness.MariaDB(t)
	store := harness.Database(t, s)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: {mysql: {dsn: %q}}}
sources:
  order_id: {segment: {store: main, key: orders, step: 50, max_step: 50}}
  flake:    {snowflake: {worker: 3}}
limits:    {id_wait: 1m}
rules:     [{table: "*.t", column: id, source: order_id}]
ids: {redis: {listen: "127.0.0.1:0", users: {default: {password: all}, reader: {password: some, sources: [tag]}}}}
`, harness.StoreDSN(s, store))
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	harness.MustExec(t, direct, "INSERT INTO t (id) VALUES (7000)")
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	// A program does not begin a series, for it would begin below the rows.
	early := redisTo(t, proxies[0], "", "all")
	for _, key := range []string{"order_id", "orders"} {
		assert.Fails(t, "INCR "+key+" before the first INSERT", early.Incr(t.Context(), key).Err(), `where key "orders" begins is not known yet`)
	}
	harness.MustExec(t, harness.Open(t, s.Config(name), proxies[0].Addr("a")), "INSERT INTO t (a) VALUES (1)")
	assert.Of(early.Incr(t.Context(), "order_id").Result()).Equal(t, "INCR behind it", 7002)
	seen[7002] = true
	for _, p := range proxies {
		ids, db := redisTo(t, p, "", "all"), harness.Open(t, s.Config(name), p.Addr("a"))
		for i := range 4 {
			wg.Go(func() {
				for n := range 100 {
					if i == 0 {
						assert.Of(db.Exec("INSERT INTO t (a) VALUES (1), (2)")).NoError(t, "INSERT")
						continue
					}
					want := int64(1 + n%9)
					last, err := ids.IncrBy(context.Background(), []string{"order_id", "orders"}[n%2], want).Result()
					if err != nil {
						t.Errorf("INCRBY: %v", err)
						return
					}
					mu.Lock()
					for id := last - want + 1; id <= last; id++ {
						assert.True(t, !seen[id], "id %d came twice", id)
						seen[id] = true
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	rows := rowIDs(t, direct, "SELECT id FROM t")
	for _, id := range rows {
		assert.True(t, !seen[id], "id %d of a row was given to a program, too", id)
	}
	assert.True(t, len(rows) == 402 && len(seen) >= 2000, "%d rows, %d ids of programs", len(rows), len(seen))

	ids, reader := redisTo(t, proxies[0], "", "all"), redisTo(t, proxies[0], "reader", "some")
	id, err := ids.Incr(t.Context(), "flake").Result()
	assert.True(t, err == nil && id >= 1<<40, "a snowflake: %d, %v", id, err)
	last, err := ids.IncrBy(t.Context(), "flake", 100).Result()
	assert.True(t, err == nil && last>>12&1023 == 3, "a hundred snowflakes: %d, %v", last, err)
	wrong := func(c *redis.Client, key, want string) {
		t.Helper()
		began := time.Now()
		assert.Fails(t, "INCR "+key, c.Incr(t.Context(), key).Err(), want)
		assert.LessOrEqual(t, "INCR "+key+": an error after", time.Since(began), time.Minute)
	}
	wrong(ids, "tag", "no key 'tag'")
	wrong(reader, "order_id", "NOPERM")
	wrong(redisTo(t, proxies[0], "reader", "all"), "tag", "WRONGPASS")
	harness.MustExec(t, harness.Open(t, s.Config(store), ""), "INSERT INTO idproxy_segment (biz_tag, max_id, step) VALUES ('tag', 700, 1)")
	assert.Must(t, proxies[0].Signal(syscall.SIGHUP))
	assert.Until(t, "a key that is new in the store is served", func() bool {
		id, err := reader.Incr(t.Context(), "tag").Result()
		assert.MustTrue(t, err != nil || id == 700, "a key that is new in the store: %d", id)
		return err == nil
	})
}

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
	harness.WriteCertificate(t, dir, 48*time.Hour)
	config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:  {main: {mysql: {dsn: %q}}}
sources: {order_id: {segment: {store: main}}, token: {uuidv7: {}}, object: {objectid: {}}}
ids:
  redis:
    listen: 127.0.0.1:0
    tls: {cert: %q, key: %q}
    create_in: main
    users: {app: {password: secret, sources: [order_id, token, object, "app:*"], max_incrby: 5000, rate: 10000, create: true, set: true}, other: {password: x, sources: ["app:*"]}}
`, harness.StoreDSN(s, kept), pem("server.pem"), pem("server.key"))
	out, err := harness.Command(t, "source", "set", "order_id", "1", "--config", harness.WriteConfig(t, config))
	assert.Must(t, err, out)
	first, second := harness.StartProxy(t, config), harness.StartProxy(t, config)

	roots := x509.NewCertPool()
	assert.MustTrue(t, roots.AppendCertsFromPEM(assert.Of(os.ReadFile(pem("server.pem"))).Must(t)), "no certificate")
	client := func(p *harness.Proxy, user, password string) *redis.Client {
		t.Helper()
		c := redis.NewClient(&redis.Options{
			Addr: logged(t, p, idsAddress), Username: user, Password: password, MaxRetries: -1, TLSConfig: &tls.Config{RootCAs: roots}, Protocol: 3,
		})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	one, two := client(first, "app", "secret"), client(second, "app", "secret")
	host, port, _ := net.SplitHostPort(one.Options().Addr)
	commands, answers := documented(t)
	for i, command := range commands {
		args := append([]string{"-h", host, "-p", port, "--tls", "--cacert", pem("server.pem"), "--user", "app", "--pass", "secret", "--no-auth-warning", "--no-raw"}, strings.Fields(command)...)
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
	assert.Until(t, "the other proxy serves the key", func() bool { return two.Do(t.Context(), "IDS.NEXT", "app:invoices").Err() == nil })
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
