package monitor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// fixed is a program whose state a test sets.
type fixed struct {
	mu     sync.Mutex
	state  State
	closed []uint64
}

func (f *fixed) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fixed) set(change func(*State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.state)
}

func (f *fixed) Sessions() []Session { return []Session{{ID: 7, Listener: "a"}} }
func (f *fixed) ConfigText() []byte  { return []byte("listeners: []\n") }

func (f *fixed) CloseSession(id uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, id)
	return id == 7
}

func (f *fixed) Drain() { f.set(func(s *State) { s.Draining, s.Phase = true, "unready" }) }

func (f *fixed) Reload() ([]string, error)  { return []string{"limits.sessions: 1, then 2"}, nil }
func (f *fixed) Preview() ([]string, error) { return []string{"limits.sessions: 1, then 3"}, nil }
func (f *fixed) Upgrade() error             { return errors.New("no successor") }

func (f *fixed) Resume() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state.Phase == "drained" {
		return errors.New("it ends")
	}
	f.state.Draining, f.state.Phase = false, "serving"
	return nil
}

func ptr[T any](v T) *T { return &v }

func healthy() State {
	return State{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Version: "v1", Config: Config{SHA256: "abc"},
		Listeners: []Listener{{
			Name: "a", Upstream: "db:3306", Sources: []string{"ids", "flakes"}, Sessions: 3, LoggingIn: 1,
			Statements: []Statement{{Kind: KindFilled, Form: "query", Count: 5}},
			Questions:  []Question{{Kind: "columns", Count: 2, Time: Milliseconds(500 * time.Millisecond)}}, Errors: []Error{{Code: "1062", Side: "server", Count: 4}},
		}, {Name: "b", Upstream: "db:3307"}},
		Sources: []Source{
			{Name: "ids", Kind: "segment", Store: "main", Issued: 9, Segment: &Segment{Left: 900, Lasts: ptr(Milliseconds(90 * time.Second)), YearsLeft: ptr(5.0)}},
			{Name: "flakes", Kind: "snowflake", Snowflake: &Snowflake{Worker: ptr(uint64(3)), Fence: Milliseconds(7500 * time.Millisecond), Ends: time.Date(2036, 1, 2, 0, 0, 0, 0, time.UTC)}},
		},
		Rules: []Rule{
			{Table: "shop.orders", Column: "id", IDs: 9, Refused: []Reason{{"form", 2}}},
			{Table: "shop.orders", Column: "id", IDs: 9, Refused: []Reason{{"form", 2}}}, // the same on another listener
		},
		Refused: []Reason{{"undecided", 1}},
		Stores:  []Store{{Name: "main", Up: true, Took: Milliseconds(time.Millisecond)}},
	}
}

