package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"idproxy/cmd/idproxy/ruleset"
	"idproxy/cmd/idproxy/tlsconfig"
	"idproxy/config"
	"idproxy/idsource/httpapi"
	"idproxy/monitor"
	"idproxy/proxy"
	"idproxy/proxy/choice"
	"idproxy/proxy/limit"
	"idproxy/proxy/stats"
	"idproxy/rule"
)

// watch shows a program to its operator. It implements monitor.Program.
type watch struct {
	p        *Program
	started  time.Time
	events   *monitor.Events
	refusals *monitor.Refusals
	held     *prometheus.HistogramVec
	fetches  *prometheus.HistogramVec
	requests *prometheus.CounterVec
	answers  *prometheus.HistogramVec

	took     fetchTimes
	refusing refusing
	inForce  atomic.Pointer[inForce]
	reloads  struct {
		sync.Mutex
		done, failed uint64
		problem      string
	}
	stores       storeHealth
	certificates certificates
	files        *descriptors
}

// inForce is a configuration as it is shown.
type inForce struct {
	cfg    *config.Config
	text   []byte // secrets are stars
	counts ruleset.Counts
	loaded time.Time
}

func newWatch(p *Program) *watch {
	return &watch{
		p: p, started: time.Now(), events: &monitor.Events{}, refusals: &monitor.Refusals{}, files: newDescriptors(),
		held: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idproxy_held_seconds", Help: "How long commands were held that were decided on, from their last byte to the server's first.",
			Buckets: []float64{1e-5, 1e-4, 1e-3, 1e-2, .1, 1}, NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100,
		}, []string{"listener"}),
		fetches: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idproxy_source_fetch_seconds", Help: "How long it took to reserve a range.",
			Buckets: []float64{1e-4, 1e-3, 1e-2, .1, 1, 5}, NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100,
		}, []string{"source"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "idproxy_ids_http_requests_total", Help: "Requests for ids over HTTP, by family of paths and class of the answer's status.",
		}, []string{"api", "status"}),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "idproxy_ids_http_seconds", Help: "How long requests for ids over HTTP took, from their headers to the answer.",
			Buckets: []float64{1e-5, 1e-4, 1e-3, 1e-2, .1, 1, 5}, NativeHistogramBucketFactor: 1.2, NativeHistogramMaxBucketNumber: 100,
		}, []string{"api"}),
	}
}

// api is what a server of ids over HTTP tells, and is told by the configuration in force.
func (w *watch) api() httpapi.Config {
	var counts [httpapi.APIs][6]prometheus.Counter // by class of status: 2, 4 and 5 come
	var times [httpapi.APIs]prometheus.Observer
	for a := range httpapi.APIs {
		times[a] = w.answers.WithLabelValues(a.String())
		for _, class := range []int{2, 4, 5} {
			counts[a][class] = w.requests.WithLabelValues(a.String(), fmt.Sprintf("%dxx", class))
		}
	}
	return httpapi.Config{
		Decode: func(key, id string) (*httpapi.Decoded, error) { return decodeID(w.inForce.Load().cfg, key, id) },
		Answered: func(a httpapi.API, status int, took time.Duration) {
			counts[a][status/100].Inc()
			times[a].Observe(took.Seconds())
		},
	}
}

// observe has the proxy tell what it refuses, and how long it holds commands.
func (w *watch) observe(c *proxy.Config) {
	c.OnRefused = func(r proxy.RefusedStatement) {
		w.noteRefusal(&r)
		shape := monitor.Shape{Reason: r.Reason, Listener: r.Listener, Rule: r.Rule, Statement: r.Statement}
		w.refusals.Add(shape, r.User, r.Code, r.Text)
	}
	for i := range c.Listeners {
		w.observeListener(&c.Listeners[i])
	}
}

func (w *watch) observeListener(l *proxy.Listener) {
	histogram := w.held.WithLabelValues(l.Name)
	l.OnHeld = func(d time.Duration) { histogram.Observe(d.Seconds()) }
}

