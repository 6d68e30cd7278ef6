package monitor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestDrainByCommand has a running idproxy let its sessions go, takes that back, and waits for it.
func TestDrainByCommand(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	socket := "unix:" + t.TempDir() + "/admin.sock"
	p := harness.StartProxy(t, harness.OneListener(server.Addr)+fmt.Sprintf("admin: {listen: %q, socket: %q}\n", "127.0.0.1:0", socket))
	w := adminOf(t, p, server, db)
	program, err := harness.Build()
	assert.Must(t, err)
	command := func(want string, args ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
		assert.True(t, (err != nil) == (want != "") && strings.Contains(string(out), want), "idproxy %v: %v, want %q:\n%s", args, err, want, out)
	}
	phase := func(want string, status, forHAProxy int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); w.state(t).Phase != want; time.Sleep(20 * time.Millisecond) {
			assert.MustTrue(t, !time.Now().After(deadline), "it is %q, want %q", w.state(t).Phase, want)
		}
		got, body := w.get(t, "/readyz")
		assert.True(t, got == status, "%s: /readyz answers %d, want %d: %s", want, got, status, body)
		got, _ = w.get(t, "/readyz?listener=a&draining=404")
		assert.True(t, got == forHAProxy, "%s: /readyz?draining=404 answers %d, want %d", want, got, forHAProxy)
		assert.True(t, w.metric(t, "drain_phase", `phase="`+want+`"`) == 1 && w.metric(t, "drain_phase") == 1, "%s: idproxy_drain_phase says something else", want)
		if got := w.metric(t, "draining"); (got == 1) != (want != "serving") {
			t.Errorf("%s: idproxy_draining is %v", want, got)
		}
	}
	phase("serving", 200, 200)
	pool := w.open(t, 2)
	conn := assert.Of(pool.Conn(t.Context())).Must(t)
	defer conn.Close()
	run := func(query string) {
		t.Helper()
		assert.Of(conn.ExecContext(t.Context(), query)).Must(t)
	}
	run("BEGIN")
	command("give it socket: unix:/run/idproxy/admin.sock", "drain", "--admin", w.admin)
	command("a token, which commands with --admin take from IDPROXY_ADMIN_TOKEN; then restart idproxy", "reload", "--admin", w.admin)
	command("", "drain", "--admin", socket)
	phase("closing", 503, 404)
	_, err = w.open(t, 1).ExecContext(t.Context(), "DO 1")
	harness.WantError(t, err, 1053, "takes no new sessions")
	run("DO 1")
	command("", "resume", "--admin", socket)
	phase("serving", 200, 200)
	run("COMMIT")
	run("DO 1")
	harness.MustExec(t, w.open(t, 1), "DO 1")
	command("", "drain", "--wait", "--admin", socket)
	phase("drained", 503, 404)
	assert.Fails(t, "a session goes on in a proxy that has none", conn.PingContext(t.Context()), "")
	command("", "resume", "--admin", socket)
	harness.MustExec(t, w.open(t, 1), "DO 1")
}
