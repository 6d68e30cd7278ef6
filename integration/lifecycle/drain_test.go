package lifecycle

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

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
		for _, table := range []string{"ruled (id BIGINT PRIMARY KEY, a VARCHAR(20) UNIQUE)", "free (a VARCHAR(20) UNIQUE)"} {
			assert.Of(direct.ExecContext(t.Context(), "CREATE TABLE "+table)).Must(t)
		}
		config := harness.OneListener(server.Addr) + fmt.Sprintf("sources: {ids: {segment: {step: 100000}}}\nrules: [{table: %s.ruled, column: id, source: ids}]\n", db)
		cut := 0
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
			if err := p.Wait(t.Context()); err != nil {
				t.Errorf("%s: idproxy ended with %v, want 0", server.Kind, err)
			}
			for _, table := range []string{"ruled", "free"} {
				var n int
				assert.Must(t, direct.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE a IN ("+strings.Join(doubtful, ",")+")").Scan(&n))
				cut += n
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