// noteRefusal notes one for the log alone. What an observing rule only would have refused is none.
func (w *watch) noteRefusal(r *proxy.RefusedStatement) {
	if r.Code != 0 {
		w.refusing.add(r.Rule)
	}
}

// fetched notes that a source asked its store for a range.
func (w *watch) fetched(source string, took time.Duration) {
	w.fetches.WithLabelValues(source).Observe(took.Seconds())
	w.took.add(source, took)
	if took >= lateRange {
		w.p.log.Warn("a range came late", "source", source, "duration", took.Round(time.Millisecond))
	}
}

// lateRange is how long a range may take before the log has it.
const lateRange = time.Second

// current returns the configuration in force.
func (w *watch) current() *config.Config { return w.inForce.Load().cfg }

// reloaded notes a configuration that is in force from now on, of which some parts are changed.
func (w *watch) reloaded(cfg *config.Config, changed func(section string) bool) {
	text, err := cfg.YAML()
	if err != nil {
		text = []byte("cannot be shown: " + err.Error())
	}
	w.certificates.reloaded(cfg, changed)
	w.inForce.Store(&inForce{cfg: cfg, text: text, counts: maps.Clone(w.p.counts), loaded: time.Now()})
}

// turned notes that switches have given rules other modes.
func (w *watch) turned(cfg *config.Config) {
	now := *w.inForce.Load()
	now.cfg = cfg
	w.inForce.Store(&now)
}

// countReload counts a reload, and why it failed.
func (w *watch) countReload(err error) {
	w.reloads.Lock()
	defer w.reloads.Unlock()
	if err != nil {
		w.reloads.failed++
		w.reloads.problem = err.Error()
		return
	}
	w.reloads.done++
	w.reloads.problem = ""
}

// serve answers until the returned function is called. Its addresses are taken before it returns.
// nil is no admin listener.
func (w *watch) serve(ctx context.Context, c *config.Admin, listen listen) (wait func() error, err error) {
	if c == nil {
		return func() error { return nil }, nil
	}
	var listeners []net.Listener
	for _, a := range []config.Addr{c.Listen, c.Socket} {
		if a.Address == "" {
			continue
		}
		l, err := listen(a.Network, a.Address)
		if err == nil && a.Network == "unix" {
			err = os.Chmod(a.Address, 0o660)
		}
		if err != nil {
			return nil, fmt.Errorf("admin: %w", err)
		}
		if c.Token == "" && reachable(l.Addr()) { // localhost may lead anywhere
			return nil, fmt.Errorf("admin: %s is %s, which other hosts can reach: set admin.token, or listen on 127.0.0.1", a, l.Addr())
		}
		listeners = append(listeners, l)
	}
	secure, err := w.p.rereading.files.Client("admin.tls", c.TLS)
	if err != nil {
		return nil, fmt.Errorf("admin: %w", err)
	}
	if secure != nil {
		listeners[0] = tls.NewListener(listeners[0], secure)
	}
	srv := monitor.New(monitor.Options{
		Program: w, Events: w.events, Refusals: w.refusals, Token: string(c.Token), Pprof: c.Pprof, Logger: w.p.log,
		Connections: int(adminConnections(openFilesLimit())),
		Metrics: []prometheus.Collector{
			w.held, w.fetches, w.requests, w.answers, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		},
	})
	for _, l := range listeners {
		w.p.log.Info("admin", "listen", l.Addr().String(), "token", c.Token != "")
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx)) // it is asked while sessions drain, too
	var all sync.WaitGroup
	var served error
	all.Go(func() { served = srv.Serve(ctx, listeners...) })
	all.Go(func() { w.p.srv.CheckServers(ctx) })
	all.Go(func() { w.stores.check(ctx, w.p.sources) })
	all.Go(func() { w.certificates.warn(ctx) })
	return sync.OnceValue(func() error {
		end()
		all.Wait()
		return served
	}), nil
}

// listen is how addresses are taken to listen on.
type listen func(network, address string) (net.Listener, error)

