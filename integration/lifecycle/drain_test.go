package lifecycle

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

// TestDrainCutsNothing sends SIGTERM to a proxy with many busy clients, again and again. A client's
// last statement has its reply, or it did not run: its row is not there. The wait for the clients
// would end in a cut if one went on.
func TestDrainCutsNothing(t *testing.T) {
	t.Parallel()
	const clients, rounds = 64, 8
	for _, server := range harness.Servers(t) {
		db := harness.Database(t, server)
		direct := harness.Open(t, server.Config(db), server.Addr)
		harness.MustExec(t, direct, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a VARCHAR(20) UNIQUE)", "CREATE TABLE free (a VARCHAR(20) UNIQUE)")
		config := harness.OneListener(server.Addr) + fmt.Sprintf("sources: {ids: {segment: {step: 100000}}}\nrules: [{table: %s.ruled, column: id, source: ids}]\n", db)
		var cut int64
		for round := range rounds {
			p := replay.StartProxy(t, harness.Spec{Config: config, Plain: true})
			var doubtful []string // what was inserted last, without a reply
			var inserted atomic.Int64
			var mu sync.Mutex
			var all sync.WaitGroup
			for client := range clients {
				all.Go(func() {
					name, err := insertUntilClosed(server, p.Addr("a"), db, fmt.Sprintf("%d.%d", round, client), &inserted)
					assert.True(t, replay.CodeOf(err) == 0, "%s: row %s: %v, want a connection that closes without a word", server.Kind, name, err)
					mu.Lock()
					defer mu.Unlock()
					doubtful = append(doubtful, "'"+name+"'")
				})
			}
			assert.Must(t, p.Poll(t.Context(), func() bool { return inserted.Load() > 20*clients }))
			assert.Must(t, p.Signal(syscall.SIGTERM))
			all.Wait()
			assert.NoError(t, p.Wait(t.Context()), server.Kind, "idproxy ended")
			for _, table := range []string{"ruled", "free"} {
				cut += harness.Count(t, direct, "SELECT COUNT(*) FROM "+table+" WHERE a IN ("+strings.Join(doubtful, ",")+")")
			}
		}
		assert.True(t, cut <= 0, "%s: %d statements were cut whose rows are stored, of %d clients", server.Kind, cut, rounds*clients)
	}
}

// insertUntilClosed inserts rows until the connection is closed, and returns what the one without a
// reply inserts.
func insertUntilClosed(server *servers.Server, addr, db, name string, inserted *atomic.Int64) (last string, err error) {
	err = replay.Do(func() {
		c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword})
		defer c.Close()
		c.Must("USE " + db)
		table := [2]string{"ruled", "free"}[len(name)%2]
		for i := 0; ; i++ {
			last = fmt.Sprintf("%s.%d", name, i)
			c.Must("INSERT INTO " + table + " (a) VALUES ('" + last + "')")
			inserted.Add(1)
		}
	})
	return last, err
}

// pinned are sessions that a client cannot go on with elsewhere. Each statement brings a name, which
// is in a table when the statement ran: no transaction takes that back.
var pinned = []struct{ name, first, each string }{
	{"transaction", "BEGIN", "INSERT INTO kept (a) VALUES ('%s')"},
	{"ids in a transaction", "BEGIN", "INSERT INTO ruled (a) VALUES ('%s')"},
	{"temporary table", "CREATE TEMPORARY TABLE mine (a INT)", "INSERT INTO kept (a) VALUES ('%s')"},
	{"lock", "SELECT GET_LOCK(CONCAT('idproxy', CONNECTION_ID()), 0)", "INSERT INTO kept (a) VALUES ('%s')"},
}

// TestDrainPinned ends a proxy whose sessions are all pinned and busy, most of them in transactions
// that never end. Each client sees one error, and no statement ran without its answer.
func TestDrainPinned(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // most of it waits
	for _, server := range harness.Servers(t) {
		all.Go(func() { t.Run(server.Kind.String(), func(t *testing.T) { drainPinned(t, server) }) })
	}
	all.Wait()
}

func drainPinned(t *testing.T, server *servers.Server) {
	const clients = 24
	db := harness.Database(t, server)
	direct := harness.Open(t, server.Config(db), server.Addr)
	harness.MustExec(t, direct, "CREATE TABLE kept (a VARCHAR(40) UNIQUE) ENGINE=MyISAM")
	harness.MustExec(t, direct, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a VARCHAR(40) UNIQUE) ENGINE=MyISAM")
	p := replay.StartProxy(t, harness.Spec{Plain: true, Config: harness.OneListener(server.Addr) + "shutdown_timeout: 5s\ndrain: {delay: 500ms, spread: 1s}\n" +
		fmt.Sprintf("sources: {ids: {segment: {step: 100000}}}\nrules: [{table: %s.ruled, column: id, source: ids}]\n", db)})
	var begun, all sync.WaitGroup
	var mu sync.Mutex
	doubtful := []string{"''"} // and a name that no row has
	slow := 0                  // statements that took longer than the last second, in which sessions end
	begun.Add(clients)
	for client := range clients {
		all.Go(func() {
			name, took, err := insertPinned(server, p.Addr("a"), db, client, begun.Done)
			assert.True(t, err != nil && replay.CodeOf(err) == 0, "%s: %v, want a connection that closes without a word", name, err)
			mu.Lock()
			defer mu.Unlock()
			if took > time.Second {
				slow++
				return
			}
			doubtful = append(doubtful, "'"+name+"'")
		})
	}
	begun.Wait()
	assert.Must(t, p.Signal(syscall.SIGTERM))
	all.Wait()
	assert.NoError(t, p.Wait(t.Context()), "idproxy ended")
	assert.True(t, !strings.Contains(p.Log(), "cutting sessions") || slow != 0, "sessions were cut that could have ended between two statements")
	for _, table := range []string{"kept", "ruled"} {
		assert.LessOrEqual(t, "statements ran, and their clients do not know", harness.Count(t, direct, "SELECT COUNT(*) FROM "+table+" WHERE a IN ("+strings.Join(doubtful, ",")+")"), 0)
		n := harness.Count(t, direct, "SELECT COUNT(*) FROM "+table)
		assert.True(t, n >= clients, "%s has %d rows only", table, n)
	}
}

// insertPinned inserts rows until the connection is closed, and returns what the statement brought
// that has no answer, and how long it waited for one. begun is called when the first one had.
func insertPinned(server *servers.Server, addr, db string, client int, begun func()) (last string, took time.Duration, err error) {
	kind := pinned[client%len(pinned)]
	begun = sync.OnceFunc(begun)
	defer begun()
	var sent time.Time
	err = replay.Do(func() {
		c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword})
		defer c.Close()
		c.Must("USE "+db, kind.first)
		for i := 0; ; i++ {
			last, sent = fmt.Sprintf("%s %d.%d", kind.name, client, i), time.Now()
			c.Must(fmt.Sprintf(kind.each, last))
			begun()
			time.Sleep(10 * time.Millisecond)
		}
	})
	return last, time.Since(sent), err
}
