package monitor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds on what clients of the admin listener can make it hold.
const (
	maxHeader   = 16 << 10
	headerTime  = 5 * time.Second
	metricsTime = 15 * time.Second
	closeTime   = time.Second
	lastWord    = 100 * time.Millisecond // of clients accepted in the last moment: Shutdown would close them unanswered
)

// Options are what a Server is made of.
type Options struct {
	Program  Program
	Events   *Events
	Refusals *Refusals
	// Metrics are collected beside those of the state; nil: none.
	Metrics []prometheus.Collector
	Token   string // empty: none is asked, and sessions cannot be closed but by a unix socket
	Pprof   bool   // profiles under /debug/pprof/
	Logger  *slog.Logger
	// Connections are how many clients may have at once; 0: MaxConnections. Half of them may be
	// streams, 64 at most.
	Connections int
}

// Server answers over HTTP.
type Server struct {
	Options
	token   [sha256.Size]byte
	crowd   *crowd
	history *history
	stream  *stream
	handler http.Handler
}

// New returns a Server that does not listen yet.
func New(o Options) *Server {
	o.Connections = cmp.Or(o.Connections, MaxConnections)
	history := newHistory(o.Program)
	o.Program = &glimpse{Program: o.Program}
	s := &Server{Options: o, token: sha256.Sum256([]byte(o.Token)), crowd: newCrowd(o.Connections), history: history, stream: newStream(o)}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{o.Program})
	registry.MustRegister(o.Metrics...)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry, MaxRequestsInFlight: 4, Timeout: metricsTime})

	open := http.NewServeMux() // asked by load balancers, which have no token
	open.HandleFunc("GET /healthz", healthz)
	open.HandleFunc("GET /readyz", s.readyz)
	closed := http.NewServeMux()
	closed.Handle("GET /metrics", metrics)
	closed.HandleFunc("GET /{$}", page)
	closed.HandleFunc("GET /api/v1/status", s.answer(func(st *State) any { return st }))
	closed.HandleFunc("GET /api/v1/sources", s.answer(func(st *State) any { return st.Sources }))
	closed.HandleFunc("GET /api/v1/rules", s.answer(func(st *State) any { return st.Rules }))
	closed.HandleFunc("GET /api/v1/sessions", s.sessions)
	closed.HandleFunc("DELETE /api/v1/sessions/{id}", s.changing(s.closeSession))
	closed.HandleFunc("POST /api/v1/drain", s.changing(s.drain))
	closed.HandleFunc("POST /api/v1/resume", s.changing(s.resume))
	closed.HandleFunc("GET /api/v1/reload", s.changing(s.preview))
	closed.HandleFunc("POST /api/v1/reload", s.changing(s.reload))
	closed.HandleFunc("POST /api/v1/upgrade", s.changing(s.upgrade))
	closed.HandleFunc("GET /api/v1/events", s.events)
	closed.HandleFunc("GET /api/v1/refusals", s.refusals)
	closed.HandleFunc("GET /api/v1/history", s.pastHour)
	closed.HandleFunc("GET /api/v1/config", s.config)
	if o.Pprof {
		closed.HandleFunc("GET /debug/pprof/", pprof.Index)
		closed.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		closed.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
		closed.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		closed.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	}
	open.Handle("GET /api/v1/stream", s.authorized(s.stream))
	open.Handle("/", s.authorized(http.NewCrossOriginProtection().Handler(few(closed))))
	s.handler = hardened(open)
	return s
}

