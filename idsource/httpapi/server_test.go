package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/idsource/access"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// serve serves until the test ends, or stop is called.
func (w *world) serve(t *testing.T) (addr string, stop func() error) {
	t.Helper()
	return sourcetest.Serve(t, w.Serve)
}

// clientOf is a client of one protocol, which trusts whom it is told to.
func clientOf(t *testing.T, trust *tls.Config, protocol func(*http.Protocols)) *http.Client {
	t.Helper()
	var p http.Protocols
	protocol(&p)
	tr := &http.Transport{TLSClientConfig: trust, Protocols: &p, ForceAttemptHTTP2: p.HTTP2(), MaxIdleConnsPerHost: 100}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// TestProtocols: HTTP/1.1 and HTTP/2, with TLS and without.
func TestProtocols(t *testing.T) {
	own := httptest.NewUnstartedServer(nil) // for its certificate
	own.StartTLS()
	defer own.Close()
	trust := own.Client().Transport.(*http.Transport).TLSClientConfig
	for _, tt := range []struct {
		name, scheme string
		secure       *tls.Config
		protocol     func(*http.Protocols)
		want         string
	}{
		{"HTTP/1.1", "http", nil, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		{"HTTP/2", "http", nil, func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) }, "HTTP/2.0"},
		{"HTTP/1.1, TLS", "https", own.TLS, func(p *http.Protocols) { p.SetHTTP1(true) }, "HTTP/1.1"},
		{"HTTP/2, TLS", "https", own.TLS, func(p *http.Protocols) { p.SetHTTP1(true); p.SetHTTP2(true) }, "HTTP/2.0"},
	} {
		secure := tt.secure
		if secure != nil {
			secure = &tls.Config{Certificates: own.TLS.Certificates}
		}
		w := newWorld(t, Config{TLS: secure})
		addr, _ := w.serve(t)
		client := clientOf(t, &tls.Config{RootCAs: trust.RootCAs}, tt.protocol)
		for want := 1; want < 4; want++ {
			r := assert.Of(client.Get(tt.scheme+"://"+addr+"/api/segment/get/orders")).Must(t, tt.name)
			body := readAll(t, r)
			assert.True(t, r.Proto == tt.want && body == fmt.Sprint(want) && r.Header.Get("Content-Type") == "text/plain;charset=UTF-8", "%s: %s, %s", tt.name, r.Proto, body)
		}
	}
}

// TestNeverTwice has clients ask in every way at once, of which some never read the answer. The control
// is a source that gives ids twice.
func TestNeverTwice(t *testing.T) {
	w := newWorld(t, Config{TinyIDStep: 7})
	addr, _ := w.serve(t)
	client := clientOf(t, nil, func(p *http.Protocols) { p.SetHTTP1(true) })
	var mu sync.Mutex
	var all []uint64
	note := func(ids ...uint64) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, ids...)
	}
	fetch := func(method, path, body string) answer {
		r, err := http.NewRequest(method, "http://"+addr+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return answer{}
		}
		res, err := client.Do(r)
		if err != nil {
			t.Error(err)
			return answer{}
		}
		return answer{res.StatusCode, res.Header, readAll(t, res)}
	}
	ways := []func(key string){
		func(key string) {
			if a := fetch("GET", "/api/segment/get/"+key, ""); a.status == 200 {
				note(in[uint64](t, a))
			}
		},
		func(key string) {
			g := in[given](t, fetch("POST", "/v1/ids", `{"key":"`+key+`","n":13}`))
			note(g.numbers(t)...)
		},
		func(key string) {
			note(in[struct{ Data []uint64 }](t, fetch("GET", "/tinyid/id/nextId?batchSize=5&bizType="+key, "")).Data...)
		},
		func(key string) {
			var c tinyClient
			c.read(t, fetch("POST", "/tinyid/id/nextSegmentIdSimple?bizType="+key, "").body)
			for id, ok := c.next(); ok; id, ok = c.next() {
				note(uint64(id))
			}
		},
		func(key string) { // the answer is lost
			if c, err := net.Dial("tcp", addr); err == nil {
				_, _ = io.WriteString(c, "GET /api/segment/get/"+key+" HTTP/1.1\r\nHost: ids\r\n\r\n") // it may be gone
				_ = c.Close()                                                                          // before the answer
			}
		},
	}
	run := func(key string, rounds int) (ids []uint64) {
		var wg sync.WaitGroup
		for _, way := range ways {
			for range 3 {
				wg.Go(func() {
					for range rounds {
						way(key)
					}
				})
			}
		}
		wg.Wait()
		ids, all = all, nil
		return ids
	}
	ids := run("orders", 60)
	sourcetest.Once(t, ids)
	assert.Equal(t, "ids", len(ids), 3*60*(1+13+5+7))
	w.sources["forgetful"] = forgetful{}
	sourcetest.Twice(t, run("forgetful", 2), "a source that forgets")
}

// forgetful gives the same ids again and again.
type forgetful struct{}

func (forgetful) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	return new(counter).Fill(ctx, ids, stride)
}

func (forgetful) Range(context.Context, uint64) (uint64, error) { return 1, nil }

