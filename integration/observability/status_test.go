package observability

import (
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

// TestStatus asks a running idproxy by the command, over the unix socket and over TCP with a token,
// and closes a session.
func TestStatus(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	w := adminOf(t, harness.Start(t, harness.Spec{Dir: dir, Config: harness.OneListener(server.Addr) + harness.OneRule(db+".t") +
		"admin: {listen: \"127.0.0.1:0\", socket: \"unix:admin.sock\", token: s3cret}\n"}), server, db)
	p, tcp := w.Proxy, strings.TrimPrefix(w.admin, "http://")
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO t (a) VALUES (1),(2),(3)")
	program := assert.Of(harness.Build()).Must(t)
	status := func(env string, args ...string) (string, error) {
		t.Helper()
		c := exec.Command(program, append([]string{"status"}, args...)...)
		c.Dir, c.Env = dir, append(c.Environ(), env)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	for _, tt := range []struct {
		env, want string
		args      []string
		fails     bool
	}{
		{want: "ids", args: []string{"--config", p.ConfigPath}},
		{want: "997 ids", args: []string{"--admin", "unix:" + filepath.Join(dir, "admin.sock")}},
		{want: "997 ids", args: []string{"--admin", tcp}, env: "IDPROXY_ADMIN_TOKEN=s3cret"},
		{want: `"ids_issued": 3`, args: []string{"--admin", tcp, "--json"}, env: "IDPROXY_ADMIN_TOKEN=s3cret"},
		{want: "the token is missing or wrong", args: []string{"--admin", tcp}, fails: true},
		{want: "is idproxy running", args: []string{"--admin", "127.0.0.1:1"}, fails: true},
	} {
		out, err := status(tt.env, tt.args...)
		assert.True(t, (err != nil) == tt.fails && strings.Contains(out, tt.want), "%v: %v, want %q:\n%s", tt.args, err, tt.want, out)
	}

	conn := assert.Of(pool.Conn(t.Context())).Must(t)
	defer conn.Close()
	var thread uint64
	assert.Must(t, conn.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&thread))
	request := func(method, path string) (int, string) {
		t.Helper()
		r := assert.Of(http.NewRequestWithContext(t.Context(), method, w.admin+path, nil)).Must(t)
		r.Header.Set("Authorization", "Bearer s3cret")
		return answer(t, r)
	}
	_, body := request("GET", "/api/v1/sessions")
	found := regexp.MustCompile(fmt.Sprintf(`"id":(\d+),"listener":"a","client":"127[^"]+","user":"app","thread":%d,"state":"idle"`, thread)).FindStringSubmatch(body)
	assert.MustTrue(t, found != nil, "no session of thread %d: %s", thread, body)
	code, body := request("DELETE", "/api/v1/sessions/"+found[1])
	assert.True(t, code == http.StatusNoContent, "close: %d %s", code, body)
	assert.Fails(t, "the closed session answers", conn.PingContext(t.Context()), "")
	assert.Until(t, "the log says who closed it", func() bool { return strings.Contains(p.Log(), "closed by an operator") })
}

// TestDrainByCommand has a running idproxy let its sessions go, takes that back, and waits for it.
func TestDrainByCommand(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	socket := "unix:" + t.TempDir() + "/admin.sock"
	w := adminOf(t, harness.StartProxy(t, harness.OneListener(server.Addr)+fmt.Sprintf("admin: {listen: %q, socket: %q}\n", "127.0.0.1:0", socket)), server, db)
	command := func(want string, args ...string) {
		t.Helper()
		out, err := harness.Command(t, args...)
		assert.True(t, (err != nil) == (want != "") && strings.Contains(out, want), "idproxy %v: %v, want %q:\n%s", args, err, want, out)
	}
	phase := func(want string, status, forHAProxy int) {
		t.Helper()
		assert.Until(t, "it is "+want, func() bool { return w.state(t).Phase == want }, func() string { return "it is " + w.state(t).Phase })
		got, body := w.get(t, "/readyz")
		assert.True(t, got == status, "%s: /readyz answers %d, want %d: %s", want, got, status, body)
		assert.Equal(t, want+": /readyz?draining=404 answers", w.status(t, "/readyz?listener=a&draining=404"), forHAProxy)
		assert.True(t, w.metric(t, "drain_phase", `phase="`+want+`"`) == 1 && w.metric(t, "drain_phase") == 1, "%s: idproxy_drain_phase says something else", want)
		assert.Equal(t, want+": idproxy_draining says that it drains", w.metric(t, "draining") == 1, want != "serving")
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
	_, err := w.open(t, 1).ExecContext(t.Context(), "DO 1")
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

// TestIdsEndByAllProcesses: a process that takes few numbers of a series says when they end by what
// another one takes, too.
func TestIdsEndByAllProcesses(t *testing.T) {
	server := harness.MariaDB(t)
	db, kept := harness.Database(t, server), harness.Database(t, server)
	const last, others = 1_000_000_000, 4000
	config := fmt.Sprintf("stores: {main: {mysql: {dsn: %q}}}\nsources: {ids: {segment: {store: main, step: 10, last: %d}}}\n"+
		"rules: [{table: %s.t, column: id, source: ids}]\n", harness.StoreDSN(server, kept), last, db)
	few, many := start(t, server, db, config), start(t, server, db, config)
	one, other := few.open(t, 1), many.open(t, 1)
	harness.MustExec(t, one, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	began := time.Now()
	harness.MustExec(t, one, "INSERT INTO t (a) VALUES (1)")
	harness.MustExec(t, other, "INSERT INTO t (a) VALUES (1)"+strings.Repeat(",(1)", others-1))
	assert.Until(t, "the ids end by what all take", func() bool {
		harness.MustExec(t, one, "INSERT INTO t (a) VALUES (1)") // it fetches a range behind those of the other one
		g := few.state(t).Sources[0].Segment
		if g.YearsLeft == nil {
			return false
		}
		took := max(time.Since(began), 10*time.Second)
		return last/(*g.YearsLeft*365.25*86400)*took.Seconds() >= others
	})
}
