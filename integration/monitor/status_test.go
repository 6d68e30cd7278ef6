package monitor

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
	p := harness.Start(t, harness.Spec{Dir: dir, Config: harness.OneListener(server.Addr) + fmt.Sprintf(
		"admin: {listen: \"127.0.0.1:0\", socket: \"unix:admin.sock\", token: s3cret}\nsources: {ids: {segment: {}}}\nrules: [{table: %s.t, column: id, source: ids}]\n", db)})
	tcp := regexp.MustCompile(`msg=admin listen=(127\S+)`).FindStringSubmatch(p.Log())[1]
	pool := harness.Open(t, server.Config(db), p.Addr("a"))
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	harness.MustExec(t, pool, "INSERT INTO t (a) VALUES (1),(2),(3)")
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
	w := &watched{p, server, db, "http://" + tcp}
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
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.Log(), "closed by an operator"); time.Sleep(20 * time.Millisecond) {
		assert.MustTrue(t, !time.Now().After(deadline), "the log does not say who closed it")
	}
}
