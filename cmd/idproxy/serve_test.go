package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

func TestServeNamesPortInUse(t *testing.T) {
	taken := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer taken.Close()
	addr := taken.Addr().String()
	path := harness.WriteConfig(t, fmt.Sprintf("listeners: [{name: free, listen: 127.0.0.1:0, upstream: 127.0.0.1:1}, {name: a, listen: %q, upstream: 127.0.0.1:1}]\n", addr))
	got := runWith(t, "", "serve", "--config", path)
	assert.True(t, got.status == statusFinding && got.out == "", "status %d, standard output %q", got.status, got.out)
	holds(t, "standard error", got.err, "idproxy: listener a: listen tcp "+addr+": bind: address already in use\n")
	assert.True(t, !strings.Contains(got.err, "msg=listening"), "it says that it listens: %q", got.err)
}

func TestServeStopsInGoodOrder(t *testing.T) {
	log := serveUntilListening(t, harness.WriteConfig(t, idle))()
	holds(t, "the log", log, "msg=listening listen=127.0.0.1:")
	holds(t, "the log", log, "msg=stopped")
}

// TestServeTakesLeave: a server has lost nobody when an idproxy has ended that asked it.
func TestServeTakesLeave(t *testing.T) {
	harness.EachServer(t, func(t *testing.T, server *servers.Server) {
		schema := harness.Database(t, server)
		db := harness.Root(t, server, schema)
		harness.MustExec(t, db, "CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE USER guest@'%' IDENTIFIED BY 'guest'", "GRANT SELECT ON "+schema+".* TO guest@'%'",
			"CREATE USER caller@'%' IDENTIFIED BY 'caller'", "GRANT SELECT, INSERT ON "+schema+".* TO caller@'%'")
		t.Cleanup(func() { harness.MustExec(t, db, "DROP USER guest@'%', caller@'%'") })
		before := harness.Lost(t, db, "guest")
		p := harness.StartProxy(t, fmt.Sprintf(`listeners: [{name: a, listen: 127.0.0.1:0, upstream: %q, account: {user: guest, password: guest}}]
admin: {socket: unix:admin.sock}
sources: {ids: {segment: {}}}
rules: [{table: %s.t, column: id, source: ids}]
`, server.Addr, schema))
		as := server.Config(schema)
		as.User, as.Passwd = "caller", "caller"
		caller := harness.Open(t, as, p.Addr("a"))
		harness.MustExec(t, caller, "INSERT INTO t (a) VALUES (1)")
		assert.NoError(t, caller.Close())
		harness.Lost(t, db, "caller") // it waits until the session is over, which a stop would cut
		assert.NoError(t, p.Stop(time.Minute))
		assert.Equal(t, "the server has lost", harness.Lost(t, db, "guest")-before, 0)
	})
}

func TestServeRefusesBadFile(t *testing.T) {
	path := harness.WriteConfig(t, malformed)
	got := runWith(t, "", "serve", "--config", path)
	assert.True(t, got.status == statusFinding && got.out == "", "got %+v", got)
	for _, line := range []string{":2:", ":4:", ":6:", ":7:"} {
		holds(t, "standard error", got.err, path+line)
	}
}

// serveUntilListening runs serve and returns, once it listens, what stops it and returns its log.
func serveUntilListening(t *testing.T, path string) (stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := harness.WatchFor("msg=listening")
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"serve", "--config", path}, streams{nil, io.Discard, log}) }()
	select {
	case <-log.Seen:
	case s := <-status:
		t.Fatalf("it ended with status %d: %s", s, log)
	case <-time.After(2 * time.Minute):
		t.Fatalf("it does not listen: %s", log)
	}
	return sync.OnceValue(func() string {
		cancel()
		assert.Equal(t, "it ended with status", <-status, statusFine)
		return log.String()
	})
}
