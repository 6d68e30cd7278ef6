package observability

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

// fault is a proxy that is well, and how it gets a fault.
type fault struct {
	*watched
	plant func(t *testing.T)
	again func(t *testing.T) // what clients go on doing meanwhile
	moved bool               // planting starts the proxy anew, at another address
}

// floor is what the faults share.
type floor struct {
	server *servers.Server
	redis  *servers.Redis // keeps pools of worker numbers
	idle   func(*testing.T)
}

func newFloor(t *testing.T) *floor {
	t.Helper()
	return &floor{server: harness.MariaDB(t), redis: startRedis(t), idle: func(*testing.T) {}}
}

func startRedis(t *testing.T) *servers.Redis {
	t.Helper()
	r := assert.Of(servers.StartRedis(t.Context())).Must(t)
	t.Cleanup(func() { assert.NoError(t, r.Stop()) })
	return r
}

// launch starts a proxy with an admin listener, in front of the shared server unless the
// configuration names listeners.
func (f *floor) launch(t *testing.T, db string, spec harness.Spec) *watched {
	t.Helper()
	spec.Config = "admin: {listen: 127.0.0.1:0}\n" + spec.Config
	if !strings.Contains(spec.Config, "listeners:") {
		spec.Config = harness.OneListener(f.server.Addr) + spec.Config
	}
	return adminOf(t, harness.Start(t, spec), f.server, db)
}

// pool is the configuration of a source with worker numbers from Redis. A holder that stands still
// for gap loses its number.
func pool(name, addr, lease string) string {
	return fmt.Sprintf("stores: {leases: {redis: {addrs: [%q]}}}\nsources: {%s: {snowflake: {workers: leases, max_ahead: 100ms, lease: %s}}}\n", addr, name, lease)
}

// addWorkers makes a pool of n numbers for the source of a configuration.
func addWorkers(t *testing.T, addr, config string, n int) {
	t.Helper()
	path := harness.WriteConfig(t, harness.OneListener(addr)+config)
	out, err := harness.Command(t, "worker", "--config", path, "add", fmt.Sprint(n), "--new-pool", "--force") // other programs have theirs in the store
	assert.Must(t, err, out)
}

// untilHeld waits until a proxy holds a worker number.
func (w *watched) untilHeld(t *testing.T) {
	t.Helper()
	assert.Until(t, "it holds a worker number", func() bool {
		s := w.state(t).Sources[0]
		return s.Snowflake.Worker != nil && s.Problem == ""
	})
}

// faults are those of the table, by their names in it.
var faults = map[string]func(*testing.T, *floor) *fault{
	"store down": storeDown, "store slow": storeSlow, "wrong password of a store": wrongPassword,
	"wrong password of an account": wrongAccount,
	"table too narrow for the ids": tooNarrow, "worker number lost": workerLost, "clock back": clockBack,
	"pool of worker numbers empty": poolEmpty, "descriptors out": descriptorsOut, "shard down": shardDown,
	"certificate near its end": certificateEnds, "bits near their end": bitsEnd, "silent client": silentClient,
	"refused form": refusedForm, "config mistake on reload": badReload,
}

func storeDown(t *testing.T, f *floor) *fault {
	redis := startRedis(t)
	config := pool("down_id", redis.Addr, "{}")
	addWorkers(t, f.server.Addr, config, 2)
	plant := func(t *testing.T) { assert.Must(t, redis.Kill()) }
	return &fault{f.launch(t, "", harness.Spec{Config: config}), plant, f.idle, false}
}

// storeSlow has a relay in front of the store that keeps its answers for a while.
func storeSlow(t *testing.T, f *floor) *fault {
	var slow atomic.Bool
	relay := harness.Between(t, f.server.Addr, func() {}, func(client, server net.Conn) [2]func() {
		return [2]func(){func() { harness.Copy(server, client) }, func() {
			defer client.Close()
			for b := make([]byte, 64<<10); ; {
				n, err := server.Read(b)
				if slow.Load() {
					time.Sleep(800 * time.Millisecond)
				}
				if _, werr := client.Write(b[:n]); err != nil || werr != nil {
					return
				}
			}
		}}
	})
	dsn := strings.Replace(harness.StoreDSN(f.server, harness.Database(t, f.server)), f.server.Addr, relay, 1)
	config := fmt.Sprintf("stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main}}}\n", dsn)
	return &fault{f.launch(t, "", harness.Spec{Config: config}), func(*testing.T) { slow.Store(true) }, f.idle, false}
}

// wrongPassword changes the password of the store's account and cuts its connections.
func wrongPassword(t *testing.T, f *floor) *fault {
	kept := harness.Database(t, f.server)
	root := harness.Open(t, f.server.Config(""), "")
	account := "'keeper_" + kept + "'@'%'"
	harness.MustExec(t, root, "CREATE USER "+account+" IDENTIFIED BY 'first'", "GRANT ALL ON "+kept+".* TO "+account)
	t.Cleanup(func() { harness.MustExec(t, root, "DROP USER "+account) })
	c := f.server.Config(kept)
	c.User, c.Passwd = "keeper_"+kept, "first"
	config := fmt.Sprintf("stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main}}}\n", c.FormatDSN())
	plant := func(t *testing.T) {
		harness.MustExec(t, root, "ALTER USER "+account+" IDENTIFIED BY 'second'", "KILL USER "+account)
	}
	return &fault{f.launch(t, "", harness.Spec{Config: config}), plant, f.idle, false}
}

