package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/sources"
	"idproxy/idsource"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// leasing is a configuration whose source leases its worker numbers from a private Redis.
func leasing(t *testing.T) (path string, server *servers.Redis) {
	t.Helper()
	server = assert.Of(servers.StartRedis(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	return harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"]}}}
sources: {event_id: {snowflake: {workers: leases, layout: 41/3/12, lease: {heartbeat: 200ms, reclaim: 8s}}}}
`, askedListener(t), server.Addr)), server
}

func TestWorkerCommands(t *testing.T) {
	path, _ := leasing(t)
	run := func(status int, want string, args ...string) string {
		t.Helper()
		return commands(t, path)(status, want, append([]string{"worker"}, args...)...)
	}
	run(statusFinding, "the store has no pool event_id", "list")
	run(statusUsage, "from 1 to 8 numbers", "add", "9")
	run(statusUsage, "from 1 to 8 numbers", "add", "0")
	run(statusUsage, "is no worker number", "add", "x")
	run(statusUsage, "leases no worker numbers", "list", "--source", "other")
	run(statusFine, "pool event_id: 3 added\n", "add", "3", "--new-pool")
	run(statusFine, "0 added", "add", "3")
	run(statusFine, "1 added", "add", "4")
	run(statusFine, "2 dropped", "drop", "0", "2")
	run(statusFinding, "not free, and kept: [0 7]", "drop", "0", "7")
	run(statusFine, "dropped", "list")
	run(statusFine, "2 added", "add", "4")
	var l admin.Pool
	assert.Must(t, json.Unmarshal([]byte(run(statusFine, "", "list", "--json")), &l))
	assert.True(t, l.Pool == "event_id" && len(l.Workers) == 4 && l.Workers[2].State == "free" && l.Rests == 0, "list --json: %+v", l)
}

// TestWorkerQuarantine: without the word of someone who knows, a new pool is
// taken for one that was lost.
func TestWorkerQuarantine(t *testing.T) {
	path, _ := leasing(t)
	got := runWith(t, "", "worker", "--config", path, "add", "2")
	assert.True(t, got.status == statusFine && strings.Contains(got.out, "its first number is given out in "), "%+v", got)
}

func TestCheckPools(t *testing.T) {
	path, _ := leasing(t)
	expect := func(status int, want ...string) {
		t.Helper()
		got := runWith(t, "", "check", "--online", "--config", path)
		for _, w := range want {
			assert.True(t, got.status == status && strings.Contains(got.out, w), "check: %+v, want status %d and %q", got, status, w)
		}
	}
	expect(statusFinding, "survives an outage of store leases of 900ms", "make it with idproxy worker add N")
	runWith(t, "", "worker", "--config", path, "add", "2")
	expect(statusFine, "2 worker numbers are free, 0 are held")
	text := assert.Of(os.ReadFile(path)).Must(t)
	assert.Must(t, os.WriteFile(path, []byte(strings.Replace(string(text), "41/3/12", "41/4/12", 1)), 0o600))
	expect(statusFinding, "the pool in store leases is for ids of 41/3/12 since")
}

// TestLeasedSources runs two programs' sources on one pool, ends one and has a
// third take over.
func TestLeasedSources(t *testing.T) {
	path, _ := leasing(t)
	got := runWith(t, "", "worker", "--config", path, "add", "4", "--new-pool")
	assert.MustTrue(t, got.status == statusFine, "%+v", got)
	layout, err := snowflake.ParseLayout("41/3/12")
	assert.Must(t, err)
	seen := map[uint64]bool{}
	use := func(s *sources.Sources) (worker uint64) {
		ids := make([]uint64, 5000)
		for try := 0; ; try++ {
			err := s.Named()["event_id"].(idsource.Series).Fill(t.Context(), ids, 1)
			if err == nil {
				break
			}
			if try == 5 { // each waits for two seconds
				t.Fatalf("%v\n%s", err, runWith(t, "", "worker", "--config", path, "list").out)
			}
		}
		for _, id := range ids {
			assert.MustTrue(t, !seen[id], "%d is issued twice", id)
			seen[id] = true
			worker = layout.Decode(id).Worker
		}
		return worker
	}
	one, two := running(t, path), running(t, path)
	a, b := use(one), use(two)
	assert.True(t, a != b, "both have worker number %d", a)
	list := runWith(t, "", "worker", "--config", path, "list")
	host := assert.Of(os.Hostname()).Must(t)
	want := fmt.Sprintf("%s:%d", host, os.Getpid())
	assert.True(t, strings.Count(list.out, want) >= 2, "list does not show two of %s:\n%s", want, list.out)
	assert.NoError(t, one.Close())
	three := running(t, path)
	c := use(three)
	assert.True(t, c != b, "a third program has worker number %d, which is in use", c)
	for _, s := range []*sources.Sources{two, three} {
		assert.NoError(t, s.Close())
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "idproxy-leases", "event_id-*.lease"))
	assert.True(t, err == nil && len(files) != 0, "files of the worker numbers: %q, %v", files, err)
}

// TestWorkersRights gives the account in Redis the rights that docs/id-sources.md names, and then
// one less.
func TestWorkersRights(t *testing.T) {
	_, server := leasing(t)
	path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"], username: idp, password: secret}}}
sources: {event_id: {snowflake: {workers: leases, layout: 41/3/12, lease: {heartbeat: 200ms, reclaim: 8s}}}}
`, askedListener(t), server.Addr))
	rights := []string{"+client|setname", "+evalsha", "+eval", "+info", "+time", "+hget", "+hset", "+hgetall", "+del", "+@sortedset"}
	may := func(rights ...string) {
		t.Helper()
		answer, err := server.Do(append([]string{"ACL", "SETUSER", "idp", "reset", "on", ">secret", "~idproxy:*"}, rights...)...)
		assert.Must(t, err, answer)
	}
	run := commands(t, path)
	may(rights...)
	run(statusFine, "4 added", "worker", "add", "4", "--new-pool")
	run(statusFine, "1 dropped", "worker", "drop", "3")
	s := running(t, path)
	numberOf(t, s, "event_id", "41/3/12")
	assert.NoError(t, s.Close())
	run(statusFine, "free", "worker", "list")
	may(rights[1:]...)
	run(statusFinding, "client|setname", "worker", "list")
}

