package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"idproxy/idsource/lease"
)

// Config says where a Store is.
type Config struct {
	Servers  []string     // required: host:port of the ensemble's servers
	Username string       // of the scheme digest; default: none, and nodes are anybody's
	Password string       //
	TLS      *tls.Config  // default: none
	Logger   *slog.Logger // default: discard
}

// Store is an ensemble of ZooKeeper.
type Store struct {
	cfg     Config
	where   string // names the servers in errors
	clock   func() time.Time
	session time.Duration
	dial    zk.Dialer
	asking  sync.WaitGroup // what was asked and is not answered yet

	mu     sync.Mutex
	conn   *client // nil: nothing was asked yet
	hosts  *hosts  // of the client, or of the last one
	closed bool
	known  bool  // the server was told who we are
	unfit  error // why the client does not stay with a server that it has reached
	failed error // why the last server that was tried is not the client's
}

const (
	// sessionTime is how long a server remembers a client. Two thirds of it is how long the client waits
	// for a server that does not answer, before it turns to the next one.
	sessionTime = 4 * time.Second
	askPause    = 100 * time.Millisecond // before what got no answer is asked again
)

// New checks the configuration and connects to nothing.
func New(c Config) (*Store, error) {
	switch {
	case len(c.Servers) == 0:
		return nil, errors.New("a zookeeper store needs a server")
	case (c.Username == "") != (c.Password == ""):
		return nil, errors.New("a zookeeper store needs username and password together")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: c, where: "zookeeper store " + strings.Join(c.Servers, ","), clock: lease.HostClock(), session: sessionTime, hosts: &hosts{}}
	s.dial = net.DialTimeout
	if c.TLS != nil {
		s.dial = s.dialTLS
	}
	return s, nil
}

func (s *Store) dialTLS(network, addr string, timeout time.Duration) (net.Conn, error) {
	return tls.DialWithDialer(&net.Dialer{Timeout: timeout}, network, addr, s.cfg.TLS)
}

// Close ends the session.
func (s *Store) Close() error {
	s.mu.Lock()
	conn := s.conn
	s.closed = true
	s.mu.Unlock()
	if conn != nil {
		conn.end()
	}
	s.asking.Wait()
	return nil
}

// Ping asks whether the ensemble answers, and changes nothing.
func (s *Store) Ping(ctx context.Context) error {
	_, err := ask(ctx, s, func(c *zk.Conn) (bool, error) {
		there, _, err := c.Exists("/")
		return there, err
	})
	return s.wrap(err)
}

func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.where, err)
}

// client is a client of the ensemble and what it is connected by.
type client struct {
	*zk.Conn
	mu    sync.Mutex
	wire  net.Conn // nil: it was not connected yet
	ended bool
}

// through notes what the client is connected by, and cuts it when that comes too late.
func (c *client) through(wire net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wire = wire; c.ended {
		_ = wire.Close()
	}
}

// end ends the session, and cuts the connection behind the goodbye, which takes three seconds at
// most. A client that waits for a server to let it in would keep the connection for 27 s otherwise.
func (c *client) end() {
	c.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended = true; c.wire != nil {
		_ = c.wire.Close()
	}
}

var errClosed = errors.New("the store is closed")

// connection is the client, which connects and connects again by itself.
func (s *Store) connection() (c *client, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false, errClosed
	}
	if s.conn == nil {
		s.unfit, s.known, s.hosts = nil, false, s.hosts.onward()
		// It sends its events to a channel, and forgets those that nobody takes.
		made := &client{}
		dial := func(network, addr string, timeout time.Duration) (net.Conn, error) {
			wire, err := s.reach(network, addr, timeout)
			if err == nil {
				made.through(wire)
			}
			return wire, err
		}
		made.Conn, _, err = zk.Connect(s.cfg.Servers, s.session,
			zk.WithHostProvider(s.hosts), zk.WithDialer(dial), zk.WithLogger(log{s.cfg.Logger}), zk.WithLogInfo(false))
		if err != nil {
			return nil, false, err
		}
		s.conn = made
	}
	s.asking.Add(1)
	return s.conn, s.known || s.cfg.Username == "", nil
}

// leave ends a session in which there was no answer. Nothing depends on it, and a client that has
// seen what a restored ensemble does not know would not be let in again. It returns why the servers that
// were reached cannot be used, if that is so.
func (s *Store) leave(c *client) (unfit error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == c && !s.closed {
		s.conn = nil
		s.asking.Go(c.end)
	}
	return s.unfit
}

// why adds the reason to the client's error that no server could be connected to.
func (s *Store) why(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, zk.ErrNoServer) && s.failed != nil {
		return fmt.Errorf("%w: %w", err, s.failed)
	}
	return err
}

// log has what the client logs besides what it returns.
type log struct{ to *slog.Logger }

func (l log) Printf(format string, args ...any) {
	l.to.Debug("zookeeper client", "reason", fmt.Sprintf(format, args...))
}

// tellUser says who we are. The client says it again to each server that it connects to.
func (s *Store) tellUser(c *client) error {
	if err := c.AddAuth("digest", []byte(s.cfg.Username+":"+s.cfg.Password)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = s.known || s.conn == c // another client may have taken its place
	return nil
}

// ask asks until there is an answer or ctx ends. What changes something must say what it
// changes: it may be asked again after it was heard, and it may be heard after ctx has ended.
func ask[A any](ctx context.Context, s *Store, do func(c *zk.Conn) (A, error)) (answer A, err error) {
	type result struct {
		answer A
		err    error
	}
	for {
		c, known, cerr := s.connection()
		if cerr != nil {
			return answer, cerr
		}
		answered := make(chan result, 1)
		go func() {
			defer s.asking.Done()
			var r result
			if !known {
				r.err = s.tellUser(c)
			}
			if r.err == nil {
				r.answer, r.err = do(c.Conn)
			}
			answered <- r
		}()
		select {
		case r := <-answered:
			if !lost(r.err) {
				return r.answer, r.err
			}
			err = s.why(r.err)
			if unfit := s.leave(c); unfit != nil {
				return answer, unfit
			}
		case <-ctx.Done():
			if c.State() != zk.StateHasSession { // it may wait for long for a server that is silent
				s.leave(c)
			}
			return answer, cmp.Or(err, ctx.Err())
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return answer, err
		}
	}
}

// lost says whether an error means that there was no answer.
func lost(err error) bool {
	_, broken := errors.AsType[net.Error](err)
	return broken || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrClosing) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionExpired) || errors.Is(err, zk.ErrSessionMoved)
}

// Denied reports whether the ensemble answered, and turned the user away.
func Denied(err error) bool { return errors.Is(err, zk.ErrNoAuth) || errors.Is(err, zk.ErrAuthFailed) }

// Away reports whether no server could be reached.
func Away(err error) bool { return lost(err) }
