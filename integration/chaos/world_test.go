package chaos

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// The lease of the tests. The shortest reclaim that the heartbeat and max_ahead of the configuration allow is 4.6s.
const (
	reclaim = 5 * time.Second
	numbers = 10 // of the pool
)

// configuration is a process's: its folder, number, and the addresses of stores as it sees them.
const configuration = `
listeners: [{listen: "unix:%[1]s", upstream: %[2]q, account: {user: app, password: app}}]
stores:
  main:    {mysql: {dsn: "app:app@tcp(%[3]s)/ids"}}
  tickets: {mysql: {dsns: ["app:app@tcp(%[4]s)/tickets", "app:app@tcp(%[5]s)/tickets"]}}
  raft:    {etcd: {endpoints: ["%[6]s"]}}
  leases:  {redis: {addrs: ["%[7]s"]}}
  own:     {file: {dir: ./own}}
sources:
  main_id:   {segment: {store: main, max_step: 100000}}
  small_id:  {segment: {store: main, step: 10, max_step: 10}}
  ticket_id: {segment: {store: tickets, max_step: 100000}}
  raft_id:   {segment: {store: raft, max_step: 100000}}
  leased_id: {snowflake: {workers: leases, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  raft_worker_id: {snowflake: {workers: raft, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  main_worker_id: {snowflake: {workers: main, sequence: zero, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
  start_id:  {snowflake: {workers: raft, disposable: true, layout: 31s/20/12, lease: {heartbeat: 200ms, reclaim: 8s}}}
  fixed_id:  {snowflake: {worker: %[8]d, store: own, sequence: zero}}
rules:
  - {table: app.main, column: id, source: main_id}
  - {table: app.leased, column: id, source: leased_id}
  - {table: app.small, column: id, source: small_id}
ids: {redis: {listen: "unix:%[9]s"}}
`

// administrator is what the one has who fills the pool.
const administrator = `
listeners: [{listen: "127.0.0.1:1", upstream: "127.0.0.1:2"}]
stores:    {leases: {redis: {addrs: ["%s"]}}}
sources:
  leased_id: {snowflake: {workers: leases, max_ahead: 200ms, lease: {heartbeat: 200ms, reclaim: 5s}}}
`

// asked are the sources that programs ask for ids; tables those of the rows.
var (
	asked    = []string{"main_id", "ticket_id", "raft_id", "leased_id", "raft_worker_id", "main_worker_id", "start_id", "fixed_id"}
	segments = "main_id ticket_id raft_id"
	tables   = map[string]string{"main": "main_id", "leased": "leased_id", "small": "small_id"}
)

// world is everything that is harmed, and what came of it.
type world struct {
	app, second *servers.Server
	redis       [2]*servers.Redis
	master      int // of the two
	etcd        *servers.Etcd
	nodes       []*node

	records map[string]*record // by source
	told    tally
	askers  []*asker
	writers []*writer
	load    sync.WaitGroup
	end     context.CancelFunc
}

func newWorld(t *testing.T, processes int) *world {
	t.Helper()
	w := &world{records: map[string]*record{}}
	durable := servers.Options{Args: []string{"--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=32M", "--performance-schema=OFF"}}
	w.app, w.second = harness.StartServer(t, servers.MariaDB, durable), harness.StartServer(t, servers.MariaDB, durable)
	for i := range w.redis {
		var err error
		if w.redis[i], err = servers.StartRedis(t.Context(), "--repl-diskless-sync-delay", "0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.redis[i].Stop() })
	}
	var err error
	if w.etcd, err = servers.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.etcd.Stop() })
	for _, statement := range []string{
		"CREATE DATABASE ids", "CREATE DATABASE tickets", "CREATE DATABASE app",
		// No unique keys: an id that comes twice shall be seen, not refused.
		"CREATE TABLE app.main (id BIGINT, a INT, KEY (id))",
		"CREATE TABLE app.leased (id BIGINT, a INT, KEY (id))",
		"CREATE TABLE app.small (id SMALLINT, a INT, KEY (id))",
	} {
		w.exec(t, w.app, statement)
	}
	w.exec(t, w.second, "CREATE DATABASE tickets")
	for _, name := range asked {
		w.records[name] = newRecord(name, math.MaxInt64)
	}
	w.records["small_id"] = newRecord("small_id", math.MaxInt16)
	for i := range processes {
		n := newNode(t, uint8(i), map[string]string{
			"main": w.app.Addr, "first": w.app.Addr, "second": w.second.Addr, "raft": w.etcd.Addr, "leases": w.redis[0].Addr,
		})
		n.configure(t, fmt.Sprintf(configuration, n.sqlSocket(), w.app.Addr, n.relays["main"].addr, n.relays["first"].addr,
			n.relays["second"].addr, n.relays["raft"].addr, n.relays["leases"].addr, i, n.idsSocket()))
		w.nodes = append(w.nodes, n)
	}
	for _, source := range []string{"leased_id", "raft_worker_id", "main_worker_id", "start_id"} {
		w.command(t, "worker", "--config", w.nodes[0].config(), "add", "--source", source, "--new-pool", fmt.Sprint(numbers))
	}
	for _, source := range strings.Fields(segments) { // no INSERT has begun them when programs ask
		w.command(t, "source", "set", "--config", w.nodes[0].config(), source, "1")
	}
	return w
}

