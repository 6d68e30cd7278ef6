package ordered

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// clusterClient asks for the next id of orders, again and again.
type clusterClient func() (int64, error)

// clusterClients are clients of Redis Cluster that know one node of it.
var clusterClients = []struct {
	name     string
	start    func(t *testing.T, addr string) clusterClient
	survives bool // it goes on when the node that it asks is gone
}{
	{"go-redis", goRedis, true},
	{"redis-py", program("/usr/bin/python3", "testdata/cluster.py"), false}, // 4.3 ends with an AttributeError of its own then,
	{"ioredis", program("node", "testdata/cluster.cjs"), true},
	{"redis-cli", program("redis-cli", "-c", "-h"), false},
}

func goRedis(t *testing.T, addr string) clusterClient {
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{addr}, MaxRedirects: 50, MinRetryBackoff: 50 * time.Millisecond, MaxRetryBackoff: 100 * time.Millisecond,
		ClusterStateReloadInterval: 500 * time.Millisecond, // a minute otherwise, in which it asks nobody else
	})
	t.Cleanup(func() { _ = c.Close() })
	return func() (int64, error) { return c.Incr(t.Context(), "orders").Result() }
}

// program starts a client that answers each line INCR orders with an id, or with what went wrong.
func program(words ...string) func(*testing.T, string) clusterClient {
	return func(t *testing.T, addr string) clusterClient {
		host, port, _ := net.SplitHostPort(addr)
		args := append(words[1:len(words):len(words)], host, port)
		if words[0] == "redis-cli" {
			args = append(words[1:len(words):len(words)], host, "-p", port)
		}
		cmd := exec.Command(words[0], args...) // it ends with its input
		cmd.Env = append(cmd.Environ(), "NODE_PATH="+assert.Of(filepath.Abs("../../.tools/clients/node/node_modules")).Must(t))
		var said strings.Builder
		cmd.Stderr = &said
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		assert.Must(t, errors.Join(err1, err2, cmd.Start()))
		t.Cleanup(func() {
			in.Close()
			assert.NoError(t, cmd.Wait(), words[0], &said)
		})
		answers := bufio.NewScanner(out)
		return func() (int64, error) {
			if _, err := fmt.Fprintln(in, "INCR orders"); err != nil {
				return 0, err
			}
			for answers.Scan() {
				if line := strings.TrimSpace(answers.Text()); line != "" && !strings.HasPrefix(line, "-> Redirected") {
					return strconv.ParseInt(line, 10, 64)
				}
			}
			return 0, errors.New("it ended")
		}
	}
}

// term is that of the proxy that leads, or led last.
func (f *fleet) term(t *testing.T) int64 {
	t.Helper()
	return assert.Of(f.store.Register().Look(t.Context())).Must(t).Term
}

// changes says whether another term begins within ten seconds: on a busy machine the lead changes
// hands by itself.
func (f *fleet) changes(t *testing.T, term int64) bool {
	t.Helper()
	for range 500 {
		if f.term(t) != term {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// TestClusterClients: a client of Redis Cluster that knows a proxy that does not lead asks the one that
// does, and goes on when that is killed.
func TestClusterClients(t *testing.T) {
	build := assert.Of(harness.Build()).Must(t)
	f := newFleet(t, newWorld(t, 1), build, 2, func(config string, addrs []string) string {
		return strings.Replace(config, "moved: false", fmt.Sprintf(`moved: true, members: ["%s"]`, strings.Join(addrs, `", "`)), 1)
	})
	var last int64
	for _, client := range clusterClients {
		t.Run(client.name, func(t *testing.T) {
			var lead, other *node
			assert.Until(t, "the proxy that does not lead says who does", func() bool {
				if lead, other = f.leader(t), f.nodes[0]; other == lead {
					other = f.nodes[1]
				}
				err := clientOf(t, other.redis).Incr(t.Context(), "orders").Err()
				assert.True(t, err != nil || f.leader(t) != lead, "a proxy that does not lead gave an id")
				return err != nil && strings.HasPrefix(err.Error(), "MOVED ") && strings.HasSuffix(err.Error(), lead.redis)
			})
			next := client.start(t, other.redis)
			ascend := func(n int) {
				t.Helper()
				for n > 0 {
					term := f.term(t)
					id, err := next()
					if err != nil && f.changes(t, term) {
						continue
					}
					assert.MustTrue(t, err == nil && id > last, "id %d after %d, %v", id, last, err)
					last = id
					n--
				}
			}
			ascend(20)
			if !client.survives {
				return
			}
			assert.Must(t, lead.proxy.Kill())
			defer lead.start(t)
			began, failed := time.Now(), 0
			var id int64
			assert.Until(t, "an id comes", func() (ok bool) {
				var err error
				if id, err = next(); err != nil {
					failed++
				}
				return err == nil
			})
			assert.MustTrue(t, id > last, "id %d after %d", id, last)
			t.Logf("an id %v after a kill, %d errors before", time.Since(began).Round(time.Millisecond), failed)
			last = id
			ascend(20)
		})
	}
}
