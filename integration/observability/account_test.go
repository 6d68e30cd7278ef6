package observability

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestAccountDenied: a wrong password of the listener's account, with which no table gets a first id,
// sends clients away while there is nothing that goes on, and is a finding where there is.
func TestAccountDenied(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	root := harness.Open(t, server.Config(""), "")
	user := "asks_" + db
	t.Cleanup(func() { harness.MustExec(t, root, "DROP USER '"+user+"'@'%'") })
	harness.MustExec(t, root, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'first'", "GRANT SELECT ON "+db+".* TO '"+user+"'@'%'",
		"CREATE TABLE "+db+".orders (id BIGINT PRIMARY KEY, note VARCHAR(40))", "CREATE TABLE "+db+".events (id BIGINT PRIMARY KEY, note VARCHAR(40))")
	socket := "unix:" + t.TempDir() + "/admin.sock"
	w := adminOf(t, harness.StartProxy(t, fmt.Sprintf(`
listeners:
  - {name: a, listen: 127.0.0.1:0, upstream: %[1]q, account: {user: %[2]s, password: second}}
  - {name: b, listen: 127.0.0.1:0, upstream: %[1]q}
admin: {listen: 127.0.0.1:0, socket: %[3]q}
sources: {ids: {segment: {}}}
rules: [{table: "%[4]s.*", column: id, source: ids, listeners: [a]}]
`, server.Addr, user, socket, db)), server, db)
	conn := assert.Of(w.open(t, 1).Conn(t.Context())).Must(t)
	defer conn.Close()
	insert := func(table, want string) {
		t.Helper()
		_, err := conn.ExecContext(t.Context(), "INSERT INTO "+table+" (note) VALUES ('x')")
		assert.True(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "INSERT INTO %s: %v, want %q", table, err, want)
	}
	ready := func(path string, want int) (body string) {
		t.Helper()
		assert.Until(t, fmt.Sprintf("%s answers %d", path, want), func() bool {
			var status int
			status, body = w.get(t, path)
			return status == want
		})
		return body
	}
	contains := func(what, text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			assert.Contains(t, what, text, want)
		}
	}
	status := func(exit int, wants ...string) {
		t.Helper()
		out, err := harness.Command(t, "status", "--admin", socket)
		assert.True(t, (err != nil) == (exit != 0), "status: %v, want exit status %d", err, exit)
		contains("status", out, wants...)
	}
	cannot := fmt.Sprintf("account %s cannot ask server %s for MAX(id)", user, server.Addr)

	// Nothing has an id yet: each INSERT fails.
	contains("readyz", ready("/readyz?listener=a", 503), cannot, "Access denied")
	ready("/readyz?listener=b", 200)
	status(1, cannot)
	insert("orders", "1467")
	assert.True(t, w.metric(t, "ready", `listener="a"`) == 0 && w.metric(t, "account_up") == 0, "metrics say that it is ready, or that the account can ask")

	// The password is put right.
	harness.MustExec(t, root, "ALTER USER '"+user+"'@'%' IDENTIFIED BY 'second'")
	body := ready("/readyz", 200)
	assert.True(t, !strings.Contains(body, "findings"), "a finding is left of the time without the account: %s", body)
	insert("orders", "")
	assert.Until(t, "metrics say that all is well", func() bool {
		return w.metric(t, "account_up") == 1 && w.metric(t, "columns_unbegun", `listener="a"`) == 0
	})

	// It is wrong again: orders go on, and events get no first id.
	harness.MustExec(t, root, "ALTER USER '"+user+"'@'%' IDENTIFIED BY 'third'")
	assert.Until(t, "the account cannot ask", func() bool { return w.metric(t, "account_up") == 0 })
	insert("orders", "")
	insert("events", "1467")
	unbegun := "column " + db + ".events.id gets no first id from source ids: "
	assert.Until(t, "the finding is told", func() bool { return w.metric(t, "columns_unbegun", `listener="a"`) == 1 })
	contains("readyz", ready("/readyz?listener=a", 200), `"findings":`, cannot, unbegun)
	status(0, "FINDING", cannot, unbegun)
	assert.True(t, w.metric(t, "ready", `listener="a"`) == 1, "metrics say that it is not ready")
	t.Run("page", func(t *testing.T) {
		tab := browse(t)
		assert.Must(t, chromedp.Run(tab, chromedp.Navigate(w.admin+"/")))
		until(t, tab, shows("state", "ready")+"&&"+shows("problems", cannot)+"&&"+shows("problems", unbegun))
	})

	harness.MustExec(t, root, "ALTER USER '"+user+"'@'%' IDENTIFIED BY 'second'")
	assert.Until(t, "the account can ask", func() bool { return w.metric(t, "account_up") == 1 })
	insert("events", "")
	assert.Until(t, "no finding is left", func() bool { return !strings.Contains(w.answer(t, "/readyz"), "findings") })
}

// TestFolderNotWritable: a folder in which nothing can be written is found by check and by a process
// that serves, before an INSERT fails for it.
func TestFolderNotWritable(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	config := harness.OneListener(server.Addr) + fmt.Sprintf("admin: {listen: 127.0.0.1:0}\nstores: {local: {file: {dir: %q}}}\n"+
		"sources: {ids: {segment: {store: local}}}\nrules: [{table: %s.t, column: id, source: ids}]\n", kept, db)
	program := assert.Of(harness.Build()).Must(t)
	bound := program // whatever modes say, root may write
	if os.Geteuid() == 0 {
		bound = filepath.Join(dir, "bound")
		script := fmt.Sprintf("#!/bin/sh\nexec setpriv --bounding-set=-dac_override,-dac_read_search %q \"$@\"\n", program)
		assert.Must(t, os.WriteFile(bound, []byte(script), 0o700))
	}
	serve := func(test func(w *watched)) {
		t.Helper()
		p := assert.Of(harness.Launch(t.Context(), bound, harness.Spec{Config: config, Dir: t.TempDir()})).Must(t)
		defer func() { assert.NoError(t, p.Stop(time.Minute)) }()
		test(adminOf(t, p, server, db))
	}
	path := harness.WriteConfig(t, config)
	check := func(exit int, want string) {
		t.Helper()
		out, err := exec.Command(bound, "check", "--config", path).CombinedOutput()
		assert.True(t, (err != nil) == (exit != 0) && strings.Contains(string(out), want), "check: %v, want %q:\n%s", err, want, out)
	}
	serve(func(w *watched) {
		harness.MustExec(t, w.open(t, 1), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1)")
	})
	check(0, "fine")
	assert.Must(t, os.Chmod(kept, 0o500))
	defer os.Chmod(kept, 0o700) //nolint:errcheck // for the test's own end
	check(1, fmt.Sprintf("error: store local: user %d, who asks, cannot keep ids in folder %s", os.Geteuid(), kept))
	serve(func(w *watched) {
		var body string
		assert.Until(t, "it is not ready", func() bool {
			var status int
			status, body = w.get(t, "/readyz?listener=a")
			return status == 503
		})
		assert.True(t, strings.Contains(body, "store local does not answer") && strings.Contains(body, kept+": permission denied"), "readyz does not say which store, and why: %s", body)
		assert.Must(t, os.Chmod(kept, 0o700))
		assert.Until(t, "it is ready", func() bool { return w.status(t, "/readyz") == 200 })
		harness.MustExec(t, w.open(t, 1), "INSERT INTO t (a) VALUES (2)")
	})
}