// wrongAccount changes the password of a listener's account.
func wrongAccount(t *testing.T, f *floor) *fault {
	root := harness.Open(t, f.server.Config(""), "")
	account := "asks_" + harness.Database(t, f.server)
	harness.MustExec(t, root, "CREATE USER '"+account+"'@'%' IDENTIFIED BY 'first'")
	t.Cleanup(func() { harness.MustExec(t, root, "DROP USER '"+account+"'@'%'") })
	config := fmt.Sprintf("listeners: [{name: a, listen: 127.0.0.1:0, upstream: %q, account: {user: %s, password: first}}]\n", f.server.Addr, account) + harness.OneRule("x.t")
	plant := func(t *testing.T) { harness.MustExec(t, root, "ALTER USER '"+account+"'@'%' IDENTIFIED BY 'second'") }
	return &fault{f.launch(t, "", harness.Spec{Config: config}), plant, f.idle, false}
}

// inserting is a proxy whose clients insert into a table.
func (f *floor) inserting(t *testing.T, table, source, insert string) *fault {
	db := harness.Database(t, f.server)
	w := f.launch(t, db, harness.Spec{Config: fmt.Sprintf("sources: {ids: {%s}}\nrules: [{table: %s.t, column: id, source: ids}]\n", source, db)})
	conn := w.open(t, 1)
	harness.MustExec(t, conn, table, "INSERT INTO t (a) VALUES (1)")
	again := func(t *testing.T) {
		assert.Of(conn.ExecContext(t.Context(), insert)).Fails(t, "nothing is wrong with "+insert, "")
	}
	return &fault{w, func(*testing.T) {}, again, false}
}

// tooNarrow has a column for 127 ids at most, and its ids begin at that.
func tooNarrow(t *testing.T, f *floor) *fault {
	return f.inserting(t, "CREATE TABLE t (id TINYINT PRIMARY KEY, a INT)", "segment: {start: 127}", "INSERT INTO t (a) VALUES (1)")
}

func refusedForm(t *testing.T, f *floor) *fault {
	return f.inserting(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "segment: {}", "SET STATEMENT max_statement_time=10 FOR INSERT INTO t (a) VALUES (1)")
}

// workerLost stops the process for longer than its lease lasts, as a host does that is suspended.
func workerLost(t *testing.T, f *floor) *fault {
	config := pool("lost_id", f.redis.Addr, "{heartbeat: 500ms, reclaim: 10s}") // lasts for (10 - 0.1 - 3 - 0.5) / 2 s
	addWorkers(t, f.server.Addr, config, 1)
	w := f.launch(t, "", harness.Spec{Config: config})
	plant := func(t *testing.T) {
		w.untilHeld(t)
		assert.Must(t, w.Signal(syscall.SIGSTOP))
		time.AfterFunc(5*time.Second, func() { assert.NoError(t, w.Signal(syscall.SIGCONT)) })
	}
	again := func(t *testing.T) { // it rests before its first id, and then the metric tells
		assert.Until(t, "it has its number again", func() bool { return w.state(t).Sources[0].Snowflake.Swaps > 0 })
	}
	return &fault{w, plant, again, false}
}

