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
	"time"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
)

var httpAddress = regexp.MustCompile(`msg="ids over http" listen=(\S+)`)

// httpOf is the address at which a proxy answers over HTTP.
func httpOf(t *testing.T, p *harness.Proxy) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var m []string
	assert.Must(t, p.Poll(ctx, func() bool {
		m = httpAddress.FindStringSubmatch(p.Log())
		return m != nil
	}), "no address of ids over HTTP in the log")
	return m[1]
}

// over sends a request to a proxy and returns what it answers with status 200.
func over(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return ""
	}
	r.Header.Set("Authorization", "Bearer 0123456789abcdef")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer res.Body.Close() //nolint:errcheck // it is read to the end
	text, err := io.ReadAll(res.Body)
	assert.True(t, err == nil && res.StatusCode == http.StatusOK, "%s %s: %d %s, %v", method, url, res.StatusCode, text, err)
	return string(text)
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
		name, store := harness.Database(t, s), harness.Database(t, s)
		direct := harness.Open(t, s.Config(name), "")
		harness.MustExec(t, direct, "CREATE TABLE t (id BIGINT NOT NULL, a INT, KEY (id))") // which takes an id twice
		kept, step := "file: {dir: ids}", 5000                                              // each range is written to the disk
		if shared {
			kept, step = fmt.Sprintf("mysql: {dsn: %q}", harness.StoreDSN(s, store)), 50
		}
		config := fmt.Sprintf(`
listeners: [{name: a, listen: "127.0.0.1:0", upstream: %q}]
stores:    {main: {%s}}
sources:   {order_id: {segment: {store: main, start: 5000, step: %d, step_policy: fixed}}}
limits:    {id_wait: 1m}
rules:     [{table: "*.t", column: id, source: order_id}]
ids: {http: {listen: "127.0.0.1:0", tinyid_step: 30, users: {app: {token: 0123456789abcdef}}}}
`, s.Addr, kept, step)
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
		if n := l.twice(); (n == 0) != shared {
			t.Errorf("one store %v: %d of %d ids came twice", shared, n, len(l.seen))
		}
		if want := 2 * (rounds*(1+17+5+30+2) + 1); shared && len(l.seen) != want {
			t.Errorf("%d ids, want %d", len(l.seen), want)
		}
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
	rows := assert.Of(db.Query("SELECT id FROM t")).Must(t)
	defer rows.Close() //nolint:errcheck // Err below says it
	for rows.Next() {
		var id uint64
		assert.Must(t, rows.Scan(&id))
		l.note(id, id)
	}
	assert.Must(t, rows.Err())
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
	var config, commands []string
	var answers []string
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
