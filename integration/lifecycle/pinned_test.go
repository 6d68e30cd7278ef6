package lifecycle

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

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
	for _, server := range harness.Servers(t) {
		t.Run(server.Kind.String(), func(t *testing.T) {
			t.Parallel()
			drainPinned(t, server)
		})
	}
}

func drainPinned(t *testing.T, server *servers.Server) {
	const clients = 24
	db := harness.Database(t, server)
	direct := harness.Open(t, server.Config(db), server.Addr)
	harness.MustExec(t, direct, "CREATE TABLE kept (a VARCHAR(40) UNIQUE) ENGINE=MyISAM")
	harness.MustExec(t, direct, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a VARCHAR(40) UNIQUE) ENGINE=MyISAM")
	p := replay.StartProxy(t, harness.Spec{Plain: true, Config: harness.OneListener(server.Addr) + "shutdown_timeout: 10s\ndrain: {delay: 500ms, spread: 1s}\n" +
		fmt.Sprintf("sources: {ids: {segment: {step: 100000}}}\nrules: [{table: %s.ruled, column: id, source: ids}]\n", db)})
	var begun, all sync.WaitGroup
	var mu sync.Mutex
	var doubtful []string
	begun.Add(clients)
	for client := range clients {
		all.Go(func() {
			name, err := insertPinned(server, p.Addr("a"), db, client, begun.Done)
			if err == nil || replay.CodeOf(err) != 0 {
				t.Errorf("%s: %v, want a connection that closes without a word", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			doubtful = append(doubtful, "'"+name+"'")
		})
	}
	begun.Wait()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("idproxy ended with %v, want 0", err)
	}
	if strings.Contains(p.Log(), "cutting sessions") {
		t.Error("sessions were cut that could have ended between two statements")
	}
	for _, table := range []string{"kept", "ruled"} {
		if n := harness.Count(t, direct, "SELECT COUNT(*) FROM "+table+" WHERE a IN ("+strings.Join(doubtful, ",")+")"); n > 0 {
			t.Errorf("%d statements ran, and their clients do not know", n)
		}
		if n := harness.Count(t, direct, "SELECT COUNT(*) FROM "+table); n < clients {
			t.Errorf("%s has %d rows only", table, n)
		}
	}
}

// insertPinned inserts rows until the connection is closed, and returns what the statement brought
// that has no answer. begun is called when the first one had.
func insertPinned(server *servers.Server, addr, db string, client int, begun func()) (last string, err error) {
	kind := pinned[client%len(pinned)]
	begun = sync.OnceFunc(begun)
	defer begun()
	err = replay.Do(func() {
		c := replay.Login(replay.Config{Addr: addr, User: servers.AppUser, Password: servers.AppPassword})
		defer c.Close()
		c.Must("USE "+db, kind.first)
		for i := 0; ; i++ {
			last = fmt.Sprintf("%s %d.%d", kind.name, client, i)
			c.Must(fmt.Sprintf(kind.each, last))
			begun()
			time.Sleep(2 * time.Millisecond)
		}
	})
	return last, err
}