// reachable reports whether other hosts may connect to an address.
func reachable(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// State implements monitor.Program.
func (w *watch) State() monitor.State {
	now, phase := w.inForce.Load(), w.p.srv.Phase()
	s := monitor.State{
		Time: time.Now().UTC(), Instance: instanceOf(now.cfg), Version: Built().String(), Started: w.started.UTC(), Draining: phase != proxy.Serving, Phase: phase.String(), HeldBytes: w.p.srv.Held(),
		Predecessor: w.p.start.Shares(),
		Config:      monitor.Config{File: now.cfg.Path, SHA256: now.cfg.SHA256, Loaded: now.loaded.UTC()},
		Files:       w.files.count(),
		Stores:      w.stores.all(now.cfg), Certificates: w.certificates.state(),
	}
	w.reloads.Lock()
	s.Config.Reloads, s.Config.Failed, s.Config.Problem = w.reloads.done, w.reloads.failed, w.reloads.problem
	w.reloads.Unlock()
	for _, l := range w.p.srv.Listeners() {
		s.Listeners = append(s.Listeners, listenerState(&l, now.cfg))
	}
	s.Sources = sourcesState(now.cfg, w.p.sources.Named(), s.Stores)
	for i := range s.Sources {
		w.took.fill(&s.Sources[i])
	}
	s.Switches = w.p.modes.state()
	s.Rules, s.Refused = rulesState(now), reasons(w.p.srv.RefusedByNoRule())
	return s
}

// ConfigText implements monitor.Program.
func (w *watch) ConfigText() []byte { return w.inForce.Load().text }

// CloseSession implements monitor.Program.
func (w *watch) CloseSession(id uint64) bool { return w.p.srv.CloseSession(id) }

// Drain implements monitor.Program.
func (w *watch) Drain() { w.p.srv.Drain() }

// Resume implements monitor.Program.
func (w *watch) Resume() error { return w.p.srv.Resume() }

// Reload implements monitor.Program.
func (w *watch) Reload() ([]string, error) {
	changes, err := w.p.Reload()
	return texts(changes), err
}

// Preview implements monitor.Program.
func (w *watch) Preview() ([]string, error) { return w.p.Preview() }

// Upgrade implements monitor.Program.
func (w *watch) Upgrade() error { return w.p.Upgrade() }

// Sessions implements monitor.Program.
func (w *watch) Sessions() []monitor.Session {
	open := w.p.srv.Sessions()
	all := make([]monitor.Session, 0, len(open))
	for _, s := range open {
		all = append(all, monitor.Session{
			ID: s.ID, Listener: s.Listener, Client: s.Client, User: s.User, Thread: s.Thread, State: string(s.State), Started: s.Started.UTC(),
			FromClient: s.Counts.FromClient.Load(), FromServer: s.Counts.FromServer.Load(), Statements: s.Counts.Total(),
		})
	}
	return all
}

func listenerState(l *proxy.ListenerStatus, cfg *config.Config) monitor.Listener {
	out := monitor.Listener{
		Name: l.Name, Listen: l.Listen, Upstream: l.Upstream, Switches: l.Switches, Servers: []monitor.Standing{}, Sources: []string{}, Modes: []string{},
		Begun: l.Begun, Unbegun: []monitor.Unbegun{}, States: []monitor.Doing{},
		Sessions: l.LoggedIn, LoggingIn: l.Open - l.LoggedIn, Accepted: l.Accepted, Silent: l.Silent,
		FromClient: l.Counts.FromClient.Load(), FromServer: l.Counts.FromServer.Load(),
		Held: l.Held, HeldTime: monitor.Milliseconds(l.HeldTime),
		Statements: []monitor.Statement{}, Questions: []monitor.Question{}, Errors: []monitor.Error{}, Limited: []monitor.Limited{},
	}
	for key, n := range l.Limited {
		if n > 0 {
			out.Limited = append(out.Limited, monitor.Limited{Limit: limit.Key(key).String(), Count: n})
		}
	}
	for _, state := range proxy.SessionStates {
		if n := l.States[state]; n > 0 {
			out.States = append(out.States, monitor.Doing{State: string(state), Count: n})
		}
	}
	for _, f := range l.Unbegun {
		out.Unbegun = append(out.Unbegun, monitor.Unbegun{Column: f.Table + "." + f.Column, Source: f.Source, Problem: f.Err.Error(), At: f.At.UTC()})
	}
	if i := slices.IndexFunc(cfg.Listeners, func(c config.Listener) bool { return c.Name == l.Name }); i >= 0 && cfg.Listeners[i].Account != nil {
		out.Account = cfg.Listeners[i].Account.User
	}
	for i, s := range l.Servers {
		one := monitor.Standing{Address: s.Name, Used: s.Used, Denied: text(l.Denied[i])}
		if s.Problem != nil {
			one.Problem, one.ReadOnly = s.Problem.Error(), errors.Is(s.Problem, choice.ErrReadOnly)
		}
		out.Servers = append(out.Servers, one)
	}
	if l.Problem != nil {
		out.Problem = l.Problem.Error()
	}
	for i := range cfg.Rules {
		if r := &cfg.Rules[i]; r.On(l.Name) && !slices.Contains(out.Sources, r.Source) {
			out.Sources = append(out.Sources, r.Source)
		}
		if r := &cfg.Rules[i]; r.On(l.Name) && r.Mode.Switch != "" && !slices.Contains(out.Modes, r.Mode.Switch) {
			out.Modes = append(out.Modes, r.Mode.Switch)
		}
	}
	for k := range l.Counts.Commands {
		for f := range l.Counts.Commands[k] {
			if n := l.Counts.Commands[k][f].Load(); n > 0 {
				out.Statements = append(out.Statements, monitor.Statement{Kind: stats.Kind(k).String(), Form: stats.Form(f).String(), Count: n})
			}
		}
	}
	for _, q := range l.Questions {
		out.Questions = append(out.Questions, monitor.Question{Kind: q.Kind.String(), Count: q.Count, Time: monitor.Milliseconds(q.Time)})
	}
	for e, n := range l.Errors {
		code := "other"
		if e.Code > 0 {
			code = fmt.Sprint(e.Code)
		}
		out.Errors = append(out.Errors, monitor.Error{Code: code, Side: e.Side.String(), Count: n})
	}
	slices.SortFunc(out.Errors, func(a, b monitor.Error) int { return strings.Compare(a.Side+a.Code, b.Side+b.Code) })
	return out
}

func rulesState(now *inForce) []monitor.Rule {
	all := []monitor.Rule{}
	for i := range now.cfg.Rules {
		r := &now.cfg.Rules[i]
		out := monitor.Rule{
			Table: r.Schema + "." + r.Table, Column: r.Column, Source: r.Source, Mode: r.Mode.Word, Switch: r.Mode.Switch, Listeners: append([]string{}, r.Listeners...),
			Refused: []monitor.Reason{},
		}
		if counts := now.counts[r.String()]; counts != nil {
			var refused [rule.Reasons]uint64
			out.IDs, out.Observed, refused = counts.Load()
			out.Refused = reasons(refused)
		}
		all = append(all, out)
	}
	return all
}

// reasons returns those that came up.
func reasons(counts [rule.Reasons]uint64) []monitor.Reason {
	all := []monitor.Reason{}
	for why, n := range counts {
		if n > 0 {
			all = append(all, monitor.Reason{Reason: rule.Reason(why).String(), Count: n})
		}
	}
	return all
}

// AdminClient returns a client of the admin listener of a configuration: of its unix socket, if it
// has one, which needs no token.
func AdminClient(c *config.Admin) (*monitor.Client, error) {
	a := c.Socket
	if a.Address == "" {
		a = c.Listen
	}
	if a.Network == "unix" {
		return monitor.NewClient(a.Network, a.Address, "", nil), nil
	}
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		return nil, fmt.Errorf("admin.listen: %w", err)
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	secure, err := tlsconfig.Admin(c.TLS, host)
	if err != nil {
		return nil, err
	}
	return monitor.NewClient(a.Network, net.JoinHostPort(host, port), string(c.Token), secure), nil
}
