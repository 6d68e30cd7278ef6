package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// The lease of the tests. The shortest reclaim that the heartbeat and max_ahead of the
// configuration allow is 4.6s.
const (
	reclaim = 5 * time.Second
	numbers = 10 // of the pool
)

// configuration is a process's: names with a $ are its folder's sockets, its number, and the
// addresses of stores as it sees them.
const configuration = `
listeners:
  - {name: app, listen: "unix:$sql", upstream: "$rows", account: {user: app, password: app}}
  - {name: other, listen: "unix:$other_sql", upstream: "$other_rows", account: {user: app, password: app}}
stores:
  main:    {mysql: {dsn: "app:app@tcp($main)/ids"}}
  tickets: {mysql: {dsns: ["app:app@tcp($first)/tickets", "app:app@tcp($second)/tickets"]}}
  raft:    {etcd: {endpoints: ["$raft0", "$raft1", "$raft2"]}}
  leases:  {redis: {addrs: ["$leases"]}}
  moved:   {redis: {addrs: ["$moved"]}}
  own:     {file: {dir: ./own}}
sources:
  main_id:   {segment: {store: $place, key: $key, step: $step, max_step: 100000}}
  small_id:  {segment: {store: main, step: 10, max_step: 10}}
  moving_id: {segment: {store: main, step: 10, max_step: 10, key: "{schema}.{table}"}}
  ticket_id: {segment: {store: tickets, max_step: 100000}}
  raft_id:   {segment: {store: raft, max_step: 100000}}
  leased_id: {snowflake: {workers: leases, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  moved_id:  {snowflake: {workers: moved, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  raft_worker_id: {snowflake: {workers: raft, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  main_worker_id: {snowflake: {workers: main, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  start_id:  {snowflake: {workers: raft, disposable: true, layout: 31s/20/12, lease: {heartbeat: 200ms, reclaim: 8s}}}
  fixed_id:  {snowflake: {worker: $number, store: own, sequence: zero}}
rules:
  - {table: app.main, column: id, source: main_id, listeners: [app]}
  - {table: app.leased, column: id, source: leased_id, listeners: [app]}
  - {table: app.small, column: id, source: small_id, listeners: [app]}
  - {table: "app.moving*", column: id, source: moving_id}
ids: {redis: {listen: "unix:$ids"}}
`

// asked are the sources that programs ask for ids; pools those with worker numbers; tables those of
// the rows.
var (
	pools    = []string{"leased_id", "moved_id", "raft_worker_id", "main_worker_id", "start_id"}
	segments = []string{"main_id", "ticket_id", "raft_id"}
	asked    = slices.Concat(segments, pools, []string{"fixed_id"})
	tables   = map[string]string{"main": "main_id", "leased": "leased_id", "small": "small_id"}
)

// members is how many etcd's cluster has.
const members = 3

// world is everything that is harmed, and what came of it.
type world struct {
	app, second *servers.Server
	redis       [2]*servers.Redis // one is the master, the other may follow it
	apart       [2]*servers.Clock // of the two
	master      int
	keeps       *servers.Redis // loses nothing
	etcd        []*servers.Etcd
	clocks      []*movedClock
	direct      string // configuration of an administrator, whose network does not fail
	nodes       []*node
	place       place // of main_id
	table       renamed

	records map[string]*record // by source
	told    tally
	askers  []*asker
	writers []*writer
	load    sync.WaitGroup
	end     context.CancelFunc
}

