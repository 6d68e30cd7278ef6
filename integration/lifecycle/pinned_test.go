package lifecycle

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/replay"
	"idproxy/integration/servers"
)

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
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		t.Parallel()
		drainPinned(t, server)
	})
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
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("idproxy ended with %v, want 0", err)
	}
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
			time.Sleep(5 * time.Millisecond) // what else runs needs the processors
			last, sent = fmt.Sprintf("%s %d.%d", kind.name, client, i), time.Now()
			c.Must(fmt.Sprintf(kind.each, last))
			begun()
			time.Sleep(2 * time.Millisecond)
		}
	})
	return last, time.Since(sent), err
}
