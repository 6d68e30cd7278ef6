package resp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource/access"
	"idproxy/inside"
)

// Source gives ids; the sources of package idsource do.
type Source interface {
	Fill(ctx context.Context, ids []uint64, stride uint64) error
}

// Ranger is a Source that gives n consecutive ids without listing them.
type Ranger interface {
	Range(ctx context.Context, n uint64) (first uint64, err error)
}

// Texts is a Source whose ids are no numbers. Its Fill sets two elements for each id.
type Texts interface {
	Text(id [2]uint64) string
}

// Scrambled is a Source of numbers of which no two are sure to be consecutive.
type Scrambled interface {
	Scrambled()
}

// Setter is a Source that can be moved past an id: neither id nor anything below it is given from
// then on.
type Setter interface {
	Advance(ctx context.Context, id uint64) error
}

// Distant is a Ranger that another process may be asked for: what a client has sent of one INCR after the
// other is drawn in one round trip.
type Distant interface {
	Ranger
	Distant() bool // it is so now
}

// DefaultMaxIncrBy is how many ids one INCRBY gives at most unless configured: a series of
// numbers can be used up, and what a wrong program took is gone.
const DefaultMaxIncrBy = 1_000_000

// Config describes a Server.
type Config struct {
	// Lookup returns the source of a key; false: there is none. It must answer at once.
	Lookup func(key string) (Source, bool)
	// Create makes a key whose first id is start, and whose ranges have step ids at first, or as many as
	// usual for 0; it is an error where there is one. nil: none can be made.
	Create func(ctx context.Context, key string, start, step uint64) error
	// Cluster returns the address of the process that gives the ids of all keys, host:port; empty: it is
	// not known. nil: this is no cluster, and clients do not ask for one.
	Cluster   func() string
	Members   []string      // addresses of all processes of the cluster, by which clients find another one when that is gone
	TLS       *tls.Config   // nil: it is not spoken
	Users     *access.Users // nil: clients need not log in, and may neither create nor set
	MaxIncrBy uint64        // most ids of one command, default 1000000
	Logger    *slog.Logger  // default: discard

	clients  int           // connections at once: 10000, but in tests
	patience time.Duration // how long a client may take to log in, and to read an answer: 1 min, but in tests
}

// Server answers Redis clients.
type Server struct {
	cfg      Config
	commands []command
	byName   map[string]command
	began    time.Time

	accepted, rejected, answered atomic.Int64 // connections, and commands

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	last  map[string][2]uint64 // by key: the last id given
	tries map[string]tries     // by host that gave a wrong password
	ended bool
	wg    sync.WaitGroup

	kept   inside.Log // of what clients were not told
	logins inside.Log // of those that failed
}

// New returns a Server that listens to nothing yet.
func New(c Config) *Server {
	if c.clients == 0 {
		c.clients = 10_000
	}
	if c.MaxIncrBy == 0 {
		c.MaxIncrBy = DefaultMaxIncrBy
	}
	if c.patience == 0 {
		c.patience = time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: c, commands: newCommands(c.Cluster != nil), byName: map[string]command{}, began: time.Now(), logins: inside.Log{Pause: time.Minute},
		conns: map[net.Conn]struct{}{}, last: map[string][2]uint64{}, tries: map[string]tries{},
	}
	for _, one := range s.commands {
		s.byName[one.name] = one
	}
	return s
}

// acceptPause is how long accepting waits after an error such as too many open
// files.
const acceptPause = 50 * time.Millisecond

// lastWord is how long connections go on when the server ends. One that was accepted in the last moment
// is answered: a successor has its socket already, and the client saw nothing end.
const lastWord = 100 * time.Millisecond

// Serve accepts clients on l, which it closes, until ctx is done. It returns
// when all connections have ended; a question that waits for ids is cut short.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answering, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close() // Accept says so
		time.AfterFunc(lastWord, func() {
			cut()
			s.end()
		})
	})
	defer stop()
	var failed error
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			if errors.Is(err, net.ErrClosed) {
				failed = err
				break
			}
			s.cfg.Logger.Error("accept", "error.message", err)
			time.Sleep(acceptPause)
			continue
		}
		if !s.enter(c) {
			s.rejected.Add(1)
			if s.cfg.TLS == nil { // else nobody waits here for the handshake
				_, _ = c.Write(appendError(nil, "ERR max number of clients reached"))
			}
			_ = c.Close()
			continue
		}
		id := s.accepted.Add(1)
		s.wg.Go(func() {
			defer s.leave(c)
			s.client(answering, c, id)
		})
	}
	cancel()
	s.wg.Wait()
	return failed
}