func newWorld(t *testing.T, processes int) *world {
	t.Helper()
	w := &world{records: map[string]*record{"moving_id": newRecord("moving_id", math.MaxInt64)}, place: place{"main", "main_id", 1000}}
	w.startServers(t)
	for _, name := range asked {
		w.records[name] = newRecord(name, math.MaxInt64)
	}
	w.records["small_id"] = newRecord("small_id", math.MaxInt16)
	stores := map[string]string{"main": w.app.Addr, "first": w.app.Addr, "second": w.second.Addr, "leases": w.redis[0].Addr, "moved": w.keeps.Addr}
	for i, e := range w.etcd {
		stores[etcdWay(i)] = e.Addr
	}
	for i := range processes {
		n := newNode(t, uint8(i), stores)
		w.configure(t, n)
		w.nodes = append(w.nodes, n)
	}
	w.direct = filepath.Join(t.TempDir(), "idproxy.yaml")
	w.readdress(t)
	for _, source := range pools {
		w.nodes[0].command(t, "worker", "--config", w.direct, "add", "--source", source, "--new-pool", fmt.Sprint(numbers))
	}
	for _, source := range segments { // no INSERT has begun them when programs ask
		w.nodes[0].command(t, "source", "set", "--config", w.direct, source, "1")
	}
	w.nodes[0].command(t, "source", "create", "--config", w.direct, "small_id")
	w.nodes[0].command(t, "source", "create", "--config", w.direct, "moving_id", "--key", "{schema}.{table}")
	return w
}

