package ordered

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// shownLeader is the leader that idproxy source show names.
func shownLeader(t *testing.T, config string) string {
	t.Helper()
	out, err := harness.Command(t, "source", "show", "order_id", "--config", config)
	assert.Must(t, err, out)
	_, leader, _ := strings.Cut(out, "\nleader  ")
	leader, _, _ = strings.Cut(leader, "\n")
	return leader
}

// TestTwoProxies: ids ascend from call to call, whichever proxy is asked, over a clean stop and a kill
// of the one that leads.
func TestTwoProxies(t *testing.T) {
	w := newWorld(t, 1)
	var proxies []*harness.Proxy
	for range 3 {
		proxies = append(proxies, harness.Start(t, harness.Spec{Config: w.config(t, "127.0.0.1:1", "false"), MayFail: true}))
	}
	all := slices.Clone(proxies)
	var last int64
	ascending := func(rounds int) {
		t.Helper()
		for range rounds {
			for _, p := range proxies {
				id := incr(t, clientOf(t, addrOf(t, p)), "orders")
				assert.True(t, id > last, "id %d was given after %d", id, last)
				last = id
			}
		}
	}
	ascending(20)
	lead := leads(t, proxies)
	configured, err := os.ReadFile(proxies[lead].ConfigPath)
	shown := shownLeader(t, proxies[(lead+1)%3].ConfigPath)
	assert.True(t, err == nil && strings.Contains(string(configured), fmt.Sprintf("order:     {listen: %q", shown)), "source show names the leader %q, which has %s, %v", shown, configured, err)
	assert.Must(t, proxies[lead].Kill())
	killed := time.Now()
	proxies = slices.Delete(proxies, lead, lead+1)
	ascending(1)
	t.Logf("ids again %v after a kill", time.Since(killed).Round(time.Millisecond))
	ascending(20)
	lead = leads(t, proxies)
	stopped := time.Now()
	assert.Must(t, proxies[lead].Stop(time.Minute))
	took := time.Since(stopped)
	proxies = slices.Delete(proxies, lead, lead+1)
	ascending(1)
	t.Logf("ids again %v after a clean stop, which took %v", time.Since(stopped).Round(time.Millisecond), took.Round(time.Millisecond))
	ascending(20)
	more := int64(terms(all...) - 3) // terms than there were leaders
	// A kill loses a range, a clean stop none.
	assert.True(t, last <= (1+more)*1000+3*63, "%d ids for %d calls, in %d terms", last, 3*21+2*21, 3+more)
	own := int64(terms(proxies[0]))
	assert.True(t, own >= 1 && own <= 1+more, "the last proxy leads %d times:\n%s", own, proxies[0].Log())
}

// TestInserts: INSERTs through two proxies get ids that ascend from statement to statement, above the
// rows that were there.
func TestInserts(t *testing.T) {
	s := harness.MariaDB(t)
	name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (id) VALUES (7000)")
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
	assert.Equal(t, "rows", harness.Count(t, direct, "SELECT COUNT(*) FROM t WHERE id > 7000"), 10*2*6+1)
	id := incr(t, clientOf(t, addrOf(t, follower)), "fresh")
	assert.True(t, id > last, "a program gets id %d after %d", id, last)
}

// BenchmarkINCR compares INCR of a Redis, of the proxy that leads, and of one that asks it: each client
// sends a hundred at a time.
func BenchmarkINCR(b *testing.B) {
	r := assert.Of(servers.StartRedis(b.Context())).Must(b)
	defer r.Stop() //nolint:errcheck // nothing is left to do
	program := assert.Of(harness.BuildPlain()).Must(b)
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
