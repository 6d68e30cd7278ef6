package eventloop

import (
	"context"
	"sync"
	"time"
)

// Context is done once it was ended, which happens once. Done is for the goroutine of its task, and hands the loop off:
// whoever hands the context on to other goroutines, as database/sql does, gives them [Context.Detached]. What others wait
// for is there while somebody waits: in an idle session nobody does.
type Context struct {
	Task *Task

	mu    sync.Mutex // guards all below
	cause error      // why it was ended; nil: it was not
	await *awaited   // nil: nobody waits
}

type awaited struct {
	context.Context
	cancel context.CancelCauseFunc
}

// End makes it done. The first cause given is the one that is kept.
func (c *Context) End(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	c.cause = cause
	if c.await != nil {
		c.await.cancel(cause)
	}
}

// Cause returns why it was ended, nil while it was not.
func (c *Context) Cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// Release is called where nobody waits any more.
func (c *Context) Release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.await = nil
}

// Detached hands the loop off and returns what other goroutines may ask.
func (c *Context) Detached() context.Context {
	c.Task.Handoff()
	return c.inside()
}

func (c *Context) inside() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.await == nil {
		c.await = &awaited{}
		c.await.Context, c.await.cancel = context.WithCancelCause(context.Background())
		if c.cause != nil {
			c.await.cancel(c.cause)
		}
	}
	return c.await.Context
}

// Deadline implements context.Context: there is none.
func (c *Context) Deadline() (time.Time, bool) { return time.Time{}, false }

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} { return c.Detached().Done() }

// Err implements context.Context.
func (c *Context) Err() error {
	if c.Cause() == nil {
		return nil
	}
	return context.Canceled
}

// Value implements context.Context. The standard library finds its own context by it.
func (c *Context) Value(key any) any { return c.inside().Value(key) }

// Await receives from a channel in the goroutine of a context's task. It returns the cause where the context ends first.
func Await[T any](from <-chan T, until *Context) (v T, err error) {
	defer until.Release()
	select {
	case v = <-from:
		return v, nil
	case <-until.Done():
		return v, until.Cause()
	}
}
