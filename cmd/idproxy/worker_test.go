package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/cmd/idproxy/admin"
	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
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

// TestWorkerQuarantine: unless somebody says that it is new, a pool is taken for one that was lost.
func TestWorkerQuarantine(t *testing.T) {
	path, _ := leasing(t)
	says(t, path, "worker add 2", statusFine, "its first number is given out in ")
}

func TestCheckPools(t *testing.T) {
	path, _ := leasing(t)
	says(t, path, "check --online", statusFinding, "survives an outage of store leases of 900ms", "make it with idproxy worker add N")
	runWith(t, "", "worker", "--config", path, "add", "2")
	says(t, path, "check --online", statusFine, "2 worker numbers are free, 0 are held")
	text := assert.Of(os.ReadFile(path)).Must(t)
	assert.Must(t, os.WriteFile(path, []byte(strings.Replace(string(text), "41/3/12", "41/4/12", 1)), 0o600))
	says(t, path, "check --online", statusFinding, "the pool in store leases is for ids of 41/3/12 since")
}

// TestRenamedPool: a source that was renamed gets no pool of its own while that of the old name is in use, but goes on with that one where it is named.
func TestRenamedPool(t *testing.T) {
	path, _ := leasing(t)
	commands(t, path)(statusFine, "", "worker", "add", "4", "--new-pool")
	before := running(t, path)
	number := numberOf(t, before, "event_id", "41/3/12")
	text := strings.Replace(string(assert.Of(os.ReadFile(path)).Must(t)), "event_id", "renamed_id", 1)
	renamed := harness.WriteConfig(t, text)
	run := commands(t, renamed)
	const inUse = "pool event_id is in use"
	run(statusFinding, inUse, "worker", "add", "4", "--new-pool")
	run(statusFinding, inUse, "worker", "add", "4")
	run(statusFinding, inUse, "check", "--online")
	makes := running(t, harness.WriteConfig(t, strings.Replace(text, "workers: leases", "workers: leases, pool: 4", 1)))
	assert.Until(t, "serve says why it makes no pool", func() bool {
		why := makes.Named()["renamed_id"].Standing().Problem
		return why != nil && strings.Contains(why.Error(), inUse)
	})
	named := harness.WriteConfig(t, strings.Replace(text, "workers: leases", "workers: leases, pool_name: event_id", 1))
	commands(t, named)(statusFine, "pool event_id", "worker", "list")
	after := running(t, named)
	assert.True(t, numberOf(t, after, "renamed_id", "41/3/12") != number, "both have number %d", number)
	run(statusFine, "4 added", "worker", "add", "4", "--new-pool", "--force")
	for _, s := range []*sources.Sources{before, makes, after} {
		assert.NoError(t, s.Close())
	}
}

// TestLeasedSources runs two programs' sources on one pool, ends one and has a third take over.
func TestLeasedSources(t *testing.T) {
	path, _ := leasing(t)
	commands(t, path)(statusFine, "", "worker", "add", "4", "--new-pool")
	layout := assert.Of(snowflake.ParseLayout("41/3/12")).Must(t)
	seen := map[uint64]bool{}
	use := func(s *sources.Sources) (worker uint64) {
		ids := make([]uint64, 5000)
		fill(t, s, "event_id", ids)
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
	rights := []string{"+client|setname", "+evalsha", "+eval", "+info", "+time", "+hget", "+hset", "+hgetall", "+del", "+@sortedset", "+scan"}
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
	own, other := redisTLS(t), redisTLS(t)
	files := fmt.Sprintf("ca: %[1]s/ca.pem, cert: %[1]s/client.pem, key: %[1]s/client.key", own.Dir)
	for _, tt := range []struct {
		name, tls string
		fails     string // part of the error
	}{
		{name: "all right", tls: "{" + files + "}"},
		{name: "name of the server", tls: "{" + files + ", server_name: localhost}"},
		{"another server", "{" + files + ", server_name: db1}", "certificate is valid for localhost, not db1"},
		{"signed by someone else", "{" + strings.Replace(files, own.Dir, other.Dir, 1) + "}", "certificate signed by unknown authority"},
		{"the system's authorities", "{}", "certificate signed by unknown authority"},
		{"no certificate", "{ca: " + own.Dir + "/ca.pem}", "certificate required"},
		{"certificate of someone else's", "{" + fmt.Sprintf("ca: %[1]s/ca.pem, cert: %[2]s/client.pem, key: %[2]s/client.key", own.Dir, other.Dir) + "}", "remote error: tls: "},
		{"no authority in the file", "{ca: " + own.Dir + "/client.key}", "redis.tls.ca"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"], tls: %s}}}
sources: {event_id: {snowflake: {workers: leases, layout: 41/3/12}}}
`, askedListener(t), own.Addr, tt.tls))
			if tt.fails == "" {
				says(t, path, "worker add 4 --new-pool", statusFine, "pool event_id")
				return
			}
			got := runWith(t, "", "worker", "--config", path, "add", "4", "--new-pool")
			assert.True(t, got.status == statusFinding && strings.Contains(got.err, tt.fails), "%+v; want error %q", got, tt.fails)
		})
	}
	plain := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {leases: {redis: {addrs: ["%s"]}}}
sources: {event_id: {snowflake: {workers: leases}}}
`, askedListener(t), own.Addr))
	says(t, plain, "worker list", statusFinding)
}

func redisTLS(t *testing.T) *servers.Redis {
	t.Helper()
	r := assert.Of(servers.StartRedisTLS(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, r.Stop()) })
	return r
}

