package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/monitor"
)

// TestNumberEvents has a proxy change its worker number twice: Redis, which keeps the pool, has its
// clock set back, and then the process stands still for longer than its lease. Each is an event
// with its cause, and neither is there before.
func TestNumberEvents(t *testing.T) {
	clock := assert.Of(servers.NewClock()).Must(t)
	redis := assert.Of(servers.StartRedisClock(t.Context(), clock)).Must(t)
	t.Cleanup(func() {
		assert.NoError(t, redis.Stop())
		assert.NoError(t, clock.Close())
	})
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	config := pool("ids", redis.Addr, "{heartbeat: 500ms, reclaim: 10s}, clock_back: {then: swap}")
	addWorkers(t, server.Addr, config, 6)
	clock.Ahead(2 * time.Hour) // the pool has not been made just now
	w := start(t, server, db, config+fmt.Sprintf("rules: [{table: %s.t, column: id, source: ids}]\n", db))
	conn := w.open(t, 1)
	harness.MustExec(t, conn, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	w.untilHeld(t)
	harness.MustExec(t, conn, "INSERT INTO t (a) VALUES (1)")
	seen := func(text, reason string) bool {
		t.Helper()
		var all []monitor.Event
		if _, body := w.get(t, "/api/v1/events"); json.Unmarshal([]byte(body), &all) != nil {
			t.Fatalf("no events: %s", body)
		}
		return slices.ContainsFunc(all, func(e monitor.Event) bool {
			return e.Text == text && strings.Contains(e.Facts["reason"], reason) && e.Facts["source"] == "ids" && e.Facts["worker"] != ""
		})
	}
	for _, change := range []struct {
		text, reason string
		plant        func()
		again        func() // what clients do meanwhile
	}{
		{
			"worker number swapped", "the clock of the pool went back, the next id would have to wait for ",
			func() { clock.Ahead(time.Hour) },
			func() { _, _ = conn.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)") }, // it fails until another number is there
		},
		{
			"lease of the worker number ended, it is asked for again", "the lease was not renewed in time",
			func() {
				for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
					assert.Must(t, w.Signal(s))
					if s == syscall.SIGSTOP {
						time.Sleep(5 * time.Second) // the lease lasts for (10 - 0.1 - 3 - 0.5) / 2 s
					}
				}
			},
			func() {},
		},
	} {
		assert.True(t, !seen(change.text, ""), "%q is an event before it", change.text)
		change.plant()
		for deadline := time.Now().Add(faultTime); !seen(change.text, change.reason); time.Sleep(100 * time.Millisecond) {
			if change.again(); time.Now().After(deadline) {
				t.Fatalf("no event %q with %q:\n%s", change.text, change.reason, w.Log())
			}
		}
		w.untilHeld(t)
	}
}
