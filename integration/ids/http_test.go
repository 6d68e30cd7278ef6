package ids

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
)

var httpAddress = regexp.MustCompile(`msg="ids over http" listen=(\S+)`)

// httpOf is the address at which a proxy answers over HTTP.
func httpOf(t *testing.T, p *harness.Proxy) string {
	t.Helper()
	return logged(t, p, httpAddress)
}

// over sends a request to a proxy and returns what it answers with status 200.
func over(t *testing.T, method, url, body string) string {
	t.Helper()
	status, text, err := answered(t, method, url, body, "0123456789abcdef")
	assert.True(t, err == nil && status == http.StatusOK, "%s %s: %d %s, %v", method, url, status, text, err)
	return text
}

// answered is what a request with a token is answered.
func answered(t *testing.T, method, url, body, token string) (status int, text string, err error) {
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close() //nolint:errcheck // it is read to the end
	read, err := io.ReadAll(res.Body)
	return res.StatusCode, string(read), err
}

// ledger counts how often ids came.
type ledger struct {
	mu   sync.Mutex
	seen map[uint64]int
}

// note notes the ids of a range, both ends included.
func (l *ledger) note(first, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := first; id <= last; id++ {
		l.seen[id]++
	}
}

// twice returns how many ids came more than once.
func (l *ledger) twice() (n int) {
	for _, times := range l.seen {
		if times > 1 {
			n++
		}
	}
	return n
}

func number(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	assert.NoError(t, err)
	return n
}

// ways are those in which programs ask for ids of order_id over HTTP.
var ways = []func(t *testing.T, addr string, l *ledger){
	func(t *testing.T, addr string, l *ledger) {
		id := number(t, over(t, "GET", "http://"+addr+"/api/segment/get/order_id", ""))
		l.note(id, id)
	},
	func(t *testing.T, addr string, l *ledger) {
		var a struct {
			Ranges []struct{ First, Last string }
		}
		if err := json.Unmarshal([]byte(over(t, "POST", "http://"+addr+"/v1/ids", `{"key":"order_id","n":17}`)), &a); err != nil || len(a.Ranges) == 0 {
			t.Errorf("%+v, %v", a, err)
			return
		}
		for _, r := range a.Ranges {
			l.note(number(t, r.First), number(t, r.Last))
		}
	},
	func(t *testing.T, addr string, l *ledger) {
		for _, text := range strings.Split(over(t, "GET", "http://"+addr+"/tinyid/id/nextIdSimple?batchSize=5&bizType=order_id", ""), ",") {
			id := number(t, text)
			l.note(id, id)
		}
	},
	func(t *testing.T, addr string, l *ledger) { // a client of tinyid, which uses all of a segment
		f := strings.Split(over(t, "POST", "http://"+addr+"/tinyid/id/nextSegmentIdSimple?token=0123456789abcdef&bizType=order_id", ""), ",")
		if len(f) != 5 || f[3] != "1" || f[4] != "0" {
			t.Errorf("a segment: %q", f)
			return
		}
		l.note(number(t, f[0])+1, number(t, f[2]))
	},
}

// rounds is how often each asks.
const rounds = 25

// TestIDsOverHTTP has programs ask two proxies over HTTP in every way while INSERTs go through both: of
// one series, which is kept in MariaDB, no id comes twice. The control is two proxies that each keep the
// series in a folder of their own: ids come twice, and are found.
func TestIDsOverHTTP(t *testing.T) {
	s := harness.MariaDB(t)
	for _, shared := range []bool{true, false} {
		store := harness.Database(t, s)
		name, direct := harness.Tables(t, s, "CREATE TABLE t (id BIGINT NOT NULL, a INT, KEY (id))") // which takes an id twice
		kept, step := "file: {dir: ids}", 5000                                                       // each range is written to the disk
		if shared {
			kept, step = fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(s, store)), 50
		}
		config := harness.OneListener(s.Addr) + fmt.Sprintf(`
stores:    {main: {%s}}
sources:   {order_id: {segment: {store: main, start: 5000, step: %d, step_policy: fixed}}}
limits:    {id_wait: 1m}
rules:     [{table: "*.t", column: id, source: order_id}]
ids: {http: {listen: "127.0.0.1:0", tinyid_step: 30, users: {app: {token: 0123456789abcdef}}}}
`, kept, step)
		l := &ledger{seen: map[uint64]int{}}
		var wg sync.WaitGroup
		proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
		for _, p := range proxies { // before any program asks: a series begins above all rows
			harness.MustExec(t, harness.Open(t, s.Config(name), p.Addr("a")), "INSERT INTO t (a) VALUES (0)")
		}
		for _, p := range proxies {
			db, addr := harness.Open(t, s.Config(name), p.Addr("a")), httpOf(t, p)
			for _, way := range ways {
				wg.Go(func() {
					for range rounds {
						way(t, addr, l)
					}
				})
			}
			wg.Go(func() { insertMany(t, db) })
		}
		wg.Wait()
		noteRows(t, direct, l)
		n, want := l.twice(), 2*(rounds*(1+17+5+30+2)+1)
		assert.True(t, (n == 0) == shared, "one store %v: %d of %d ids came twice", shared, n, len(l.seen))
		assert.True(t, !shared || len(l.seen) == want, "%d ids, want %d", len(l.seen), want)
	}
}