// TestWorkerStores has two programs' sources take numbers of pools in each store, and commands say so.
func TestWorkerStores(t *testing.T) {
	raft := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	cache := assert.Of(servers.StartRedis(t.Context())).Must(t)
	keeper := assert.Of(servers.StartZooKeeper(t.Context())).Must(t)
	db := assert.Of(servers.Start(t.Context(), servers.MariaDB, servers.Options{})).Must(t)
	t.Cleanup(func() { assert.NoError(t, errors.Join(raft.Stop(), cache.Stop(), keeper.Stop(), db.Stop())) })
	conn := assert.Of(sql.Open("mysql", db.DSN(""))).Must(t)
	defer conn.Close() //nolint:errcheck // nothing is pending
	assert.Of(conn.ExecContext(t.Context(), "CREATE DATABASE idproxy")).Must(t)
	for _, tt := range []struct{ name, store string }{
		{"etcd", fmt.Sprintf(`{etcd: {endpoints: ["%s"]}}`, raft.Addr)},
		{"redis", fmt.Sprintf(`{redis: {addrs: ["%s"]}}`, cache.Addr)},
		{"zookeeper", fmt.Sprintf(`{zookeeper: {servers: ["%s"]}}`, keeper.Addr)},
		{"mysql", fmt.Sprintf(`{mysql: {dsn: "%s"}}`, db.DSN("idproxy"))},
	} {
		t.Run(tt.name, func(t *testing.T) { tryStore(t, tt.store) })
		t.Run(tt.name+" disposable", func(t *testing.T) { tryDisposable(t, tt.store) })
	}
	t.Run("clocks", func(t *testing.T) { tryClocks(t, raft.Addr) })
}

// tryClocks has another host hold a number, whose clock is ahead of this one's.
func tryClocks(t *testing.T, addr string) {
	path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {main: {etcd: {endpoints: ["%s"]}}}
sources: {far_id: {snowflake: {workers: main}}}
`, askedListener(t), addr))
	commands(t, path)(statusFine, "", "worker", "add", "2", "--new-pool")
	c := assert.Of(client.New(client.Config{Endpoints: []string{addr}})).Must(t)
	defer c.Close() //nolint:errcheck // nothing is pending
	for ahead, warns := range map[time.Duration]bool{time.Second: false, time.Minute: true} {
		r := lease.Record{State: lease.Held, Token: "x", Label: "far:1", Beat: time.Now().Add(ahead).UnixMilli()}
		assert.Of(c.Put(t.Context(), "/idproxy/workers/far_id/number/0000000001", r.String())).Must(t)
		got := runWith(t, "", "check", "--online", "--config", path)
		warned := strings.Contains(got.out, "behind the heartbeat of far:1")
		assert.True(t, warned == warns && warned == strings.Contains(got.out, "this host's clock is 5"), "%v ahead: %+v", ahead, got)
	}
}

// running is a program's sources.
func running(t *testing.T, path string) *sources.Sources {
	t.Helper()
	cfg := assert.Of(config.Load(path)).Must(t)
	return assert.Of(sources.Open(cfg, sources.Options{Logger: slog.New(slog.DiscardHandler), Listen: net.Listen})).Must(t)
}

// numberOf has a source issue an id and returns the worker number in it.
func numberOf(t *testing.T, s *sources.Sources, source, layout string) uint64 {
	t.Helper()
	l, id := assert.Of(snowflake.ParseLayout(layout)).Must(t), make([]uint64, 1)
	fill(t, s, source, id)
	return l.Decode(id[0]).Worker
}

// fill has a source issue ids, as soon as it has a number.
func fill(t *testing.T, s *sources.Sources, source string, ids []uint64) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // a number rests
		if err = s.Named()[source].(idsource.Series).Fill(t.Context(), ids, 1); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// commands returns what runs idproxy with a configuration. It ends the test unless the status, and
// a part of what is printed, are as wanted.
func commands(t *testing.T, path string) func(status int, want string, args ...string) (out string) {
	return func(status int, want string, args ...string) string {
		t.Helper()
		got := runWith(t, "", append(args, "--config", path)...)
		assert.MustTrue(t, got.status == status && strings.Contains(got.out+got.err, want), "%q: %+v, want status %d and %q", args, got, status, want)
		return got.out
	}
}

func tryStore(t *testing.T, store string) {
	path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {main: %s}
sources: {event_id: {snowflake: {workers: main, layout: 41/3/12, lease: {heartbeat: 200ms, reclaim: 8s}}}}
`, askedListener(t), store))
	run := commands(t, path)
	run(statusFinding, "the store has no pool event_id", "worker", "list")
	run(statusFine, "pool event_id: 4 added\n", "worker", "add", "4", "--new-pool")
	run(statusFine, "1 dropped", "worker", "drop", "3")
	one, two := running(t, path), running(t, path)
	a, b := numberOf(t, one, "event_id", "41/3/12"), numberOf(t, two, "event_id", "41/3/12")
	assert.True(t, a != b, "both have worker number %d", a)
	run(statusFine, "held", "worker", "list")
	run(statusFine, "SECONDS    since its holder was last heard of", "worker", "list")
	run(statusFine, "are held", "check", "--online")
	assert.NoError(t, errors.Join(one.Close(), two.Close()))
	run(statusFine, "3 worker numbers are free, 0 are held", "check", "--online")
}