// clockBack moves the wall clock back by an hour, of a build whose clock a test can move.
func clockBack(t *testing.T, f *floor) *fault {
	moved := harness.NewFaults(t, filepath.Join(t.TempDir(), "faults"))
	db := harness.Database(t, f.server)
	spec := harness.Spec{Dir: t.TempDir(), Env: []string{moved.Env()}, Config: harness.OneListener(f.server.Addr) +
		fmt.Sprintf("admin: {listen: 127.0.0.1:0}\nsources: {ids: {snowflake: {worker: 1}}}\nrules: [{table: %s.t, column: id, source: ids}]\n", db)}
	p := assert.Of(harness.Launch(t.Context(), assert.Of(harness.BuildFaults()).Must(t), spec)).Must(t)
	t.Cleanup(func() { assert.NoError(t, p.Stop(time.Minute)) })
	w := adminOf(t, p, f.server, db)
	conn := w.open(t, 1)
	harness.MustExec(t, conn, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	assert.Until(t, "the number, which is new in its folder and begins ahead, is where the clock is", func() bool {
		s := w.state(t).Sources[0].Snowflake
		return s.Worker != nil && time.Duration(s.Ahead) < time.Second
	})
	plant := func(t *testing.T) {
		harness.MustExec(t, conn, "INSERT INTO t (a) VALUES (1)")
		moved.Wall(-time.Hour)
	}
	return &fault{w, plant, f.idle, false}
}

// poolEmpty has a pool of one number. The process that holds it is started again, and another one
// was quicker.
func poolEmpty(t *testing.T, f *floor) *fault {
	config := pool("empty_id", f.redis.Addr, "{heartbeat: 1s, reclaim: 11s}") // a busy machine stands still for three short heartbeats
	addWorkers(t, f.server.Addr, config, 1)
	v := &fault{watched: f.launch(t, "", harness.Spec{Config: config}), again: f.idle, moved: true}
	v.untilHeld(t) // its metric tells of the time before, too
	v.plant = func(t *testing.T) {
		assert.Must(t, v.Stop(time.Minute))
		f.launch(t, "", harness.Spec{Config: config, Dir: t.TempDir()}).untilHeld(t)
		v.watched = f.launch(t, "", harness.Spec{Config: config, Dir: t.TempDir()})
	}
	return v
}

// descriptorsOut leaves the process no descriptor beside those that it has.
func descriptorsOut(t *testing.T, f *floor) *fault {
	w := f.launch(t, "", harness.Spec{Config: "sources: {ids: {segment: {}}}\n"})
	plant := func(t *testing.T) {
		open := assert.Of(os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.PID()))).Must(t)
		var limit unix.Rlimit
		assert.Must(t, unix.Prlimit(w.PID(), unix.RLIMIT_NOFILE, nil, &limit))
		limit.Cur = uint64(len(open))
		assert.Must(t, unix.Prlimit(w.PID(), unix.RLIMIT_NOFILE, &limit, nil))
	}
	// What the page had open may be closed meanwhile: a client has its place then, and is sent away for want
	// of another one for its server. Of clients that come at once the second one has none.
	again := func(t *testing.T) {
		assert.Must(t, w.Signal(syscall.SIGSTOP))
		for range 3 {
			dial(t, w.Addr("a"))
		}
		assert.Must(t, w.Signal(syscall.SIGCONT))
	}
	return &fault{w, plant, again, false}
}

// dial connects, and says nothing until the end of the test.
func dial(t *testing.T, addr string) {
	t.Helper()
	conn := assert.Of(net.Dial("tcp", addr)).Must(t)
	t.Cleanup(func() { conn.Close() })
}

func shardDown(t *testing.T, f *floor) *fault {
	shard := harness.StartServer(t, servers.MariaDB, servers.Options{})
	w := f.launch(t, "", harness.Spec{Config: fmt.Sprintf("listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q, account: {user: app, password: app}}]\n", shard.Addr)})
	plant := func(t *testing.T) { assert.Must(t, shard.Kill()) }
	return &fault{w, plant, f.idle, false}
}

// certificateEnds starts the proxy again with a certificate that lasts ten days.
func certificateEnds(t *testing.T, f *floor) *fault {
	with := func(lasts time.Duration) *watched {
		dir := t.TempDir()
		harness.WriteCertificate(t, dir, lasts)
		return f.launch(t, "", harness.Spec{Dir: dir, Config: fmt.Sprintf(
			"listeners: [{name: a, listen: '127.0.0.1:0', upstream: %q, tls: {cert: server.pem, key: server.key}}]\n", f.server.Addr)})
	}
	v := &fault{watched: with(90 * 24 * time.Hour), again: f.idle, moved: true}
	v.plant = func(t *testing.T) {
		assert.Must(t, v.Stop(time.Minute))
		v.watched = with(10 * 24 * time.Hour)
	}
	return v
}

// bitsEnd starts the proxy again with a layout whose 2^40 milliseconds are over in a year and a
// half.
func bitsEnd(t *testing.T, f *floor) *fault {
	const year = 365 * 24 * time.Hour
	config := func(more string) string {
		return "sources: {ids: {snowflake: {worker: 1, layout: 40/11/12" + more + "}}}\n"
	}
	epoch := time.Now().Add(3 * year / 2).Add(-(1 << 40) * time.Millisecond).UTC().Format(time.RFC3339)
	v := &fault{watched: f.launch(t, "", harness.Spec{Config: config("")}), again: f.idle, moved: true}
	v.plant = func(t *testing.T) {
		assert.Must(t, v.Stop(time.Minute))
		v.watched = f.launch(t, "", harness.Spec{Config: config(", epoch: " + epoch), Dir: t.TempDir()})
	}
	return v
}

func silentClient(t *testing.T, f *floor) *fault {
	w := f.launch(t, "", harness.Spec{Config: "limits: {handshake: 500ms}\n"})
	plant := func(t *testing.T) {
		for range 8 {
			dial(t, w.Addr("a"))
		}
	}
	return &fault{w, plant, f.idle, false}
}

func badReload(t *testing.T, f *floor) *fault {
	w := f.launch(t, "", harness.Spec{Config: "sources: {ids: {segment: {}}}\n"})
	plant := func(t *testing.T) { assert.Must(t, w.Reload("listeners: [}\n")) }
	return &fault{w, plant, f.idle, false}
}
