package order

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestInserts: INSERTs through two proxies get ids that ascend from statement to statement, above the
// rows that were there.
func TestInserts(t *testing.T) {
	s := harness.MariaDB(t)
	name := harness.Database(t, s)
	direct := harness.Open(t, s.Config(name), "")
	harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	harness.MustExec(t, direct, "INSERT INTO t (id) VALUES (7000)")
	w := newWorld(t, 1)
	config := func() string { return strings.Replace(w.config(t, s.Addr, "false"), "key: orders", "key: fresh", 1) }
	proxies := []*harness.Proxy{harness.StartProxy(t, config()), harness.StartProxy(t, config())}
	lead := leads(t, proxies)
	follower := proxies[1-lead]
	var last int64 = 7000
	for round := range 10 {
		for _, p := range []*harness.Proxy{follower, proxies[lead]} {
			db := harness.Open(t, s.Config(name), p.Addr("a"))
			for rows := 1; rows < 4; rows++ {
				r, err := db.Exec("INSERT INTO t (a) VALUES (1)" + strings.Repeat(", (2)", rows-1))
				assert.Must(t, err, "round", round)
				first, err := r.LastInsertId()
				most := int64(7200 + 1000*(terms(proxies...)-1))
				assert.True(t, err == nil && first > last && first <= most, "round %d: %d rows from id %d after %d, %v", round, rows, first, last, err)
				last = first + int64(rows) - 1
			}
		}
	}
	assert.Of(harness.Open(t, s.Config(name), follower.Addr("a")).Exec("INSERT INTO t (id, a) VALUES (?, 1)", last+100)).NoError(t)
	var n int
	err := direct.QueryRow("SELECT COUNT(*) FROM t WHERE id > 7000").Scan(&n)
	assert.True(t, err == nil && n == 10*2*6+1, "%d rows, %v", n, err)
	id := incr(t, clientOf(t, addrOf(t, follower)), "fresh")
	assert.True(t, id > last, "a program gets id %d after %d", id, last)
}

// BenchmarkINCR compares INCR of a Redis, of the proxy that leads, and of one that asks it: each client
// sends a hundred at a time.
func BenchmarkINCR(b *testing.B) {
	r, err := servers.StartRedis(b.Context())
	assert.Must(b, err)
	defer r.Stop() //nolint:errcheck // nothing is left to do
	program, err := harness.BuildPlain()
	assert.Must(b, err)
	f := newFleet(b, newWorld(b, 1), program, 2, func(config string, _ []string) string { return config })
	lead := f.leader(b)
	other := f.nodes[0]
	if other == lead {
		other = f.nodes[1]
	}
	for _, clients := range []int{1, 8} {
		for _, to := range []struct{ name, addr string }{{"redis", r.Addr}, {"leader", lead.redis}, {"passed on", other.redis}} {
			b.Run(fmt.Sprintf("%s/clients=%d", to.name, clients), func(b *testing.B) {
				incr(b, clientOf(b, to.addr), "orders")
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() { pipeline(b, to.addr, &left) })
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ids/s")
			})
		}
	}
}

// pipeline sends INCR a hundred at a time until none are left.
func pipeline(b *testing.B, addr string, left *atomic.Int64) {
	const at = 100
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close() //nolint:errcheck // nothing is pending
	question := bytes.Repeat([]byte("*2\r\n$4\r\nINCR\r\n$6\r\norders\r\n"), at)
	answers := bufio.NewReader(c)
	for left.Add(-at) > -at {
		if _, err := c.Write(question); err != nil {
			b.Error(err)
			return
		}
		for range at {
			line, err := answers.ReadSlice('\n')
			if err != nil || line[0] != ':' {
				b.Errorf("%q, %v", line, err)
				return
			}
		}
	}
}