// TestWorkersTLS speaks to a Redis that wants TLS and a certificate.
func TestWorkersTLS(t *testing.T) {
	servers := [2]*servers.Redis{}
	for i := range servers {
		servers[i] = redisTLS(t)
	}
	for _, tt := range []struct {
		name, tls string
		fails     string // part of the error
	}{
		{name: "all right", tls: fmt.Sprintf("{ca: %[1]s/ca.pem, cert: %[1]s/client.pem, key: %[1]s/client.key}", servers[0].Dir)},
		{name: "name of the server", tls: fmt.Sprintf("{ca: %[1]s/ca.pem, cert: %[1]s/client.pem, key: %[1]s/client.key, server_name: localhost}", servers[0].Dir)},
		{
			name: "another server", tls: fmt.Sprintf("{ca: %[1]s/ca.pem, cert: %[1]s/client.pem, key: %[1]s/client.key, server_name: db1}", servers[0].Dir),
			fails: "certificate is valid for localhost, not db1",
		},
		{
			name: "signed by someone else", tls: fmt.Sprintf("{ca: %s/ca.pem, cert: %[2]s/client.pem, key: %[2]s/client.key}", servers[1].Dir, servers[0].Dir),
			fails: "certificate signed by unknown authority",
		},
		{name: "the system's authorities", tls: "{}", fails: "certificate signed by unknown authority"},
		{name: "no certificate", tls: fmt.Sprintf("{ca: %s/ca.pem}", servers[0].Dir), fails: "certificate required"},
		{
			name: "certificate of someone else's", tls: fmt.Sprintf("{ca: %[1]s/ca.pem, cert: %[2]s/client.pem, key: %[2]s/client.key}", servers[0].Dir, servers[1].Dir),
			fails: "remote error: tls: ",
		},
		{name: "no authority in the file", tls: fmt.Sprintf("{ca: %s/client.key}", servers[0].Dir), fails: "redis.tls.ca"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"], tls: %s}}}
sources: {event_id: {snowflake: {workers: leases, layout: 41/3/12}}}
`, askedListener(t), servers[0].Addr, tt.tls))
			got := runWith(t, "", "worker", "--config", path, "add", "4", "--new-pool")
			if tt.fails == "" && (got.status != statusFine || !strings.Contains(got.out, "pool event_id")) ||
				tt.fails != "" && (got.status != statusFinding || !strings.Contains(got.err, tt.fails)) {
				t.Errorf("%+v; want error %q", got, tt.fails)
			}
		})
	}
	plain := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"]}}}
sources: {event_id: {snowflake: {workers: leases}}}
`, askedListener(t), servers[0].Addr))
	got := runWith(t, "", "worker", "--config", plain, "list")
	assert.True(t, got.status == statusFinding, "without TLS: %+v", got)
}

func redisTLS(t *testing.T) *servers.Redis {
	t.Helper()
	r := assert.Of(servers.StartRedisTLS(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, r.Stop()) })
	return r
}

// TestNumberOfTwoSources: a process uses its fixed number in all of its sources.
func TestNumberOfTwoSources(t *testing.T) {
	t.Setenv("WORKER", "5")
	path := harness.WriteConfig(t, `listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
sources: {order_id: {snowflake: {worker: "${WORKER}"}}, event_id: {snowflake: {worker: "${WORKER}"}}}
`)
	for range 2 { // the second time after a clean end
		s := running(t, path)
		for _, source := range []string{"order_id", "event_id"} {
			assert.Equal(t, source+" has number", numberOf(t, s, source, "41/10/12"), 5)
		}
		assert.NoError(t, s.Close())
	}
}
