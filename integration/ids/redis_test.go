package ids

import (
	"context"
	"errors"
	"fmt"
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

// redisTo is a Redis client of a proxy's ids.
func redisTo(t *testing.T, p *harness.Proxy, user, password string) *redis.Client {
	t.Helper()
	var m []string
	within(t, "the address of ids in the log", func() error {
		if m = idsAddress.FindStringSubmatch(p.Log()); m == nil {
			return errors.New(p.Log())
		}
		return nil
	})
	c := redis.NewClient(&redis.Options{Addr: m[1], Username: user, Password: password, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestIDsOverRedis has programs ask two proxies for ids while INSERTs go through them: of one
// series no id comes twice. Keys of the store that no source has are served too, those that are new
// after a reload; others are an error at once.
func TestIDsOverRedis(t *testing.T) {
	s := harness.MariaDB(t)
	name, store := harness.Database(t, s), harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:    {main: {mysql: {dsn: %q}}}
sources:
  order_id: {segment: {store: main, key: orders, step: 50, max_step: 50}}
  flake:    {snowflake: {worker: 3}}
limits:    {id_wait: 1m}
rules:     [{table: "*.t", column: id, source: order_id}]
ids: {redis: {listen: "127.0.0.1:0", users: {default: {password: all}, reader: {password: some, sources: [tag]}}}}
`, s.Addr, harness.StoreDSN(s, store))
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	harness.MustExec(t, direct, "INSERT INTO t (id) VALUES (7000)")
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	// A program does not begin a series, for it would begin below the rows.
	early := redisTo(t, proxies[0], "", "all")
	for _, key := range []string{"order_id", "orders"} {
		assert.Fails(t, "INCR "+key+" before the first INSERT", early.Incr(t.Context(), key).Err(), `no key "orders" yet`)
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
	rows := assert.Of(direct.Query("SELECT id FROM t")).Must(t)
	defer rows.Close() //nolint:errcheck // Err below says it
	n := 0
	for ; rows.Next(); n++ {
		var id int64
		assert.Must(t, rows.Scan(&id))
		assert.True(t, !seen[id], "id %d of a row was given to a program, too", id)
	}
	err := rows.Err()
	assert.True(t, err == nil && n == 402 && len(seen) >= 2000, "%d rows, %d ids of programs, %v", n, len(seen), err)

	ids, reader := redisTo(t, proxies[0], "", "all"), redisTo(t, proxies[0], "reader", "some")
	id, err := ids.Incr(t.Context(), "flake").Result()
	assert.True(t, err == nil && id >= 1<<40, "a snowflake: %d, %v", id, err)
	last, err := ids.IncrBy(t.Context(), "flake", 100).Result()
	assert.True(t, err == nil && last>>12&1023 == 3, "a hundred snowflakes: %d, %v", last, err)
	wrong := func(c *redis.Client, key, want string) {
		t.Helper()
		began := time.Now()
		err := c.Incr(t.Context(), key).Err()
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "INCR %s: %v, want an error with %q", key, err, want)
		assert.LessOrEqual(t, "INCR "+key+": an error after", time.Since(began), time.Minute)
	}
	wrong(ids, "tag", "no key 'tag'")
	wrong(reader, "order_id", "NOPERM")
	wrong(redisTo(t, proxies[0], "reader", "all"), "tag", "WRONGPASS")
	harness.MustExec(t, harness.Open(t, s.Config(store), ""), "INSERT INTO idproxy_segment (biz_tag, max_id, step) VALUES ('tag', 700, 1)")
	assert.Must(t, proxies[0].Signal(syscall.SIGHUP))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		id, err := reader.Incr(t.Context(), "tag").Result()
		if err == nil && id == 700 {
			break
		}
		assert.MustTrue(t, err != nil && !time.Now().After(deadline), "a key that is new in the store: %d, %v", id, err)
	}
}