// serve runs a server over TCP and over a unix socket.
func serve(t *testing.T, o Options) (base, socket string) {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	if o.Events == nil {
		o.Events = &Events{}
	}
	o.Refusals = &Refusals{}
	tcp := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	socket = filepath.Join(t.TempDir(), "admin.sock")
	unix := assert.Of(net.Listen("unix", socket)).Must(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- New(o).Serve(ctx, tcp, unix) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return "http://" + tcp.Addr().String(), socket
}

// TestLastWord: who was let in just before the server ends gets an answer, and then the end.
func TestLastWord(t *testing.T) {
	addr, stop := sourcetest.Serve(t, func(ctx context.Context, l net.Listener) error {
		return New(Options{Program: &fixed{state: healthy()}, Logger: slog.New(slog.DiscardHandler), Events: &Events{}, Refusals: &Refusals{}}).Serve(ctx, l)
	})
	sourcetest.LastWord(t, addr, stop, "GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.0 ")
}

// ask sends a request and returns the answer.
func ask(t *testing.T, client *http.Client, method, url string, change func(*http.Request)) (status int, body string) {
	t.Helper()
	r := assert.Of(http.NewRequestWithContext(t.Context(), method, url, nil)).Must(t)
	if change != nil {
		change(r)
	}
	answer := assert.Of(client.Do(r)).Must(t)
	defer answer.Body.Close()
	text := assert.Of(io.ReadAll(answer.Body)).Must(t)
	return answer.StatusCode, string(text)
}

func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

// TestWhoMayAsk: who has the token, the socket, or, where there is none, a loopback name.
func TestWhoMayAsk(t *testing.T) {
	p := &fixed{state: healthy()}
	guarded, socket := serve(t, Options{Program: p, Token: "s3cret"})
	open, _ := serve(t, Options{Program: p})
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	for _, tt := range []struct {
		name, method, url string
		change            func(*http.Request)
		want              int
	}{
		{"no token", "GET", guarded + "/metrics", nil, 401},
		{"wrong token", "GET", guarded + "/metrics", bearer("s3cre"), 401},
		{"longer token", "GET", guarded + "/metrics", bearer("s3crett"), 401},
		{"another scheme", "GET", guarded + "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "s3cret") }, 401},
		{"token", "GET", guarded + "/metrics", bearer("s3cret"), 200},
		{"password", "GET", guarded + "/", func(r *http.Request) { r.SetBasicAuth("anybody", "s3cret") }, 200},
		{"health needs none", "GET", guarded + "/healthz", nil, 200},
		{"readiness needs none", "GET", guarded + "/readyz", nil, 200},
		{"profiles are off", "GET", guarded + "/debug/pprof/", bearer("s3cret"), 404},
		{"a path that is not there", "GET", guarded + "/api/v1/nothing", bearer("s3cret"), 404},
		{"a path that is not there, without token", "GET", guarded + "/api/v1/nothing", nil, 401},
		{"close without token", "DELETE", guarded + "/api/v1/sessions/7", nil, 401},
		{"close", "DELETE", guarded + "/api/v1/sessions/7", bearer("s3cret"), 204},
		{"close what is not there", "DELETE", guarded + "/api/v1/sessions/8", bearer("s3cret"), 404},
		{"close no number", "DELETE", guarded + "/api/v1/sessions/x", bearer("s3cret"), 404},
		{"close from another site", "DELETE", guarded + "/api/v1/sessions/7", func(r *http.Request) {
			bearer("s3cret")(r)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, 403},
		{"loopback", "GET", open + "/metrics", nil, 200},
		{"a name that leads here", "GET", open + "/metrics", func(r *http.Request) { r.Host = "evil.example:80" }, 403},
		{"close without any token", "DELETE", open + "/api/v1/sessions/7", nil, 403},
		{"events after no number", "GET", open + "/api/v1/events?after=x", nil, 400},
		{"readiness of no listener", "GET", open + "/readyz?listener=x", nil, 404},
	} {
		got, body := ask(t, http.DefaultClient, tt.method, tt.url, tt.change)
		assert.True(t, got == tt.want, "%s: %d, want %d: %s", tt.name, got, tt.want, body)
	}
	got, _ := ask(t, overSocket(socket), "DELETE", "http://unix/api/v1/sessions/7", nil)
	assert.True(t, got == 204, "close over the socket: %d", got)
	assert.True(t, len(p.closed) == 3 && p.closed[0] == 7 && p.closed[1] == 8 && p.closed[2] == 7, "closed %v", p.closed)
}

// deny has the account of a listener's server be turned away, where a rule fills from ids.
func deny(s *State, listener int) {
	l := &s.Listeners[listener]
	l.Account, l.Sources = "asks", []string{"ids"}
	l.Servers = []Standing{{Address: l.Upstream, Used: true, Denied: "1045"}}
	s.Sources = append(s.Sources, Source{Name: "keys", Kind: "uuidv7"})
	s.Rules = append(s.Rules, Rule{Table: "shop.t", Column: "id", Source: "ids", Mode: "enforce"})
}

// unbegun has a table of listener a without a first id.
func unbegun(s *State) {
	s.Listeners[0].Unbegun = []Unbegun{{Column: "shop.t.id", Source: "ids", Problem: "no answer yet"}}
}

// TestReady: a listener is ready when its server answers and its sources have ids for long enough.
func TestReady(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*State)
		problem string // of listener a; empty: it is ready
		finding string // empty: there is none
	}{
		"healthy":     {change: func(*State) {}},
		"draining":    {change: func(s *State) { s.Draining = true }, problem: "idproxy drains"},
		"server gone": {change: func(s *State) { s.Listeners[0].Problem = "refused" }, problem: "server db:3306: refused"},
		"no ids":      {change: func(s *State) { s.Sources[0].Problem = "exhausted" }, problem: "source ids: exhausted"},
		"no ids, by the store": {
			change:  func(s *State) { s.Sources[0].Problem, s.Sources[0].Failing = "store not available", "refused" },
			problem: "source ids: store main: store not available",
		},
		"another's source": {change: func(s *State) { s.Sources = append(s.Sources, Source{Name: "x", Problem: "gone"}) }},
		"account denied":   {change: func(s *State) { deny(s, 0) }, problem: "account asks cannot ask server db:3306 for MAX(id), and no table gets a first id without: 1045"},
		"account denied, tables have ids": {
			change:  func(s *State) { deny(s, 0); s.Listeners[0].Begun = 1 },
			finding: "account asks cannot ask server db:3306",
		},
		"account denied at another server": {
			change:  func(s *State) { deny(s, 0); s.Listeners[0].Servers[0].Used = false },
			finding: "account asks cannot ask server db:3306",
		},
		"account denied, rules observe":            {change: func(s *State) { deny(s, 0); s.Rules[2].Mode = ModeObserve }},
		"account denied, ids are no numbers":       {change: func(s *State) { deny(s, 0); s.Rules[2].Source = "keys" }},
		"account denied, rule of another listener": {change: func(s *State) { deny(s, 0); s.Rules[2].Listeners = []string{"b"} }},
		"another's account denied":                 {change: func(s *State) { deny(s, 1) }},
		"another's account denied, the series begins above its tables": {
			change:  func(s *State) { deny(s, 1); unbegun(s) },
			problem: "listener b, above whose tables its ids begin: account asks cannot ask server db:3307",
			finding: "column shop.t.id gets no first id from source ids: no answer yet",
		},
		"another's server gone, the series begins above its tables": {
			change: func(s *State) {
				s.Listeners[1].Sources, s.Listeners[1].Problem = []string{"ids"}, "refused"
				unbegun(s)
			},
			problem: "listener b, above whose tables its ids begin: server db:3307: refused",
			finding: "column shop.t.id",
		},
		"a table without a first id": {
			change:  func(s *State) { deny(s, 1); unbegun(s); s.Listeners[0].Begun = 1 },
			finding: "column shop.t.id gets no first id from source ids: no answer yet",
		},
		"store down, ids": {change: func(s *State) { s.Sources[0].Failing = "refused" }},
		"store down, few": {change: func(s *State) {
			s.Sources[0].Failing, s.Sources[0].Segment.Lasts = "refused", ptr(Milliseconds(3*time.Second))
		}, problem: "900 ids are left in memory and store main does not answer"},
		"few, store answers": {change: func(s *State) { s.Sources[0].Segment.Lasts = ptr(Milliseconds(3 * time.Second)) }},
		"store down, none":   {change: func(s *State) { s.Sources[0].Failing, s.Sources[0].Segment = "refused", &Segment{} }, problem: "0 ids are left"},
		"fence near": {change: func(s *State) {
			s.Sources[1].Failing, s.Sources[1].Snowflake.Fence = "refused", Milliseconds(3*time.Second)
		}, problem: "ends in 3 s"},
		"descriptors out": {change: func(s *State) { s.Files = Files{Open: 127, Limit: 128} }, problem: "127 of 128 files are open"},
		"room for one":    {change: func(s *State) { s.Files = Files{Open: 126, Limit: 128} }},
		"fence far":       {change: func(s *State) { s.Sources[1].Failing = "refused" }},
	} {
		s := healthy()
		tt.change(&s)
		ready, err := s.Ready("a")
		assert.MustTrue(t, err == nil && len(ready.Listeners) == 1, "%s: %+v, %v", name, ready, err)
		got := strings.Join(ready.Listeners[0].Problems, "; ")
		assert.True(t, ready.Ready == (tt.problem == "") && strings.Contains(got, tt.problem) && (tt.problem != "" || got == ""), "%s: ready %v, %q; want %q", name, ready.Ready, got, tt.problem)
		got = strings.Join(ready.Listeners[0].Findings, "; ")
		assert.True(t, strings.Contains(got, tt.finding) && (tt.finding != "" || got == ""), "%s: findings %q; want %q", name, got, tt.finding)
		public := ready.Outline().Listeners[0]
		assert.True(t, !strings.Contains(strings.Join(public.Problems, "")+strings.Join(public.Findings, ""), "db:330"), "%s: everybody reads %+v", name, public)
	}
	p := &fixed{state: healthy()}
	base, _ := serve(t, Options{Program: p})
	p.set(func(s *State) { s.Listeners = append([]Listener{}, s.Listeners...); s.Listeners[1].Problem = "refused" })
	for path, want := range map[string]int{"/readyz": 503, "/readyz?listener=a": 200, "/readyz?listener=b": 503} {
		got, body := ask(t, http.DefaultClient, "GET", base+path, nil)
		assert.True(t, got == want, "%s: %d, want %d: %s", path, got, want, body)
	}
}

// TestReadyOutline: who has no token reads no address and nothing that a server or store said.
func TestReadyOutline(t *testing.T) {
	s := healthy()
	s.Listeners[0].Problem, s.Sources[0].Problem = "dial tcp 10.0.0.9:3306: refused", "access denied for u@h"
	base, _ := serve(t, Options{Program: &fixed{state: s}, Token: "s3cret"})
	without := func(*http.Request) {}
	with := func(r *http.Request) { r.Header.Set("Authorization", "Bearer s3cret") }
	for _, tt := range []struct {
		who  func(*http.Request)
		told bool
	}{{without, false}, {with, true}} {
		status, body := ask(t, http.DefaultClient, "GET", base+"/readyz", tt.who)
		assert.True(t, status == 503 && strings.Contains(body, "source ids") && strings.Contains(body, "server"), "told %v: %d %s", tt.told, status, body)
		for _, inside := range []string{"10.0.0.9", "db:3306", "u@h"} {
			assert.True(t, strings.Contains(body, inside) == tt.told, "told %v: %q in %s", tt.told, inside, body)
		}
	}
}

// TestMetrics: values and labels, each once.
func TestMetrics(t *testing.T) {
	base, _ := serve(t, Options{Program: &fixed{state: healthy()}})
	_, body := ask(t, http.DefaultClient, "GET", base+"/metrics", nil)
	for _, want := range []string{
		`idproxy_build_info{version="v1"} 1`, `idproxy_config_info{hash="abc"} 1`,
		`idproxy_sessions{listener="a",state="login"} 1`, `idproxy_sessions{listener="a",state="open"} 3`,
		`idproxy_statements_total{form="query",kind="filled",listener="a"} 5`, `idproxy_errors_total{code="1062",listener="a",side="server"} 4`,
		`idproxy_hidden_questions_total{kind="columns",listener="a"} 2`, `idproxy_hidden_questions_seconds_total{kind="columns",listener="a"} 0.5`,
		`idproxy_source_ids_left{source="ids"} 900`, `idproxy_source_seconds_left{source="ids"} 90`, `idproxy_worker_number{source="flakes"} 3`,
		`idproxy_worker_fence_seconds{source="flakes"} 7.5`, `idproxy_rule_ids_total{rule="shop.orders.id"} 9`,
		`idproxy_refusals_total{reason="form",rule="shop.orders.id"} 2`, `idproxy_refusals_total{reason="undecided",rule=""} 1`,
		`idproxy_store_up{store="main"} 1`, `idproxy_ready{listener="b"} 1`, `idproxy_upstream_up{listener="a"} 1`,
	} {
		assert.True(t, strings.Count(body, want+"\n") == 1, "%q stands there %d times", want, strings.Count(body, want+"\n"))
	}
	if t.Failed() {
		t.Log(body)
	}
}

// TestEvents: the ring keeps the last, and only what an operator may want to see.
func TestEvents(t *testing.T) {
	events := &Events{}
	log := slog.New(events.Handler(slog.DiscardHandler))
	log.Info("hidden: nobody reads that level")
	log = slog.New(events.Handler(slog.NewTextHandler(io.Discard, nil)))
	session := log.With(SessionKey, 7, "client.address", "c1").With("thread", 9)
	session.Info("session ended")
	session.Warn("statement refused", "error", errors.New("no ids"), slog.Group("at", "line", 3))
	log.WithGroup("store").Info("lost", "after", time.Second)
	log.Debug("not enabled")
	got := events.After(0)
	if len(got) != 2 || got[0].Text != "statement refused" || got[0].Facts["client.address"] != "c1" || got[0].Facts["thread"] != "9" ||
		got[0].Facts["error"] != "no ids" || got[0].Facts["at.line"] != "3" || got[1].Facts["store.after"] != "1s" {
		t.Errorf("%+v", got)
	}
	for i := range 2*maxEvents + 10 {
		log.Warn(fmt.Sprint(i))
	}
	got = events.After(0)
	assert.MustTrue(t, len(got) == maxEvents, "%d events", len(got))
	assert.True(t, got[0].ID == events.Last()-maxEvents+1 && got[maxEvents-1].Text == fmt.Sprint(2*maxEvents+9), "the first %+v, the last %+v of %d", got[0], got[maxEvents-1], events.Last())
	got = events.After(events.Last() - 3)
	assert.True(t, len(got) == 3 && got[0].ID == events.Last()-2, "after the last but three: %+v", got)
	got = events.After(events.Last() + 5)
	assert.True(t, len(got) == 0, "after what is to come: %+v", got)
}

// TestRefusalsBound: each reason keeps its last shapes, with counts.
func TestRefusalsBound(t *testing.T) {
	r := &Refusals{}
	for i := range maxShapes + 50 {
		r.Add(Shape{Reason: "form", Statement: fmt.Sprint(i)}, "u", 1235, "x")
		r.Add(Shape{Reason: "form", Statement: "again"}, "v", 1235, "y")
		r.Add(Shape{Reason: "no_ids"}, "u", 1467, "z")
	}
	all := r.All()
	counts := map[string]uint64{}
	for _, one := range all {
		counts[one.Reason+one.Statement] = one.Count
	}
	assert.True(t, len(all) == maxShapes+1 && counts["formagain"] == maxShapes+50 && counts["no_ids"] == maxShapes+50 && counts["form0"] == 0 && counts[fmt.Sprint("form", maxShapes+49)] == 1, "%d shapes, %v", len(all), counts)
	assert.Equal(t, "counted", r.Counted(), 3*(maxShapes+50))
}

// TestStreams: a page gets a tick at once and each second; there are only so many, and one that
// does not read holds nobody up.
func TestStreams(t *testing.T) {
	p := &fixed{state: healthy()}
	base, _ := serve(t, Options{Program: p})
	var open []*http.Response
	for range maxStreams {
		r, err := http.Get(base + "/api/v1/stream") //nolint:noctx // closed below
		assert.MustTrue(t, err == nil && r.StatusCode == 200, "%v, %+v", err, r)
		open = append(open, r)
	}
	defer func() {
		for _, r := range open {
			r.Body.Close()
		}
	}()
	got, body := ask(t, http.DefaultClient, "GET", base+"/api/v1/stream", nil)
	assert.True(t, got == 503, "one too many: %d %s", got, body)
	reader := bufio.NewReader(open[0].Body)
	for range 2 {
		line := assert.Of(reader.ReadString('\n')).Must(t)
		var tick Tick
		err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &tick)
		assert.True(t, err == nil && tick.Readiness.Ready && len(tick.Listeners) == 2, "%v: %q", err, line)
		assert.Of(reader.ReadString('\n')).Must(t)
	}
	open[1].Body.Close()
	assert.Until(t, "the place of a page that left is free", func() bool {
		r := assert.Of(http.Get(base + "/api/v1/stream")).Must(t) //nolint:noctx // closed below
		open = append(open, r)
		return r.StatusCode == 200
	})
}