// TestBounds: what a client can make the server hold is bounded.
func TestBounds(t *testing.T) {
	w := newWorld(t, Config{clients: 2})
	addr, _ := w.serve(t)
	roomy, _ := newWorld(t, Config{}).serve(t)
	dial := func(addr string) net.Conn {
		t.Helper()
		c := assert.Of(net.Dial("tcp", addr)).Must(t)
		assert.Must(t, c.SetDeadline(time.Now().Add(patience)))
		return c
	}
	// status answers a request over a connection of its own; 0: it was closed without an answer.
	status := func(c net.Conn, text string) int {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			return 0
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0
		}
		return r.StatusCode
	}
	const request = "GET /api/segment/get/orders HTTP/1.1\r\nHost: ids\r\n"
	for _, tt := range []struct {
		name, text string
		want       []int
	}{
		{"many headers", request + strings.Repeat("X: y\r\n", 10_000) + "\r\n", []int{431, 0}},
		{"a long line", "GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\n\r\n", []int{431, 0}},
		{"a body that is said to be large", "POST /v1/ids HTTP/1.1\r\nHost: ids\r\nContent-Length: 1000000000000\r\n\r\n" + strings.Repeat(" ", 8<<10), []int{413}},
		{"a body in pieces", "POST /v1/ids HTTP/1.1\r\nHost: ids\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" + strings.Repeat(" ", 8<<10) + "\r\n0\r\n\r\n", []int{413}},
		{"no HTTP", "*1\r\n$4\r\nPING\r\n", []int{400}},
	} {
		c := dial(roomy)
		got := status(c, tt.text)
		assert.True(t, slices.Contains(tt.want, got), "%s: %d", tt.name, got)
		assert.NoError(t, c.Close())
	}
	var held []net.Conn
	for range 2 {
		c := dial(addr)
		held = append(held, c)
		assert.Equal(t, "one of two connections", status(c, request+"\r\n"), 200)
	}
	third := dial(addr)
	assert.Equal(t, "a third connection of two", status(third, request+"\r\n"), 0)
	for _, c := range append(held, third) {
		assert.NoError(t, c.Close())
	}
}

// TestStop: a request that waits for ids is cut short when the server ends, and when its client goes.
func TestStop(t *testing.T) {
	for _, who := range []string{"server", "client"} {
		w := newWorld(t, Config{})
		wait := sourcetest.Waiter{Waits: make(chan struct{})}
		w.sources["wait"] = wait
		addr, stop := w.serve(t)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		answered := make(chan error, 1)
		client := clientOf(t, nil, func(p *http.Protocols) { p.SetHTTP1(true) })
		go func() {
			r, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/api/snowflake/get/wait", nil)
			if err == nil {
				var res *http.Response
				if res, err = client.Do(r); err == nil {
					err = errors.Join(fmt.Errorf("status %d", res.StatusCode), res.Body.Close())
				}
			}
			answered <- err
		}()
		<-wait.Waits
		began := time.Now()
		if who == "client" {
			leave()
		}
		assert.NoError(t, stop(), who, "ends")
		assert.Fails(t, who+" ends: there was an answer", <-answered, "")
		assert.LessOrEqual(t, who+" ends: it took", time.Since(began), patience)
	}
}

// TestAnswered: each answer is counted once, and what tinyid calls 200 as what it is.
func TestAnswered(t *testing.T) {
	type count struct {
		api    API
		status int
	}
	seen := map[count]int{}
	w := newWorld(t, Config{Answered: func(a API, status int, _ time.Duration) { seen[count{a, status}]++ }})
	for _, path := range []string{
		"/api/segment/get/orders", "/api/segment/get/none", "/api/segment/get/broken", "/tinyid/id/nextId?bizType=orders",
		"/tinyid/id/nextIdSimple?bizType=none", "/tinyid/id/nextSegmentId?bizType=broken", "/v1/openapi.json", "/v1/none", "/none",
	} {
		w.ask(t, "GET", path, "")
	}
	want := map[count]int{
		{Leaf, 200}: 1, {Leaf, 404}: 1, {Leaf, 503}: 1, {TinyID, 200}: 1, {TinyID, 404}: 1, {TinyID, 503}: 1,
		{V1, 200}: 1, {V1, 404}: 1, {Other, 404}: 1,
	}
	assert.True(t, fmt.Sprint(seen) == fmt.Sprint(want), "counted %v, want %v", seen, want)
}

// TestLog: what a client is not told is in the log, and no token is.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, Config{Logger: newLog(&log), Users: access.NewUsers(access.User{Name: "ann", Secret: access.DigestOf("secret-of-ann")})})
	w.ask(t, "GET", "/api/segment/get/broken", "", "Authorization", "Bearer secret-of-ann")
	w.ask(t, "GET", "/api/segment/get/broken", "", "Authorization", "Bearer secret-of-bob")
	for _, want := range []string{"ids refused", "10.9.8.7", "user.name=ann", "token for ids is missing or wrong"} {
		assert.True(t, strings.Contains(log.String(), want), "no %q in the log:\n%s", want, &log)
	}
	assert.True(t, !strings.Contains(log.String(), "secret"), "a token is in the log:\n%s", &log)
}

// TestLastWord: who was let in just before the server ends gets an answer, and then the end.
func TestLastWord(t *testing.T) {
	addr, stop := sourcetest.Serve(t, New(Config{}).Serve)
	sourcetest.LastWord(t, addr, stop, "GET / HTTP/1.0\r\n\r\n", "HTTP/1.0 ")
}
