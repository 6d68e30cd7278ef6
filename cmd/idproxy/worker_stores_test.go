package main

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	client "go.etcd.io/etcd/client/v3"

	"idproxy/cmd/idproxy/sources"
	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/lease"
	"idproxy/idsource/snowflake"
	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// TestWorkerStores makes pools in etcd and MariaDB, lets two programs' sources
// take numbers, and looks at what commands say of it.
func TestWorkerStores(t *testing.T) {
	raft := assert.Of(servers.StartEtcd(t.Context())).Must(t)
	cache := assert.Of(servers.StartRedis(t.Context())).Must(t)
	keeper := assert.Of(servers.StartZooKeeper(t.Context())).Must(t)
	db := assert.Of(servers.Start(t.Context(), servers.MariaDB, servers.Options{})).Must(t)
	t.Cleanup(func() {
		for _, stop := range []func() error{raft.Stop, cache.Stop, keeper.Stop, db.Stop} {
			assert.NoError(t, stop())
		}
	})
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
	got := runWith(t, "", "worker", "--config", path, "add", "2", "--new-pool")
	assert.MustTrue(t, got.status == statusFine, "%+v", got)
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
	s := assert.Of(sources.Open(cfg, slog.New(slog.DiscardHandler), nil, net.Listen, false)).Must(t)
	return s
}

// numberOf has a source issue an id and returns the worker number in it.
func numberOf(t *testing.T, s *sources.Sources, source, layout string) uint64 {
	t.Helper()
	l := assert.Of(snowflake.ParseLayout(layout)).Must(t)
	id := make([]uint64, 1)
	for try := 0; ; try++ {
		err := s.Named()[source].(idsource.Series).Fill(t.Context(), id, 1)
		if err == nil {
			return l.Decode(id[0]).Worker
		}
		if try == 5 { // each waits for two seconds
			t.Fatal(err)
		}
	}
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
	for _, s := range []*sources.Sources{one, two} {
		assert.NoError(t, s.Close())
	}
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
		got := numberOf(t, s, "start_id", "31s/20/12")
		assert.True(t, got == want, "start %d has number %d", want, got)
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
		t.Run(tt.name, func(t *testing.T) {
			path := harness.WriteConfig(t, fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]
stores: {main: {etcd: {endpoints: ["%s"], %s}}}
sources: {event_id: {snowflake: {workers: main}}, order_id: {segment: {store: main}}}
`, s.Addr, tt.store))
			for _, args := range [][]string{{"worker", "--config", path, "add", "2", "--new-pool"}, {"source", "set", "--config", path, "order_id", "1"}} {
				got := runWith(t, "", args...)
				right := func() bool {
					return tt.fails == "" && got.status == statusFine || tt.fails != "" && strings.Contains(got.out+got.err, tt.fails)
				}
				for began := time.Now(); !right() && away(got.err) && time.Since(began) < 2*time.Minute; {
					got = runWith(t, "", args...)
				}
				assert.True(t, right(), "%v: %+v; want error %q", args, got, tt.fails)
			}
		})
	}
}

// away reports whether an error says no more than that etcd was not reached in time. On a busy
// machine a connection may take longer than an attempt may: gRPC then says how far it came.
func away(text string) bool {
	return strings.Contains(text, "deadline exceeded") || strings.Contains(text, "code = Unavailable")
}
