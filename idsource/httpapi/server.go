package httpapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"idproxy/idsource/access"
	"idproxy/inside"
)

// MaxN is how many ids one request gets at most, whatever the configuration says.
const MaxN = 1_000_000

// DefaultTinyIDStep is how many ids a client of tinyid gets at once unless configured.
const DefaultTinyIDStep = 1000

// Bounds on what clients can make the server hold, and for how long.
const (
	maxBody    = 4 << 10
	maxHeader  = 4 << 10 // net/http adds 4 KiB to it
	maxStreams = 100     // requests at once of one connection, in HTTP/2
	readTime   = 10 * time.Second
	writeTime  = time.Minute // ids that are waited for included
	idleTime   = 2 * time.Minute
	closeTime  = time.Second
	// lastWord is how long clients are answered when the server ends. One that was accepted in the last moment
	// saw nothing end: a successor has its socket already. [http.Server.Shutdown] would close it unanswered.
	lastWord = 100 * time.Millisecond
)

// Source gives ids; the sources of package idsource do.
type Source interface {
	Fill(ctx context.Context, ids []uint64, stride uint64) error
}

// Ranger is a Source that gives n consecutive ids without listing them: a segment.
type Ranger interface {
	Range(ctx context.Context, n uint64) (first uint64, err error)
}

// Scrambled is a Source of which the ids of a segment come scrambled, so that it has no ranges.
type Scrambled interface {
	Scrambled()
}

// Texts is a Source whose ids are text and take two words of Fill: UUIDs, ObjectIds.
type Texts interface {
	Text(id [2]uint64) string
}

// API is a family of paths.
type API uint8

// The families. Other is what no path of them is.
const (
	V1 API = iota
	Leaf
	TinyID
	Other
	APIs // how many there are
)

// String is the word that metrics have for the family.
func (a API) String() string { return [...]string{"v1", "leaf", "tinyid", "other"}[a] }

// Config describes a Server.
type Config struct {
	// Lookup returns the source of a key; false: there is none. It must answer at once.
	Lookup func(key string) (Source, bool)
	// Decode says what an id of a key tells by itself. Its errors are about the id.
	Decode func(key, id string) (*Decoded, error)
	// Position returns the lowest id of a segment that is not reserved, from the store.
	Position func(ctx context.Context, key string) (next uint64, err error)

	Users      *access.Users // nil: clients need no token
	MaxN       uint64        // most ids of one request, default and at most [MaxN]
	TinyIDStep uint64        // ids that one nextSegmentId gives, default [DefaultTinyIDStep]
	TLS        *tls.Config   // nil: HTTP without TLS
	// Answered is told of each answer; nil: nobody is. The status is that which the problem has in V1:
	// tinyid says 200 whatever happened.
	Answered func(a API, status int, took time.Duration)
	Logger   *slog.Logger // default: discard

	clients int // connections at once: 10000, but in tests
}

// Server answers over HTTP.
type Server struct {
	cfg  Config
	kept inside.Log // of what clients were not told

	listed atomic.Int64 // ids in lists that clients are sent
}

// New returns a Server that listens to nothing yet.
func New(c Config) *Server {
	c.clients = cmp.Or(c.clients, 10_000)
	c.MaxN = min(cmp.Or(c.MaxN, MaxN), MaxN)
	c.TinyIDStep = cmp.Or(c.TinyIDStep, DefaultTinyIDStep)
	if c.Answered == nil {
		c.Answered = func(API, int, time.Duration) {}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{cfg: c}
}

// Serve answers on l, which it closes, until ctx is done. Answers under way get a second to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := &http.Server{
		Handler: s, TLSConfig: s.cfg.TLS, Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return answering },
		ErrorLog:    slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() {
		door := &door{Listener: l, most: int64(s.cfg.clients)}
		if s.cfg.TLS != nil {
			ended <- srv.ServeTLS(door, "", "")
			return
		}
		ended <- srv.Serve(door)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	srv.SetKeepAlivesEnabled(false)
	_ = l.Close() // Serve says so
	time.Sleep(lastWord)
	cut()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	err := srv.Shutdown(closing)
	if err != nil {
		err = srv.Close()
	}
	if served := <-ended; !errors.Is(served, http.ErrServerClosed) && !errors.Is(served, net.ErrClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// door lets so many connections in at once. Others are closed without an answer.
type door struct {
	net.Listener
	most, open int64
}

// Accept implements net.Listener.
func (d *door) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if atomic.AddInt64(&d.open, 1) <= d.most {
			return &guest{Conn: c, door: d}, nil
		}
		atomic.AddInt64(&d.open, -1)
		_ = c.Close() // nothing was written
	}
}

// guest is a connection that counts.
type guest struct {
	net.Conn
	door *door
	gone atomic.Bool
}

// Close implements net.Conn.
func (g *guest) Close() error {
	if !g.gone.Swap(true) {
		atomic.AddInt64(&g.door.open, -1)
	}
	return g.Conn.Close()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	w.Header()["Cache-Control"] = noStore // a cache would give an id twice
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Logger.Error("panic", "client.address", r.RemoteAddr, "exception.message", v, "exception.stacktrace", string(debug.Stack()))
			panic(http.ErrAbortHandler) // the connection ends
		}
	}()
	api, status := s.answer(w, r)
	s.cfg.Answered(api, status, time.Since(began))
}

// Values of headers, made once. They are never changed.
var (
	noStore   = []string{"no-store"}
	plainText = []string{"text/plain;charset=UTF-8"}
	jsonText  = []string{"application/json"}
)

// answer answers a request by its path.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) (API, int) {
	path := r.URL.Path
	switch {
	case foreign(r):
		return Other, foreignPage().write(w)
	case strings.HasPrefix(path, "/v1/"):
		return V1, s.v1(w, r)
	case strings.HasPrefix(path, leafPrefix):
		return Leaf, s.leaf(w, r)
	case strings.HasPrefix(path, tinyPrefix):
		return TinyID, s.tiny(w, r)
	}
	return Other, noPath(path).write(w)
}

// foreign reports whether the page of another site had a browser ask: for the ids of a server that
// the browser can reach and the page cannot.
func foreign(r *http.Request) bool {
	site := r.Header["Sec-Fetch-Site"]
	return len(site) > 0 && site[0] != "same-origin" && site[0] != "none"
}

// only refuses methods that are none of these.
func only(w http.ResponseWriter, r *http.Request, methods ...string) *problem {
	for _, m := range methods {
		if r.Method == m {
			return nil
		}
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return wrongMethod(r.Method, methods)
}
