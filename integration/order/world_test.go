package order

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/etcd"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

const token = "a token of the proxies"

// world is an etcd and proxies that share a series in one order.
type world struct {
	members   []*servers.Etcd
	endpoints []string
	store     *etcd.Store
}

// newWorld starts an etcd of so many members. The series "orders" begins at 1.
func newWorld(t testing.TB, members int) *world {
	t.Helper()
	if members == 1 {
		one, err := servers.StartEtcd(t.Context())
		return worldOf(t, []*servers.Etcd{one}, err)
	}
	all, err := servers.StartEtcdCluster(t.Context(), members)
	return worldOf(t, all, err)
}

// worldOf is newWorld for an etcd that was started, or could not be.
func worldOf(t testing.TB, members []*servers.Etcd, err error) *world {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{members: members}
	for _, m := range members {
		t.Cleanup(func() { _ = m.Stop() })
		w.endpoints = append(w.endpoints, m.Addr)
	}
	if w.store, err = etcd.New(etcd.Config{Endpoints: w.endpoints}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	if err := w.store.Advance(t.Context(), "orders", 1); err != nil {
		t.Fatal(err)
	}
	return w
}

// freeAddr is an address that nobody listens on, so that a proxy has it again after a restart.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it is used again
	return l.Addr().String()
}

// config of a proxy. Its listener's server is upstream.
func (w *world) config(t testing.TB, upstream, moved string) string {
	return w.configAt(upstream, freeAddr(t), freeAddr(t), moved)
}

// configAt is the configuration of a proxy that other proxies ask at one address, and clients at
// another one.
func (w *world) configAt(upstream, order, redis, moved string) string {
	return fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:    {raft: {etcd: {endpoints: ["%s"]}}}
sources:
  order_id: {segment: {store: raft, key: orders, order: global, step: 1000, max_step: 100000, step_policy: rate}}
limits:    {id_wait: 10s}
rules:     [{table: "*.t", column: id, source: order_id}]
order:     {listen: %q, token: %q}
ids:       {redis: {listen: %q, moved: %s}}
`, upstream, strings.Join(w.endpoints, `", "`), order, token, redis, moved)
}

var idsAddress = regexp.MustCompile(`msg="ids over redis" listen=(\S+)`)

// addrOf is where a proxy gives ids over the Redis protocol.
func addrOf(t testing.TB, p *harness.Proxy) string {
	t.Helper()
	for range 600 {
		if m := idsAddress.FindStringSubmatch(p.Log()); m != nil {
			return m[1]
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no address of ids in the log:\n%s", p.Log())
	return ""
}

func clientOf(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: 20 * time.Second})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// leads waits until one of the proxies leads and returns its place.
func leads(t testing.TB, proxies []*harness.Proxy) int {
	t.Helper()
	for range 1500 {
		for i, p := range proxies {
			log := p.Log()
			if at := strings.LastIndex(log, `msg="this process leads"`); at >= 0 && strings.LastIndex(log, `msg="another process leads"`) < at {
				return i
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no proxy leads")
	return -1
}

// incr has a proxy give an id, as soon as its keys are known.
func incr(t testing.TB, c *redis.Client, key string) int64 {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		id, err := c.Incr(context.Background(), key).Result()
		if err == nil {
			return id
		}
		if time.Now().After(deadline) {
			t.Fatalf("INCR %s: %v", key, err)
		}
	}
}