// TestMetricsAreDocumented holds the table of docs/monitoring.md to the metrics that there are.
func TestMetricsAreDocumented(t *testing.T) {
	text := assert.Of(os.ReadFile("../docs/monitoring.md")).Must(t)
	known := map[string]bool{ // those that the program counts itself
		"idproxy_held_seconds": true, "idproxy_source_fetch_seconds": true, "idproxy_ids_http_requests_total": true, "idproxy_ids_http_seconds": true,
	}
	for _, name := range MetricNames() {
		known[name] = true
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "`"); strings.HasPrefix(line, "| `idproxy_") {
			name, _, _ := strings.Cut(cells[1], "{")
			documented[name] = true
			assert.True(t, known[name], "docs/monitoring.md has %s, which is no metric", name)
		}
	}
	for name := range known {
		assert.True(t, documented[name], "docs/monitoring.md lacks %s", name)
	}
}

// TestClient: it lists and closes, where it has what that takes, and passes on why not.
func TestClient(t *testing.T) {
	p, events := &fixed{state: healthy()}, &Events{}
	events.add(Event{Text: "store lost"})
	base, socket := serve(t, Options{Program: p, Token: "s3cret", Events: events})
	address := strings.TrimPrefix(base, "http://")
	for _, c := range []*Client{NewClient("unix", socket, "", nil), NewClient("tcp", address, "s3cret", nil)} {
		assert.True(t, c.MayClose(), "it may not close")
		all, err := c.Events(t.Context())
		assert.True(t, err == nil && len(all) == 1 && all[0].Text == "store lost", "%+v %v", all, err)
		refusals, err := c.Refusals(t.Context())
		assert.True(t, err == nil && len(refusals) == 0, "%+v %v", refusals, err)
		assert.NoError(t, c.CloseSession(t.Context(), 7))
		assert.Fails(t, "of no session", c.CloseSession(t.Context(), 8), `there is no session "8"`)
	}
	stranger := NewClient("tcp", address, "", nil)
	err := stranger.CloseSession(t.Context(), 7)
	assert.True(t, !stranger.MayClose() && err != nil && strings.Contains(err.Error(), "the token is missing"), "without the token: %v", err)
	assert.True(t, len(p.closed) == 4, "closed were %v", p.closed)
}