func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || len(s.conns) >= s.cfg.clients {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

// end ends all connections.
func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for c := range s.conns {
		_ = c.Close()
	}
}

func (s *Server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// client is one connection.
type client struct {
	s       *Server
	id      int64 // of the connection
	addr    net.Addr
	name    string       // that the client gave the connection
	user    *access.User // nil: not known yet
	since   time.Time    // when it was not known first
	version int          // of the protocol
	quit    bool
}

// until is when the next question must have come; zero: at any time.
func (cl *client) until() (t time.Time) {
	if cl.user == nil {
		t = cl.since.Add(cl.s.cfg.patience)
	}
	return t
}

// client answers one connection until it ends.
func (s *Server) client(ctx context.Context, c net.Conn, id int64) {
	defer func() {
		if v := recover(); v != nil {
			s.cfg.Logger.Error("panic", "client.address", c.RemoteAddr(), "exception.message", v, "exception.stacktrace", string(debug.Stack()))
		}
	}()
	if s.cfg.TLS != nil {
		secure := tls.Server(c, s.cfg.TLS)
		_ = c.SetDeadline(time.Now().Add(s.cfg.patience)) // a dead connection says so in the handshake
		if err := secure.HandshakeContext(ctx); err != nil {
			s.cfg.Logger.Debug("client of ids gone", "client.address", c.RemoteAddr(), "error.message", err)
			return
		}
		defer secure.Close() //nolint:errcheck // it says goodbye to who may have gone
		_ = c.SetDeadline(time.Time{})
		c = secure
	}
	cl := &client{s: s, id: id, addr: c.RemoteAddr(), version: 2, since: time.Now()}
	cl.forget()
	r := bufio.NewReaderSize(c, 2*maxLine)
	var out []byte
	var limit time.Time
	for !cl.quit {
		if r.Buffered() == 0 || len(out) > 64<<10 { // all questions that are there are answered at once
			if err := s.write(c, out); err != nil {
				return
			}
			if out = out[:0]; cap(out) > keptOut {
				out = nil
			}
		}
		if until := cl.until(); until != limit {
			limit = until
			_ = c.SetReadDeadline(until) // a dead connection says so at the read
		}
		most := maxArgs
		if cl.user == nil {
			most = maxAuth
		}
		args, err := readCommand(r, most)
		if e, ok := errors.AsType[protocolError](err); ok {
			out, cl.quit = appendError(out, "ERR %v", e), true
		} else if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.cfg.Logger.Debug("client of ids gone", "client.address", c.RemoteAddr(), "error.message", err)
			}
			return
		} else if n := cl.together(r, args); n > 1 {
			out = cl.incrs(ctx, out, args[1], n)
		} else if len(args) > 0 {
			out = cl.do(ctx, out, args)
		}
	}
	_ = s.write(c, out) // the last words
}

// keptOut is how large a buffer a connection keeps for its next answers.
const keptOut = 128 << 10

func (s *Server) write(c net.Conn, out []byte) error {
	if len(out) == 0 {
		return nil
	}
	_ = c.SetWriteDeadline(time.Now().Add(s.cfg.patience)) // a dead connection says so at the write
	_, err := c.Write(out)
	return err
}

// forget logs the client out. A client that was not known stays so from when it was.
func (cl *client) forget() {
	if cl.user != nil {
		cl.since = time.Now()
	}
	cl.user = nil
	if cl.s.cfg.Users == nil {
		cl.user = &access.User{}
	}
}

// gave notes the last id given for a key.
func (s *Server) gave(key string, id [2]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last[key]; slices.Compare(id[:], last[:]) > 0 {
		s.last[key] = id
	}
}

func (s *Server) lastGiven(key string) ([2]uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.last[key]
	return id, ok
}