// Serve answers on all listeners until ctx is done.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, MaxHeaderBytes: maxHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		BaseContext: func(net.Listener) context.Context { return answering },
		ErrorLog:    slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	s.crowd.spare.fill()
	defer s.crowd.spare.close()
	srv.SetKeepAlivesEnabled(false) // who asks much needs many connections, and those are counted
	ended := make(chan error, len(listeners)+2)
	go func() { ended <- s.history.run(ctx) }()
	go func() { ended <- s.stream.run(ctx) }()
	for _, l := range listeners {
		go func() { ended <- srv.Serve(door{l, s.crowd}) }()
	}
	<-ctx.Done()
	for _, l := range listeners {
		_ = l.Close() // Serve says so
	}
	time.Sleep(lastWord)
	cut()
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	errs := []error{srv.Shutdown(closing)}
	if errs[0] != nil {
		errs[0] = srv.Close()
	}
	for range cap(ended) {
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// connKey is under which a request's context has its connection.
type connKey struct{}

// local reports whether a request came over a unix socket, whose file says who may.
func local(r *http.Request) bool {
	g := guestOf(r)
	return g != nil && g.LocalAddr().Network() == "unix"
}

// guestOf returns the connection that a request came over; nil in a test without one.
func guestOf(r *http.Request) *guest {
	g, _ := r.Context().Value(connKey{}).(*guest)
	return g
}

// hardened bounds the time of answers, and says to browsers what a page may do.
func hardened(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		slow := paced{w}
		if g := guestOf(r); g != nil {
			g.does(answering)
			defer g.does(waiting)
		}
		next.ServeHTTP(slow, r)
		_ = slow.hurry() // the server's writers know deadlines
	})
}

// authorized asks for the token, as a bearer token or as the password of any user. Without a
// token it takes requests that name this host: a page of another site cannot make a browser do so
// by a name of its own that leads here.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case local(r):
		case s.Token == "" && namesLoopback(r.Host):
		case s.Token == "":
			problem(w, http.StatusForbidden, "this admin listener has no token, so it answers to a loopback address only, not to "+strconv.Quote(r.Host)+": ask for 127.0.0.1, or set admin.token")
			return
		case !s.hasToken(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="idproxy: any user, the token as password"`)
			problem(w, http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN, or as the password of any user; commands with --admin take it from IDPROXY_ADMIN_TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hasToken compares in a time that does not tell how much was right.
func (s *Server) hasToken(r *http.Request) bool {
	const bearer = "Bearer "
	given := r.Header.Get("Authorization")
	if _, password, ok := r.BasicAuth(); ok {
		given = bearer + password
	}
	if len(given) < len(bearer) || given[:len(bearer)] != bearer {
		return false
	}
	sum := sha256.Sum256([]byte(given[len(bearer):]))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1
}

func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback() || host == "[::1]"
}

// problem answers with an error as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail}) // the client may be gone
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

// healthz says that the process lives.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n")) // the client may be gone
}

// readyz says whether clients may be sent here: 200, or 503 with what is wrong. Where there is a
// token, who does not have it is told less.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	state := s.Program.State()
	ready, err := state.Ready(r.URL.Query().Get("listener"))
	if s.Token != "" && !local(r) && !s.hasToken(r) {
		ready = ready.Outline()
	}
	switch {
	case err != nil:
		problem(w, http.StatusNotFound, err.Error())
	case ready.Ready:
		answer(w, http.StatusOK, ready)
	case state.Draining && r.URL.Query().Get("draining") == "404": // what HAProxy takes for "no new clients, and those that are there may stay"
		answer(w, http.StatusNotFound, ready)
	default:
		answer(w, http.StatusServiceUnavailable, ready)
	}
}

// answer returns a handler that shows a part of the state.
func (s *Server) answer(part func(*State) any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		state := s.Program.State()
		answer(w, http.StatusOK, part(&state))
	}
}

func (s *Server) sessions(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Program.Sessions())
}

// closeSession cuts a session.
func (s *Server) closeSession(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
	if err != nil || !s.Program.CloseSession(id) {
		problem(w, http.StatusNotFound, "there is no session "+strconv.Quote(r.PathValue("id"))+": it may have ended")
		return
	}
	s.Logger.Info("session closed by the admin listener", SessionKey, id, "client.address", r.RemoteAddr)
	w.WriteHeader(http.StatusNoContent)
}

// events answers with those after the number that the query's after names.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if err != nil && r.URL.Query().Has("after") {
		problem(w, http.StatusBadRequest, "after is the number of an event, as 17")
		return
	}
	answer(w, http.StatusOK, s.Events.After(after))
}

func (s *Server) refusals(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Refusals.All())
}

func (s *Server) config(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(s.Program.ConfigText()) // the client may be gone
}

func (s *Server) pastHour(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.history.all())
}