func (w *world) exec(t testing.TB, s *servers.Server, statement string) {
	t.Helper()
	connector, err := mysql.NewConnector(s.Config(""))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	_, err = db.Exec(statement)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// addNumbers does what an administrator does who finds the pool in Redis gone.
func (w *world) addNumbers(t testing.TB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, administrator, w.redis[w.master].Addr), 0o600); err != nil {
		t.Fatal(err)
	}
	w.command(t, "worker", "--config", path, "add", fmt.Sprint(numbers))
}

// command runs a command of the program.
func (w *world) command(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command(w.nodes[0].program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// begin starts the processes and those who want ids, rate in all per second.
func (w *world) begin(t testing.TB, rate float64, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	random := rand.New(rand.NewPCG(seed, 1))
	for _, n := range w.nodes {
		n.start(t)
		for _, source := range asked {
			a := &asker{
				socket: n.idsSocket(), source: source, rate: rate / float64(len(w.nodes)*len(asked)),
				often: !strings.Contains(segments, source), into: w.records[source], from: n.number, told: &w.told,
			}
			w.askers = append(w.askers, a)
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			w.load.Go(func() { a.ask(ctx, own) })
		}
		for table := range tables {
			wr := &writer{socket: n.sqlSocket(), table: table, told: &w.told}
			w.writers = append(w.writers, wr)
			own := rand.New(rand.NewPCG(random.Uint64(), 0))
			w.load.Go(func() { wr.write(ctx, t, own) })
		}
	}
}

// mend ends all harm and waits until every process gives ids of every source again.
func (w *world) mend(t testing.TB) {
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
	w.addNumbers(t)
	began, before := time.Now(), make([]int64, len(w.askers))
	for i, a := range w.askers {
		before[i] = a.good.Load()
	}
	for i, a := range w.askers {
		for end := time.Now().Add(60 * time.Second); a.good.Load() == before[i]; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d gives no ids of %s any more:\n%s", a.from, a.source, w.nodes[a.from].proc.LogTail(40))
				break
			}
		}
		if took := time.Since(began); took > reclaim {
			t.Logf("%s of process %d: ids again after %v", a.source, a.from, took)
			began = time.Now()
		}
	}
}

// finish ends load and processes, and reads the tables.
func (w *world) finish(t testing.TB) {
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
}

// report says what came, and returns how many ids came and how many twice.
func (w *world) report(t testing.TB) (ids, twice uint64) {
	t.Helper()
	for source, r := range w.records {
		f := r.check()
		t.Logf("%-14s %10d ids in %d answers, %d twice", source, f.ids, len(r.runs), f.twice)
		for _, pair := range f.pairs {
			t.Logf("  %s", strings.Join(pair[:], " and "))
		}
		if len(f.outside) > 0 {
			t.Errorf("%s: %d answers with ids that are not positive or do not fit, such as %v", source, len(f.outside), f.outside[0])
		}
		ids, twice = ids+f.ids, twice+f.twice
	}
	t.Logf("told: %v", w.told.told)
	return ids, twice
}
