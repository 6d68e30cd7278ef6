package observability

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/netutil"

	"idproxy/integration/assert"
	"idproxy/integration/harness"
	"idproxy/integration/width"
	"idproxy/monitor"
)

const secretToken = "s3cret"

// probe is a load balancer that asks /readyz again and again, over a connection of its own each
// time, as HAProxy does.
type probe struct {
	asked, failed int
	slowest       time.Duration
	last          error
}

// balance asks until ctx is done, but least times at the least: a busy machine is slow.
func balance(ctx context.Context, base string, least int) (p probe) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for ; ctx.Err() == nil || p.asked < least; time.Sleep(20 * time.Millisecond) {
		began := time.Now()
		answer, err := client.Get(base + "/readyz") //nolint:noctx // it has a timeout
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				err = errors.New(answer.Status)
			}
		}
		p.asked++
		p.slowest = max(p.slowest, time.Since(began))
		if err != nil {
			p.failed++
			p.last = err
		}
	}
	return p
}

// crowd is many connections to an address, which stay open until the test ends.
type crowd struct {
	t     *testing.T
	addr  string
	mu    sync.Mutex
	conns []net.Conn
}

// open connects n times, a hundred at once, and lets each connection do what it does.
func (c *crowd) open(n int, do func(net.Conn)) {
	c.t.Helper()
	places := make(chan struct{}, 100)
	var all sync.WaitGroup
	for range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			conn, err := net.DialTimeout("tcp", c.addr, time.Minute)
			if err != nil {
				c.t.Errorf("connect: %v", err)
				return
			}
			c.mu.Lock()
			c.conns = append(c.conns, conn)
			c.mu.Unlock()
			do(conn)
		})
	}
	all.Wait()
}

func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// request is what asks for a path, with the token.
func request(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + secretToken + "\r\n\r\n"
}

// say is an attack that sends a text and does not read.
func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(c, text) // it may have been cut
	}
}

// files counts the open files of a process.
func files(t *testing.T, pid int) int {
	t.Helper()
	return len(assert.Of(os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))).Must(t))
}

// peak is the most memory that a process had, in MiB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status := assert.Of(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))).Must(t)
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	assert.MustTrue(t, found != nil, "no VmHWM in %s", status)
	return assert.Of(strconv.Atoi(string(found[1]))).Must(t) >> 10
}

// load starts clients that insert rows through a proxy. end stops them: none has seen an error, and all
// rows are theirs.
func (w *watched) load(t *testing.T, clients int) (end func()) {
	t.Helper()
	l := recycle(t, w.open(t, clients), clients, &recycling{refused: (*recycling).fail, pause: 20 * time.Millisecond}) // others want the processor too
	return func() {
		t.Helper()
		errs := l.end()
		assert.True(t, len(errs) == 0, "clients of the proxy: %v", errs)
		rows := l.compare(t, w.open(t, 1))
		assert.True(t, rows != 0 && rows == l.done.Load(), "%d rows, %d acknowledged", rows, l.done.Load())
	}
}

