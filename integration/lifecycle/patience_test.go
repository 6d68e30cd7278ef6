package lifecycle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/integration/wireclient"
)

// TestPoolBehindADeadStore has eight clients insert again and again while the store is dead. If
// each waited for its ids, the INSERTs of this test would take minutes. Once the store is back, all
// of them are served.
func TestPoolBehindADeadStore(t *testing.T) {
	t.Parallel()
	const clients, failures = 8, 1000
	server, store := harness.MariaDB(t), harness.StartServer(t, servers.MariaDB, servers.Options{})
	db, storeDB := harness.Database(t, server), harness.Database(t, store)
	direct := wireclient.Open(t, server.Addr, db)
	direct.Must(t, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	proxy := harness.StartProxy(t, fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores: {main: {mysql: {dsn: %q}}}
sources: {ids: {segment: {store: main, step: 10, max_step: 10}}}
rules: [{table: %s.t, column: id, source: ids}]
limits: {id_wait: 5s}
`, server.Addr, store.DSN(storeDB), db))
	first := wireclient.Open(t, proxy.Addr("a"), db)
	first.Must(t, "INSERT INTO t (a) VALUES (1)")
	assert.Must(t, store.Kill())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var failed, served atomic.Int64
	var all sync.WaitGroup
	for range clients {
		s := wireclient.Open(t, proxy.Addr("a"), db)
		all.Go(func() {
			for ctx.Err() == nil {
				replies, err := s.Query("INSERT INTO t (a) VALUES (2)")
				switch {
				case err != nil:
					t.Error(err)
					return
				case replies[0].Err == nil && failed.Load() >= failures:
					served.Add(1)
					return
				case replies[0].Err == nil:
				case replies[0].Err.Code != mysql.ER_AUTOINC_READ_FAILED:
					t.Error(replies[0].Err)
					return
				default:
					failed.Add(1)
				}
			}
		})
	}
	if err := proxy.Poll(ctx, func() bool { return failed.Load() >= failures }); err != nil {
		t.Errorf("%d INSERTs failed in five minutes: they wait for one another", failed.Load())
	}
	assert.NoError(t, store.Start(t.Context()))
	all.Wait()
	assert.True(t, served.Load() == clients, "%d of %d clients were served when the store was back", served.Load(), clients)
}