func (w *world) startServers(t *testing.T) {
	t.Helper()
	appClock, keepsClock := newClock(t), newClock(t)
	durable := servers.Options{Args: []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=32M", "--performance-schema=OFF"}}
	w.second = harness.StartServer(t, servers.MariaDB, durable)
	durable.Clock = appClock
	w.app = harness.StartServer(t, servers.MariaDB, durable)
	for i := range w.redis {
		w.apart[i] = newClock(t)
		w.redis[i] = startRedis(t, w.apart[i], "--repl-diskless-sync-delay", "0")
	}
	w.keeps = startRedis(t, keepsClock, "--appendonly", "yes", "--appendfsync", "always")
	w.etcd = assert.Of(servers.StartEtcdCluster(t.Context(), members)).Must(t)
	for _, e := range w.etcd {
		t.Cleanup(func() { _ = e.Stop() })
	}
	harness.MustExec(t, harness.Open(t, w.app.Config(""), ""), "CREATE DATABASE ids", "CREATE DATABASE tickets", "CREATE DATABASE app",
		// No unique keys: an id that comes twice shall be seen, not refused.
		"CREATE TABLE app.main (id BIGINT, a INT, KEY (id))", "CREATE TABLE app.leased (id BIGINT, a INT, KEY (id))", "CREATE TABLE app.small (id SMALLINT, a INT, KEY (id))")
	harness.MustExec(t, harness.Open(t, w.second.Config(""), ""), "CREATE DATABASE tickets", "CREATE DATABASE app")
	w.table.create(t, w.app, w.second)
	w.clocks = []*movedClock{
		{Clock: appClock, server: "app", source: "main_worker_id", pool: numbers, now: func() (time.Time, error) { return databaseTime(w.app) }},
		{Clock: keepsClock, server: "keeps", source: "moved_id", pool: numbers, now: func() (time.Time, error) { return redisTime(w.keeps) }},
	}
}

func startRedis(t *testing.T, c *servers.Clock, args ...string) *servers.Redis {
	t.Helper()
	r := assert.Of(servers.StartRedisClock(t.Context(), c, args...)).Must(t)
	t.Cleanup(func() { _ = r.Stop() })
	return r
}

// configuration is that of a process that finds stores at these addresses.
func (w *world) configuration(n *node, store func(name string) string) string {
	return os.Expand(configuration, func(name string) string {
		switch name {
		case "sql":
			return n.sqlSocket()
		case "ids":
			return n.idsSocket()
		case "rows":
			return w.app.Addr
		case "other_sql":
			return n.otherSocket()
		case "other_rows":
			return w.second.Addr
		case "place":
			return w.place.store
		case "key":
			return w.place.key
		case "step":
			return fmt.Sprint(w.place.step)
		case "number":
			return fmt.Sprint(n.number)
		}
		return store(name)
	})
}

// configure writes the configuration of a process.
func (w *world) configure(t testing.TB, n *node) {
	t.Helper()
	text := w.configuration(n, func(store string) string { return n.relays[store].addr })
	assert.Must(t, os.WriteFile(n.config(), []byte(text), 0o600))
}

// readdress tells the administrator where stores are.
func (w *world) readdress(t testing.TB) {
	t.Helper()
	text := w.configuration(w.nodes[0], func(store string) string {
		if store == "leases" {
			return w.redis[w.master].Addr
		}
		return w.nodes[0].relays[store].first
	})
	assert.Must(t, os.WriteFile(w.direct, []byte(text), 0o600))
}

// addNumbers does what an administrator does who finds the pool of a source gone, or its numbers
// used up.
func (w *world) addNumbers(t testing.TB, source string, n int) {
	t.Helper()
	w.readdress(t)
	w.nodes[0].command(t, "worker", "--config", w.direct, "add", "--source", source, fmt.Sprint(n))
}

// begin starts the processes and those who want ids.
func (w *world) begin(t testing.TB, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	random := rand.New(rand.NewPCG(seed, 1))
	for _, n := range w.nodes {
		n.start(t)
		for _, source := range asked {
			a := &asker{socket: n.idsSocket(), source: source, rate: segmentRate, into: w.records[source], from: n.number, told: &w.told}
			if !slices.Contains(segments, source) {
				a.rate, a.often = snowflakeRate, true
			}
			w.askers = append(w.askers, a)
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			w.load.Go(func() { a.ask(ctx, own) })
		}
		for table := range tables {
			wr := &writer{socket: n.sqlSocket(), table: table, told: &w.told}
			w.writers = append(w.writers, wr)
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			w.load.Go(func() { wr.write(ctx, own) })
		}
		for shard, socket := range []string{n.sqlSocket(), n.otherSocket()} {
			w.load.Go(func() { w.table.write(ctx, socket, shard, &w.told) })
		}
	}
}

// mend ends all harm and waits until every process gives ids of every source again.
func (w *world) mend(t *testing.T) {
	t.Helper()
	for _, n := range w.nodes {
		for name, r := range n.relays {
			if name == "leases" {
				r.lead(w.redis[w.master].Addr)
			}
			r.set(pass)
		}
		n.faults.Wall(0)
		n.faults.Mono(n.mono)
		n.signal(t, syscall.SIGCONT)
	}
	w.addNumbers(t, "leased_id", numbers)
	w.settle(t)
	for _, c := range w.clocks {
		c.catchUp(t)
	}
	time.Sleep(time.Second) // that is, heartbeats: processes hear of it
	began, before := time.Now(), make([]int64, len(w.askers))
	for i, a := range w.askers {
		before[i] = a.good.Load()
	}
	for i, a := range w.askers {
		assert.Until(t, fmt.Sprintf("process %d gives ids of %s again", a.from, a.source), func() bool { return a.good.Load() > before[i] }, w.nodes[a.from].tail)
		if took := time.Since(began); took > reclaim {
			t.Logf("%s of process %d: ids again after %v", a.source, a.from, took)
			began = time.Now()
		}
	}
	w.checkTimes(t)
}

// finish ends load and processes, and reads the tables.
func (w *world) finish(t *testing.T) {
	t.Helper()
	w.end()
	w.load.Wait()
	for _, n := range w.nodes {
		n.stop(t)
	}
	db := harness.Open(t, w.app.Config("app"), "")
	for table, source := range tables {
		rows := readRows(t, db, table, w.records[source])
		for _, wr := range w.writers {
			if wr.table == table {
				wr.check(t, rows)
			}
		}
	}
	w.table.read(t, w.records["moving_id"])
}

// report says what came. Each source has given some.
func (w *world) report(t testing.TB) (sum result) {
	t.Helper()
	for source, r := range w.records {
		f := r.check()
		t.Logf("%-14s %10d ids in %d answers, %d twice", source, f.ids, len(r.runs), f.twice)
		for _, pair := range f.pairs {
			t.Logf("  %s", strings.Join(pair[:], " and "))
		}
		assert.True(t, f.ids > 0, "%s gave no ids", source)
		if len(f.outside) > 0 {
			t.Errorf("%s: %d answers with ids that are not positive or do not fit, such as %v", source, len(f.outside), f.outside[0])
		}
		sum.ids, sum.answers, sum.twice = sum.ids+f.ids, sum.answers+uint64(len(r.runs)), sum.twice+f.twice
	}
	t.Logf("told: %v", w.told.told)
	return sum
}

func TestMain(m *testing.M) { harness.Main(m) }