func tryDisposable(t *testing.T, store string) {
	path := harness.WriteConfig(t, fmt.Sprintf(`%s
stores: {main: %s}
sources: {start_id: {snowflake: {workers: main, disposable: true, layout: 31s/20/12}}}
`, askedListener(t), store))
	run := commands(t, path)
	run(statusFinding, "make it with idproxy worker add N", "check", "--online")
	run(statusFine, "0 of 1048576 numbers are taken for used", "worker", "add", "0", "--new-pool")
	for want := range uint64(2) {
		s := running(t, path)
		assert.Equal(t, fmt.Sprintf("number of start %d", want), numberOf(t, s, "start_id", "31s/20/12"), want)
		assert.NoError(t, s.Close())
	}
	run(statusFine, "2 of 1048576 worker numbers were used", "check", "--online")
	run(statusFine, "800000 of 1048576 numbers are taken for used", "worker", "add", "800000")
	run(statusFine, "248576 of 1048576 worker numbers are left", "check", "--online")
	run(statusFine, "800000 of 1048576 numbers were used", "worker", "list")
	run(statusFinding, "none is given again", "worker", "drop", "0")
}

// TestEtcdTLS has an etcd with TLS and users.
func TestEtcdTLS(t *testing.T) {
	s := assert.Of(servers.StartEtcdTLS(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	c := assert.Of(client.New(client.Config{Endpoints: []string{s.Addr}, TLS: s.TLS})).Must(t)
	defer c.Close() //nolint:errcheck // nothing is pending
	_, err1 := c.UserAdd(t.Context(), "root", "secret")
	_, err2 := c.UserGrantRole(t.Context(), "root", "root")
	_, err3 := c.AuthEnable(t.Context())
	assert.Must(t, errors.Join(err1, err2, err3))
	files := fmt.Sprintf("ca: %[1]s/ca.pem, cert: %[1]s/client.pem, key: %[1]s/client.key", s.Dir)
	var all sync.WaitGroup // a command may take seconds to fail
	for _, tt := range []struct {
		name, store string
		fails       string // part of the error
	}{
		{name: "all right", store: "username: root, password: secret, tls: {" + files + "}"},
		{name: "name of the server", store: "username: root, password: secret, tls: {" + files + ", server_name: localhost}"},
		{"another server", "username: root, password: secret, tls: {" + files + ", server_name: db1}", "certificate is valid for localhost, not db1"},
		{"another password", "username: root, password: wrong, tls: {" + files + "}", "invalid user ID or password"},
		{"the system's authorities", "username: root, password: secret, tls: {}", "certificate signed by unknown authority"},
		{"no authority in the file", fmt.Sprintf("tls: {ca: %s/client.key}", s.Dir), "etcd.tls.ca"},
		{"no TLS", "username: root, password: secret", "etcd store"},
	} {
		commands := func(t *testing.T) {
			path := harness.WriteConfig(t, idle+fmt.Sprintf(`stores: {main: {etcd: {endpoints: ["%s"], %s}}}
sources: {event_id: {snowflake: {workers: main}}, order_id: {segment: {store: main}}}
`, s.Addr, tt.store))
			var both sync.WaitGroup
			for _, args := range [][]string{{"worker", "--config", path, "add", "2", "--new-pool"}, {"source", "set", "--config", path, "order_id", "1"}} {
				both.Go(func() {
					got := runWith(t, "", args...)
					right := func() bool {
						return (tt.fails != "" || got.status == statusFine) && strings.Contains(got.out+got.err, tt.fails)
					}
					for began := time.Now(); !right() && away(got.err) && time.Since(began) < 2*time.Minute; {
						got = runWith(t, "", args...)
					}
					assert.True(t, right(), "%v: %+v; want error %q", args, got, tt.fails)
				})
			}
			both.Wait()
		}
		all.Go(func() { t.Run(tt.name, commands) })
	}
	all.Wait()
}

// away reports whether an error says no more than that etcd was not reached in time. On a busy
// machine a connection may take longer than an attempt may: gRPC then says how far it came.
func away(text string) bool {
	return strings.Contains(text, "deadline exceeded") || strings.Contains(text, "code = Unavailable")
}
