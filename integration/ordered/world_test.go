package ordered

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/idsource/etcd"
	"idproxy/integration/assert"
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
	assert.Must(t, err)
	w := &world{members: members}
	for _, m := range members {
		t.Cleanup(func() { _ = m.Stop() })
		w.endpoints = append(w.endpoints, m.Addr)
	}
	w.store, err = etcd.New(etcd.Config{Endpoints: w.endpoints})
	assert.Must(t, err)
	t.Cleanup(func() { _ = w.store.Close() })
	assert.Must(t, w.store.Open(t.Context(), "orders", 1, 0))
	return w
}

// config of a proxy. Its listener's server is upstream.
func (w *world) config(t testing.TB, upstream, moved string) string {
	return w.configAt(upstream, harness.FreeAddr(t), harness.FreeAddr(t), moved)
}

// configAt is the configuration of a proxy that other proxies ask at one address, and clients at
// another one.
func (w *world) configAt(upstream, order, redis, moved string) string {
	return harness.OneListener(upstream) + fmt.Sprintf(`
stores:    {raft: {etcd: {endpoints: ["%s"]}}}
sources:
  order_id: {segment: {store: raft, key: orders, order: global, step: 1000, max_step: 100000, step_policy: rate}}
limits:    {id_wait: 10s}
rules:     [{table: "*.t", column: id, source: order_id}]
order:     {listen: %q, token: %q}
ids:       {redis: {listen: %q, moved: %s}}
`, strings.Join(w.endpoints, `", "`), order, token, redis, moved)
}

var idsAddress = regexp.MustCompile(`msg="ids over redis" listen=(\S+)`)

// addrOf is where a proxy gives ids over the Redis protocol.
func addrOf(t testing.TB, p *harness.Proxy) string {
	t.Helper()
	var found []string
	assert.Until(t, "an address of ids is logged", func() bool {
		found = idsAddress.FindStringSubmatch(p.Log())
		return found != nil
	})
	return found[1]
}

func clientOf(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// leads waits until one of the proxies leads and returns its place.
func leads(t testing.TB, proxies []*harness.Proxy) (place int) {
	t.Helper()
	assert.Until(t, "a proxy leads", func() bool {
		place = slices.IndexFunc(proxies, func(p *harness.Proxy) bool {
			log := p.Log()
			at := strings.LastIndex(log, taken)
			return at >= 0 && strings.LastIndex(log, `msg="another process leads"`) < at
		})
		return place >= 0
	})
	return place
}

// taken is what a proxy logs that takes the lead.
const taken = `msg="this process leads"`

// terms is how often one of the proxies took the lead. It changes hands by itself where the
// machine is so busy that a leader is not heard of.
func terms(proxies ...*harness.Proxy) (n int) {
	for _, p := range proxies {
		n += strings.Count(p.Log(), taken)
	}
	return n
}

// incr has a proxy give an id, as soon as its keys are known.
func incr(t testing.TB, c *redis.Client, key string) (id int64) {
	t.Helper()
	assert.Until(t, "INCR "+key+" gives an id", func() (ok bool) {
		var err error
		id, err = c.Incr(context.Background(), key).Result()
		return err == nil
	})
	return id
}

func TestMain(m *testing.M) { harness.Main(m) }