func insertMany(t *testing.T, db *sql.DB) {
	for range rounds {
		assert.Of(db.Exec("INSERT INTO t (a) VALUES (1), (2)")).NoError(t, "INSERT")
	}
}

// noteRows notes the ids of rows.
func noteRows(t *testing.T, db *sql.DB, l *ledger) {
	t.Helper()
	for _, id := range rowIDs(t, db, "SELECT id FROM t") {
		l.note(uint64(id), uint64(id))
	}
}

// rowIDs returns the ids that a query selects.
func rowIDs(t *testing.T, db *sql.DB, query string) (ids []int64) {
	t.Helper()
	rows := assert.Of(db.Query(query)).Must(t)
	defer rows.Close() //nolint:errcheck // Err below says it
	for rows.Next() {
		var id int64
		assert.Must(t, rows.Scan(&id))
		ids = append(ids, id)
	}
	assert.Must(t, rows.Err())
	return ids
}

var (
	snowflakeText = regexp.MustCompile(`[0-9]{15,19}`)
	uuidText      = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// normal is an answer without what is different each time.
func normal(text string) string {
	return strings.TrimSpace(snowflakeText.ReplaceAllString(uuidText.ReplaceAllString(text, "UUID"), "SNOWFLAKE"))
}

// TestHTTPExamples runs the examples of docs/id-sources.md with curl, in their order, against a proxy that
// has the configuration of that page.
func TestHTTPExamples(t *testing.T) {
	page := assert.Of(os.ReadFile("../../docs/id-sources.md")).Must(t)
	_, section, _ := strings.Cut(string(page), "\n## Ids over HTTP\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var config, commands, answers []string
	for line := range strings.Lines(section) {
		text, indented := strings.CutPrefix(line, "    ")
		command, is := strings.CutPrefix(text, "$ ")
		switch {
		case indented && is:
			commands, answers = append(commands, command), append(answers, "")
		case indented && len(commands) > 0:
			answers[len(answers)-1] += text
		case indented:
			config = append(config, text)
		}
	}
	s := harness.MariaDB(t)
	text := strings.NewReplacer("127.0.0.1:3306", s.Addr, "127.0.0.1:3307", "127.0.0.1:0", "127.0.0.1:9308", "127.0.0.1:0").Replace(strings.Join(config, ""))
	dir := t.TempDir()
	env := []string{"BILLING_TOKEN=" + strings.Repeat("b", 16), "REPORTS_TOKEN=" + strings.Repeat("r", 16)}
	program := assert.Of(harness.Build()).Must(t)
	path := filepath.Join(dir, "idproxy.yaml")
	assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
	begin := exec.CommandContext(t.Context(), program, "source", "set", "order_id", "5001", "--config", path)
	begin.Env = append(os.Environ(), env...)
	out, err := begin.CombinedOutput()
	assert.Must(t, err, string(out))
	addr := httpOf(t, harness.Start(t, harness.Spec{Config: text, Env: env, Dir: dir}))
	assert.MustTrue(t, len(commands) >= 10, "only %d examples were found", len(commands))
	for i, command := range commands {
		curl := exec.CommandContext(t.Context(), "bash", "-c", strings.ReplaceAll(command, "127.0.0.1:9308", addr))
		curl.Env = append(os.Environ(), env...)
		out, err := curl.CombinedOutput()
		assert.NoError(t, err, command)
		assert.Equal(t, command, normal(string(out)), normal(answers[i]))
	}
}

// TestUsersInStore adds, changes and removes users with the command: two proxies know them over both
// protocols, without a reload. A key that one of them creates is soon served by the other.
func TestUsersInStore(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mysql", "etcd"} {
		t.Run(kind, func(t *testing.T) {
			s := harness.MariaDB(t)
			store := fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(s, harness.Database(t, s)))
			if kind == "etcd" {
				e := assert.Of(servers.StartEtcd(t.Context())).Must(t)
				t.Cleanup(func() { assert.NoError(t, e.Stop()) })
				store = fmt.Sprintf("etcd: {endpoints: [%q]}", e.Addr)
			}
			usersInStore(t, harness.OneListener(s.Addr)+fmt.Sprintf(`
stores:  {main: {%s}}
sources: {order_id: {segment: {store: main}}, token: {uuidv7: {}}}
ids:
  users_in: main
  redis: {listen: "127.0.0.1:0", create_in: main, users: {own: {password: mine}}}
  http:  {listen: "127.0.0.1:0"}
`, store))
		})
	}
}

