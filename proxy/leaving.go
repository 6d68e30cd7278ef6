package proxy

import (
	"context"
	"sync"
	"time"

	"idproxy/proxy/eventloop"
)

// leaving is the context of a session, for what may wait: it is done when the session has an end.
// Who waits asks for Done first, in the goroutine of the lane: who hands the context on to other
// goroutines, as database/sql does, gets the one inside. That is there while somebody waits; in an
// idle session nobody does.
type leaving struct {
	lane *eventloop.Lane

	mu     sync.Mutex // guards all below
	cause  error      // why the session ends; nil: it does not
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// end makes it done; the first cause given is the one that is kept.
func (l *leaving) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	if l.cancel != nil {
		l.cancel(cause)
	}
}

// why returns why the session ends, nil while it does not.
func (l *leaving) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// forget is called where nobody waits any more.
func (l *leaving) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.cancel = nil, nil
}

// handed leaves the loop and returns what other goroutines may ask.
func (l *leaving) handed() context.Context {
	l.lane.Leave()
	return l.inside()
}

func (l *leaving) inside() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ctx
}

// Deadline implements context.Context: there is none.
func (l *leaving) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (l *leaving) Done() <-chan struct{} {
	l.lane.Leave()
	return l.inside().Done()
}

// Err implements context.Context.
func (l *leaving) Err() error {
	if l.why() == nil {
		return nil
	}
	return context.Canceled
}

// Value implements context.Context. The standard library finds its own context by it.
func (l *leaving) Value(key any) any { return l.inside().Value(key) }

// latch is raised once. Its channel is there while somebody waits.
type latch struct {
	mu     sync.Mutex // guards all below
	raised bool
	ch     chan struct{}
}

func (l *latch) raise() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raised = true
	if l.ch != nil {
		close(l.ch)
	}
}

// wait returns a channel that is closed once it is raised.
func (l *latch) wait() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ch == nil {
		l.ch = make(chan struct{})
		if l.raised {
			close(l.ch)
		}
	}
	return l.ch
}

// forget is called where nobody waits any more.
func (l *latch) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.raised {
		l.ch = nil
	}
}
