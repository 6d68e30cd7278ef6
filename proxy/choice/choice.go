package choice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"idproxy/proxy/dial"
)

const (
	// pause is how long a server that did not take a session comes behind the others. Then one
	// session tries it. A check that it passes is believed when no session came for another pause.
	pause = 5 * time.Second
	// writableFor is how long it is believed that a server takes writes, and refusedFor that it does
	// not: while none does, clients wait for it.
	writableFor = 2 * time.Second
	refusedFor  = 200 * time.Millisecond
)

// ErrReadOnly is why a server is not chosen that takes no writes.
var ErrReadOnly = errors.New("read-only")

// ErrAnswered is what an error is, by errors.Is, that the server says itself, such as 1040. There may
// be another one that takes the session; the only one is there.
var ErrAnswered = errors.New("the server refuses sessions")

// Server is one to choose from.
type Server struct {
	Name string
	// Writable asks it whether it takes writes; ErrReadOnly: it does not. nil: it is taken as it is.
	Writable func(context.Context) error
}

// Choice is servers that stand for each other, in the order in which they are preferred.
type Choice struct {
	servers []*server

	mu       sync.Mutex // guards all below, and what servers say it guards
	used     int        // the one that sessions go to, by what is known; -1: no one was tried
	switches uint64     // how often that became another one
	doubted  time.Time  // what was learned earlier is not believed
}

// server is a Server and what is known of it.
type server struct {
	Server
	asking chan struct{} // held by who asks it whether it takes writes

	// Guarded by Choice.mu:
	tried   bool
	problem error     // why it took no session when it was tried last; nil: it did
	told    bool      // by a session: a check is no session, and passes where none is taken
	again   time.Time // until then the others come first, where there is a problem
	// Whether it takes writes, nil where it does, and from when to when it was asked for that.
	refusal     error
	began, said time.Time
}

// New returns a Choice of at least one server.
func New(servers []Server) *Choice {
	c := &Choice{used: -1}
	for _, s := range servers {
		c.servers = append(c.servers, &server{Server: s, asking: make(chan struct{}, 1)})
	}
	return c
}

// Several reports whether there is anything to choose.
func (c *Choice) Several() bool { return len(c.servers) > 1 }

// String names the servers.
func (c *Choice) String() string {
	names := make([]string, len(c.servers))
	for i, s := range c.servers {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

// Try calls try with the numbers of servers until one takes it. Each has some time. The error is that
// of the only server, or a dial.Failed.
func (c *Choice) Try(ctx context.Context, each time.Duration, try func(ctx context.Context, server int) error) error {
	var failed dial.Failed
	for _, i := range c.order() {
		err := c.tryOne(ctx, each, i, try)
		if err != nil && (ctx.Err() != nil || dial.Ours(err)) {
			return err // it says nothing of the server
		}
		if !c.Several() {
			if !errors.Is(err, ErrAnswered) {
				c.heard(i, err, true)
			}
			return err
		}
		c.heard(i, err, true)
		if err == nil {
			return nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", c.servers[i].Name, err))
	}
	return failed
}

func (c *Choice) tryOne(ctx context.Context, each time.Duration, number int, try func(ctx context.Context, server int) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, each, &lateError{each})
	defer cancel()
	if err := c.writable(ctx, c.servers[number]); err != nil {
		return err
	}
	return try(ctx, number)
}

// lateError is why a server is given up that does not answer.
type lateError struct{ after time.Duration }

// Error names the time.
func (e *lateError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// order returns the numbers of servers as they are to be tried. One whose pause is over has a new one
// from now on: others do not wait for what comes of it.
func (c *Choice) order() (order []int) {
	if !c.Several() {
		return []int{0}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	var behind []int
	for i, s := range c.servers {
		switch {
		case s.problem == nil:
			order = append(order, i)
		case !now.Before(s.again):
			s.again = now.Add(pause)
			order = append(order, i)
		default:
			behind = append(behind, i)
		}
	}
	return append(order, behind...)
}

// heard notes whether a server took a session, or passed a check. An error of this process says
// nothing.
func (c *Choice) heard(number int, err error, session bool) {
	if dial.Ours(err) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, s := time.Now(), c.servers[number]
	s.tried = true
	switch {
	case err != nil && !errors.Is(err, ErrReadOnly): // who says that answers, and is asked again soon enough
		if s.problem == nil {
			c.doubted = now
		}
		if session || !s.told {
			s.problem, s.told, s.again = err, session, now.Add(pause)
		}
	case session || c.believes(s, now):
		s.problem, s.told = nil, false
	}
	c.choose()
}

// believes reports whether a check that a server passes outweighs what sessions found.
func (c *Choice) believes(s *server, now time.Time) bool {
	return !c.Several() || !s.told || !now.Before(s.again.Add(pause))
}

// choose notes which server sessions go to. The caller holds mu.
func (c *Choice) choose() {
	first := slices.IndexFunc(c.servers, func(s *server) bool { return s.tried && s.problem == nil && s.refusal == nil })
	if first < 0 || first == c.used {
		return
	}
	if c.used >= 0 {
		c.switches++
	}
	c.used = first
}

// writable asks a server whether it takes writes, if that is to be asked and not known. Those who
// come while it is asked take the same answer.
func (c *Choice) writable(ctx context.Context, s *server) error {
	if s.Writable == nil {
		return nil
	}
	came := time.Now()
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if refusal, known := c.known(s, came); known {
		return refusal
	}
	began := time.Now()
	err := s.Writable(ctx)
	if err != nil && ctx.Err() != nil {
		late, is := errors.AsType[*lateError](context.Cause(ctx))
		if !is {
			return err // nobody waits for the answer any more
		}
		err = late
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.refusal, s.began, s.said = err, began, time.Now()
	return err
}

// known returns what a server said, if it is to be believed by somebody who came at a time.
func (c *Choice) known(s *server, came time.Time) (refusal error, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lasts := writableFor
	if s.refusal != nil {
		lasts = refusedFor
	}
	believed := s.began.After(c.doubted) && time.Since(s.said) < lasts
	return s.refusal, believed || !s.said.Before(came)
}

// Doubt has all servers asked anew whether they take writes: one said that it does not, or a
// connection broke.
func (c *Choice) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubted = time.Now()
}

// Check has a server asked by probe, and whether it takes writes, which has some time.
func (c *Choice) Check(ctx context.Context, each time.Duration, number int, probe func(context.Context) error) {
	err := probe(ctx)
	if err == nil {
		err = c.tryOne(ctx, each, number, func(context.Context, int) error { return nil })
	}
	if ctx.Err() == nil {
		c.heard(number, err, false)
	}
}

// Status is what is known of a server.
type Status struct {
	Name    string
	Used    bool  // new sessions go to it
	Problem error // why they cannot; nil: they can, or nobody tried
}

// Status returns what is known of all servers.
func (c *Choice) Status() (all []Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.servers {
		one := Status{Name: s.Name, Problem: s.problem, Used: i == c.used}
		if one.Problem == nil {
			one.Problem = s.refusal
		}
		all = append(all, one)
	}
	return all
}

// Problem is why no server can be used; nil: one can, by what is known.
func (c *Choice) Problem() error {
	var failed dial.Failed
	for _, s := range c.Status() {
		switch {
		case s.Problem == nil:
			return nil
		case !c.Several():
			return s.Problem
		}
		failed = append(failed, fmt.Errorf("%s: %w", s.Name, s.Problem))
	}
	return failed
}

// Used names the server that new sessions go to, or went to last where there is none, and how often
// that became another one.
func (c *Choice) Used() (name string, switches uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.servers[max(c.used, 0)].Name, c.switches
}