// guarded starts a proxy with a table t, whose admin listener has a token.
func guarded(t *testing.T) *watched {
	t.Helper()
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	p := harness.StartProxy(t, harness.OneListener(server.Addr)+harness.OneRule(db+".t")+"admin: {listen: \"127.0.0.1:0\", token: "+secretToken+"}\n")
	w := adminOf(t, p, server, db)
	harness.MustExec(t, w.open(t, 1), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	return w
}

// TestSlowClients attacks the admin listener by clients that are slow or too many. All the while a
// load balancer is answered, and clients of the proxy have their rows.
func TestSlowClients(t *testing.T) {
	w := guarded(t)
	addr := strings.TrimPrefix(w.admin, "http://")
	before := files(t, w.PID())
	end := w.load(t, 4)
	const bound = monitor.MaxConnections + 60 // those of the sessions, the store and the program itself
	for _, attack := range []struct {
		name string
		do   func(c *crowd)
	}{
		{"silent", func(c *crowd) { c.open(1500, func(net.Conn) {}) }},
		{"half a request", func(c *crowd) { c.open(1500, say("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")) }},
		{"byte by byte", func(c *crowd) {
			c.open(1000, say("G"))
			for _, b := range []byte("ET /readyz HT") {
				time.Sleep(200 * time.Millisecond)
				for _, conn := range c.conns {
					_, _ = conn.Write([]byte{b}) // it may have been cut
				}
			}
		}},
		{"ask and never read", func(c *crowd) { c.open(1000, say(strings.Repeat(request("/metrics"), 50))) }},
		{"ask for what needs no token, and never read", func(c *crowd) {
			c.open(1000, say(strings.Repeat("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 500)))
		}},
		{"a body without an end", func(c *crowd) {
			c.open(1000, say("POST /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000000\r\n\r\n"+strings.Repeat("x", 1000)))
		}},
	} {
		c := &crowd{t: t, addr: addr}
		ctx, cancel := context.WithCancel(t.Context())
		probed := make(chan probe)
		go func() { probed <- balance(ctx, w.admin, 3) }()
		most := make(chan int)
		go func() {
			n := 0
			for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
				n = max(n, files(t, w.PID()))
			}
			most <- n
		}()
		began := time.Now()
		attack.do(c)
		over, stop := context.WithCancel(ctx)
		stop()
		last := balance(over, w.admin, 3) // who asks now stands behind all of them, as far as they are let in
		cancel()
		p, n := <-probed, <-most
		c.close()
		assert.True(t, p.failed+last.failed <= 0, "%s: the balancer asked %d times, %d failed: %v", attack.name, p.asked+last.asked, p.failed+last.failed, errors.Join(p.last, last.last))
		assert.True(t, n <= bound, "%s: %d files were open, want %d at most", attack.name, n, bound)
		t.Logf("%s: %d answers, the slowest in %v, %d files at most, %d MiB; it took %v", attack.name, p.asked, p.slowest.Round(time.Millisecond), n, peak(t, w.PID()), time.Since(began).Round(time.Millisecond))
	}
	end()
	assert.LessOrEqual(t, "it had MiB of memory", peak(t, w.PID()), 1100) // 360, with the race detector
	assert.Until(t, fmt.Sprintf("%d files are open, as before", before), func() bool { return files(t, w.PID()) <= before+20 })
}

// TestPlainListenerStarves is the negative control of TestSlowClients: the same balancer is not
// answered by a server of the standard library that takes as many connections and no more.
func TestPlainListenerStarves(t *testing.T) {
	width.Wide(t, "a crowd of clients takes a quarter of a minute")
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	ended := make(chan error)
	go func() { ended <- srv.Serve(netutil.LimitListener(l, monitor.MaxConnections)) }()
	defer func() {
		srv.Close()
		<-ended
	}()
	c := &crowd{t: t, addr: l.Addr().String()}
	defer c.close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	p := balance(ctx, "http://"+c.addr, 1)
	assert.MustTrue(t, p.failed <= 0 && p.asked != 0, "before the attack: %+v", p)
	c.open(monitor.MaxConnections+1, func(net.Conn) {})
	ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	p = balance(ctx, "http://"+c.addr, 1)
	assert.True(t, p.failed != 0 && p.failed >= p.asked, "a plain listener answers under the attack: %+v", p)
}

// TestManyStreams opens ten thousand event streams that nobody reads: sixty-four of them are
// served, the others are told to come again, and the balancer is answered.
func TestManyStreams(t *testing.T) {
	w := guarded(t)
	end := w.load(t, 4)
	c := &crowd{t: t, addr: strings.TrimPrefix(w.admin, "http://")}
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	probed := make(chan probe)
	go func() { probed <- balance(ctx, w.admin, 3) }()
	var served, refused, cut atomic.Int64
	c.open(10_000, func(conn net.Conn) {
		say(request("/api/v1/stream"))(conn)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil)
		switch {
		case err != nil:
			cut.Add(1)
		case answer.StatusCode == http.StatusOK:
			served.Add(1)
		case answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") != "":
			refused.Add(1)
		default:
			t.Errorf("a stream: %s %v", answer.Status, answer.Header)
		}
	})
	cancel()
	p := <-probed
	assert.True(t, p.failed <= 0, "the balancer asked %d times, %d failed: %v", p.asked, p.failed, p.last)
	const streams = 64
	n := served.Load()
	assert.True(t, n >= streams && refused.Load() >= 9000 && cut.Load() <= 100, "%d streams were served, %d refused, %d cut", n, refused.Load(), cut.Load())
	assert.LessOrEqual(t, "files are open", files(t, w.PID()), monitor.MaxConnections+60)
	t.Logf("%d served, %d refused, %d cut; %d answers, the slowest in %v; %d MiB", served.Load(), refused.Load(), cut.Load(), p.asked, p.slowest, peak(t, w.PID()))
	end()
}

// TestOddRequests sends what no client of the listener sends. None gets anything without the
// token, and the program goes on.
func TestOddRequests(t *testing.T) {
	w := guarded(t)
	addr := strings.TrimPrefix(w.admin, "http://")
	const host = " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
	line := func(name, value string) string { return name + ": " + value + "\r\n" }
	for _, tt := range []struct {
		name, text string
		want       string // statuses
	}{
		{"control: the token", request("/api/v1/status"), "200"},
		{"no token", "GET /api/v1/status" + host + "\r\n", "401"},
		{"an empty one", "GET /metrics" + host + line("Authorization", "Bearer ") + "\r\n", "401"},
		{"its beginning", "GET /metrics" + host + line("Authorization", "Bearer s3cre") + "\r\n", "401"},
		{"longer", "GET /metrics" + host + line("Authorization", "Bearer s3crets3cret") + "\r\n", "401"},
		{"a zero byte behind it", "GET /metrics" + host + line("Authorization", "Bearer s3cret\x00") + "\r\n", "400"},
		{"no scheme", "GET /metrics" + host + line("Authorization", secretToken) + "\r\n", "401"},
		{"no base64", "GET /metrics" + host + line("Authorization", "Basic !!!!") + "\r\n", "401"},
		{"two, the second right", "GET /metrics" + host + line("Authorization", "Bearer x") + line("Authorization", "Bearer "+secretToken) + "\r\n", "401"},
		{"in the query", "GET /metrics?token=" + secretToken + host + "\r\n", "401"},
		{"of 15 KiB", "GET /metrics" + host + line("Authorization", "Bearer "+strings.Repeat("a", 15<<10)) + "\r\n", "401"},
		{"upwards", "GET /healthz/../metrics" + host + "\r\n", "401 307 301"},
		{"upwards, encoded", "GET /healthz/%2e%2e/metrics" + host + "\r\n", "401 307 301"},
		{"two slashes", "GET //metrics" + host + "\r\n", "401 307 301"},
		{"a file", "GET /../../../../etc/passwd" + host + "\r\n", "401 307 301"},
		{"a zero byte in the path", "GET /metrics%00" + host + "\r\n", "401"},
		{"a broken escape", "GET /%zz" + host + "\r\n", "400"},
		{"another host's address", "GET http://10.0.0.1/metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "401"},
		{"a star", "OPTIONS *" + host + "\r\n", "200 400 401"},
		{"a path of 20 KiB", "GET /" + strings.Repeat("a", 20<<10) + host + "\r\n", "431"},
		{"a header of 20 KiB", "GET /healthz" + host + line("X", strings.Repeat("a", 20<<10)) + "\r\n", "431"},
		{"headers of 20 KiB", "GET /healthz" + host + strings.Repeat(line("X", "abcdefgh"), 2000) + "\r\n", "431"},
		{"no host", "GET /healthz HTTP/1.1\r\n\r\n", "400"},
		{"two hosts", "GET /healthz" + host + line("Host", "b") + "\r\n", "400"},
		{"two lengths", "POST /healthz" + host + line("Content-Length", "1") + line("Content-Length", "2") + "\r\nab", "400"},
		{"a length and chunks", "POST /metrics" + host + line("Content-Length", "4") + line("Transfer-Encoding", "chunked") + "\r\n0\r\n\r\n", "400 401"},
		{"an unknown method", "FROB /metrics" + host + "\r\n", "401"},
		{"an unknown method for health", "FROB /healthz" + host + "\r\n", "401 405"},
		{"a method of 4 KiB", strings.Repeat("A", 4<<10) + " /metrics" + host + "\r\n", "401"},
		{"CONNECT", "CONNECT 10.0.0.1:3306 HTTP/1.1\r\nHost: 10.0.0.1:3306\r\n\r\n", "401 404 405"},
		{"TRACE", "TRACE /metrics" + host + line("Authorization", "Bearer x") + "\r\n", "401"},
		{"a write with the token", strings.Replace(request("/metrics"), "GET", "PUT", 1), "405"},
		{"an unknown path with the token", request("/api/v1/nothing"), "404"},
		{"a session that is none", strings.Replace(request("/api/v1/sessions/99999999999999999999"), "GET", "DELETE", 1), "404"},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 505"},
		{"HTTP/9.9", "GET /healthz HTTP/9.9\r\nHost: a\r\n\r\n", "505"},
		{"TLS", "\x16\x03\x01\x00\x05hello", "400"},
		{"a login to MySQL", "\x20\x00\x00\x01\x85\xa6\x03\x00\x00\x00\x00\x01\r\n\r\n", "400"},
		{"nothing but ends of lines", "\r\n\r\n\r\n\r\n", "400"},
	} {
		conn := assert.Of(net.Dial("tcp", addr)).Must(t)
		say(tt.text)(conn)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		body, _ := io.ReadAll(answer.Body) // it may be cut
		conn.Close()
		assert.True(t, strings.Contains(tt.want, strconv.Itoa(answer.StatusCode)), "%s: %s, want %s: %.200s", tt.name, answer.Status, tt.want, body)
		assert.True(t, answer.StatusCode == 200 || !strings.Contains(string(body), "idproxy_"), "%s: %.200s", tt.name, body)
	}
	assert.Equal(t, "readyz", w.status(t, "/readyz"), 200)
}

// TestFewFiles lets a program open few files and has a crowd connect to its admin listener: most
// files are left to the sessions.
func TestFewFiles(t *testing.T) {
	width.Wide(t, "a crowd of clients takes a quarter of a minute")
	server := harness.MariaDB(t)
	db := harness.Database(t, server)
	dir := t.TempDir()
	script := filepath.Join(dir, "few.sh")
	assert.Must(t, os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\nulimit -n 320\nexec %q \"$@\"\n", assert.Of(harness.Build()).Must(t)), 0o700)) //nolint:gosec // it is run
	config := harness.OneListener(server.Addr) + harness.OneRule(db+".t") + "admin: {listen: 127.0.0.1:0}\nlimits: {sessions: 120}\n"
	p := assert.Of(harness.Launch(t.Context(), script, harness.Spec{Dir: dir, Config: config})).Must(t)
	defer func() { assert.NoError(t, p.Stop(time.Minute)) }()
	w := adminOf(t, p, server, db)
	harness.MustExec(t, w.open(t, 1), "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	c := &crowd{t: t, addr: strings.TrimPrefix(w.admin, "http://")}
	defer c.close()
	c.open(400, func(net.Conn) {})
	const clients = 60
	end := w.load(t, clients)
	c.open(1000, func(net.Conn) {})
	s := w.state(t)
	assert.True(t, s.Files.Limit == 320 && s.Files.Open <= 4*clients+60, "%+v files", s.Files)
	end()
	assert.True(t, !strings.Contains(p.Log(), "too many open files"), "files ran out:\n%s", p.LogTail(10))
}

// TestWithoutToken starts a program whose admin listener has no token: only where no other host can
// reach it.
func TestWithoutToken(t *testing.T) {
	config := func(listen, token string) string {
		return harness.OneListener("127.0.0.1:1") + fmt.Sprintf("admin: {listen: %q%s}\n", listen, token)
	}
	for _, token := range []string{"", ", token: \"\""} {
		for _, local := range []string{"127.0.0.1:0", "127.0.0.2:0", "localhost:0", "unix:admin.sock"} {
			harness.StartProxy(t, config(local, token))
		}
		for _, far := range []string{
			":0", "0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0", "db1.example:0", "localhost.example:0", "127.0.0.1.example:0",
		} {
			out, err := harness.Command(t, "serve", "--config", harness.WriteConfig(t, config(far, token)))
			assert.True(t, err != nil && strings.Contains(out, "needs a \"token\""), "%s: %v\n%s", far, err, out)
		}
	}
}