func usersInStore(t *testing.T, config string) {
	path := harness.WriteConfig(t, config)
	idproxy := func(args ...string) (out string, err error) {
		assert.Until(t, "a command that reaches its store", func() bool { // a busy machine may take longer than it waits
			out, err = harness.Command(t, append(args, "--config", path)...)
			return !strings.Contains(out, "code = Unavailable") && !strings.Contains(out, "deadline exceeded")
		})
		return out, err
	}
	add := func(args ...string) (secret string) {
		t.Helper()
		out, err := idproxy(append([]string{"user", "add"}, args...)...)
		assert.MustTrue(t, err == nil && len(out) >= 32, "%v: %s", err, out)
		return out[:32]
	}
	proxies := []*harness.Proxy{harness.StartProxy(t, config), harness.StartProxy(t, config)}
	overHTTP := func(p *harness.Proxy, token string) (status int) {
		t.Helper()
		m := httpAddress.FindStringSubmatch(p.Log())
		if m == nil {
			return 0
		}
		status, _, err := answered(t, http.MethodPost, "http://"+m[1]+"/v1/ids", `{"key":"token"}`, token)
		assert.Must(t, err)
		return status
	}
	asks := func(ctx context.Context, p *harness.Proxy, name, secret string) error {
		return redisTo(t, p, name, secret).Do(ctx, "IDS.NEXT", "token").Err()
	}
	assert.NoError(t, asks(t.Context(), proxies[0], "own", "mine"), "a user of the configuration")
	assert.Fails(t, "nobody", asks(t.Context(), proxies[0], "", ""), "NOAUTH")
	ann := add("ann", "--sources", "token,app:*", "--create")
	for _, p := range proxies {
		assert.Until(t, "ann over Redis", func() bool { return asks(t.Context(), p, "ann", ann) == nil })
		assert.Equal(t, "ann over HTTP", overHTTP(p, ann), http.StatusOK)
		assert.Fails(t, "ann with a wrong password", asks(t.Context(), p, "ann", "wrong"), "")
		assert.Fails(t, "ann asks for what she may not", redisTo(t, p, "ann", ann).Incr(t.Context(), "order_id").Err(), "NOPERM")
	}
	out, err := idproxy("user", "list")
	assert.True(t, err == nil && strings.Contains(out, "ann   -     -     true    false  token, app:*") && !strings.Contains(out, ann), "%v: %s", err, out)
	out, err = idproxy("user", "add", "ann")
	assert.True(t, err != nil && strings.Contains(out, "--replace"), "ann twice: %s", out)

	// A key that she creates on one proxy is soon served by the other.
	first, second := redisTo(t, proxies[0], "ann", ann), redisTo(t, proxies[1], "ann", ann)
	assert.Must(t, first.Do(t.Context(), "IDS.CREATE", "app:new", 500, 20).Err())
	assert.Of(first.Incr(t.Context(), "app:new").Result()).Equal(t, `first.Incr("app:new").Result()`, 500)
	assert.Until(t, "a key of the other proxy, whose range begins above the 20 of the first", func() bool {
		id, err := second.Incr(t.Context(), "app:new").Result()
		assert.True(t, err != nil || id == 520, "id %d, want 520", id)
		return err == nil
	})

	// Connections that are open follow.
	again := add("ann", "--replace")
	for _, c := range []*redis.Client{first, second} {
		assert.Until(t, "the old password is refused", func() bool { return c.Incr(t.Context(), "app:new").Err() != nil })
	}
	for _, p := range proxies {
		assert.Until(t, "the new password", func() bool { return asks(t.Context(), p, "ann", again) == nil })
		assert.Equal(t, "the old token", overHTTP(p, ann), http.StatusUnauthorized)
	}
	out, err = idproxy("user", "remove", "ann")
	assert.Must(t, err, out)
	for _, p := range proxies {
		assert.Until(t, "she is gone", func() bool { return overHTTP(p, again) == http.StatusUnauthorized })
	}
	out, err = idproxy("user", "remove", "ann")
	assert.True(t, err != nil, "removed twice: %s", out)
}
