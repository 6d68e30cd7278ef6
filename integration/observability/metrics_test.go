package observability

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/servers"
	"idproxy/monitor"
)

// watched is a proxy with an admin listener, in front of a server.
type watched struct {
	*harness.Proxy
	server *servers.Server
	db     string
	admin  string // http://host:port
}

// start starts one whose configuration ends with more.
func start(t *testing.T, server *servers.Server, db, more string) *watched {
	t.Helper()
	return adminOf(t, harness.StartProxy(t, harness.OneListener(server.Addr)+"admin: {listen: 127.0.0.1:0}\n"+more), server, db)
}

// adminOf is a proxy whose admin listener is in its log.
func adminOf(t *testing.T, p *harness.Proxy, server *servers.Server, db string) *watched {
	t.Helper()
	found := regexp.MustCompile(`msg=admin listen=(\S+:\S+)`).FindStringSubmatch(p.Log())
	assert.MustTrue(t, found != nil, "no admin listener in the log")
	return &watched{p, server, db, "http://" + found[1]}
}

// open connects n clients at most to the proxy.
func (w *watched) open(t *testing.T, n int) *sql.DB {
	t.Helper()
	pool := harness.Open(t, w.server.Config(w.db), w.Addr("a"))
	pool.SetMaxOpenConns(n)
	return pool
}

// get returns the answer to a path.
func (w *watched) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return answer(t, assert.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, w.admin+path, nil)).Must(t))
}

func (w *watched) status(t *testing.T, path string) int {
	t.Helper()
	status, _ := w.get(t, path)
	return status
}

func (w *watched) answer(t *testing.T, path string) string {
	t.Helper()
	_, body := w.get(t, path)
	return body
}

func answer(t *testing.T, r *http.Request) (status int, body string) {
	t.Helper()
	a := assert.Of(http.DefaultClient.Do(r)).Must(t)
	defer a.Body.Close()
	return a.StatusCode, string(assert.Of(io.ReadAll(a.Body)).Must(t))
}

func (w *watched) state(t *testing.T) (s monitor.State) {
	t.Helper()
	body := w.answer(t, "/api/v1/status")
	assert.Must(t, json.Unmarshal([]byte(body), &s), body)
	return s
}

// metric returns the sum of all samples of a name whose labels have all of these texts.
func (w *watched) metric(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	found := false
	for line := range strings.Lines(w.answer(t, "/metrics")) {
		rest, ok := strings.CutPrefix(line, "idproxy_"+name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		for _, l := range labels {
			ok = ok && strings.Contains(rest, l)
		}
		if !ok {
			continue
		}
		n := assert.Of(strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)).Must(t, line)
		sum, found = sum+n, true
	}
	assert.True(t, found, "there is no metric %s with %q", name, labels)
	return sum
}

// TestMetricsTellTheTruth compares the metrics with the rows in the table and with the errors that
// clients saw, while they are scraped under load.
func TestMetricsTellTheTruth(t *testing.T) {
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	w := start(t, server, db, fmt.Sprintf("sources: {ids: {segment: {}}}\nrules:\n  - {table: %s.t, column: id, source: ids}\n  - {table: %s.seen, column: id, source: ids, mode: observe}\n", db, db))
	pool := w.open(t, 8)
	harness.MustExec(t, pool, "CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE)", "CREATE TABLE seen (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE)")
	before := w.state(t)
	const clients, each = 8, 200
	var failed, selects, observed atomic.Int64
	scraped, stop := make(chan int), make(chan struct{})
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				scraped <- n
				return
			default:
				w.get(t, "/metrics")
			}
		}
	}()
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() {
			conn, err := pool.Conn(context.Background())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for i := range each {
				if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO t (a) VALUES (%d)", c*each+i/2)); err != nil { // each second one is there already
					failed.Add(1)
				}
				if i%4 == 0 {
					selects.Add(1)
					assert.Of(conn.ExecContext(t.Context(), "DO 1")).NoError(t)
				}
				if i%10 == 0 {
					observed.Add(1)
					assert.Of(conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO seen (a) VALUES (%d)", c*each+i))).NoError(t)
				}
			}
		})
	}
	all.Wait()
	close(stop)
	scrapes := <-scraped
	rows := float64(harness.Count(t, pool, "SELECT COUNT(*) FROM t"))
	for _, tt := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"statements_total", []string{`kind="filled"`, `form="query"`}, rows + float64(failed.Load())},
		{"statements_total", []string{`kind="observed"`}, float64(observed.Load())},
		{"errors_total", []string{`code="1062"`, `side="server"`}, float64(failed.Load())},
		{"sessions", []string{`state="open"`}, float64(pool.Stats().OpenConnections)},
		{"ids_issued_total", []string{`source="ids"`}, rows + float64(failed.Load())},
		{"upstream_up", nil, 1},
		{"ready", nil, 1},
	} {
		var got float64
		assert.Until(t, fmt.Sprintf("%s%v is %v", tt.name, tt.labels, tt.want), func() bool { // a command is counted just behind its reply
			got = w.metric(t, tt.name, tt.labels...)
			return got == tt.want
		}, func() string { return fmt.Sprint("it is ", got) })
	}
	forwarded := func(s monitor.State) (n uint64) {
		for _, one := range s.Listeners[0].Statements {
			if one.Kind == "forwarded" && one.Form == "query" {
				n += one.Count
			}
		}
		return n
	}
	least := uint64(selects.Load()) + 1
	var got uint64
	assert.Until(t, fmt.Sprintf("%d are forwarded", least), func() bool { // as above, and a state is up to a tenth of a second old
		got = forwarded(w.state(t)) - forwarded(before)
		return got >= least
	}, func() string { return fmt.Sprint("it is ", got) })
	assert.True(t, got <= least+2*clients, "forwarded %d, want %d and a few for logins", got, least)
	t.Logf("compared: %v rows, %d errors, %d scrapes", rows, failed.Load(), scrapes)
}

func TestMain(m *testing.M) { harness.Main(m) }
