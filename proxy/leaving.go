package proxy

import (
	"context"

	"idproxy/proxy/loop"
)

// leaving is a context for what may wait. Who waits asks for Done first, in the goroutine of the
// lane: who hands the context on to other goroutines, as database/sql does, gets the one inside.
type leaving struct {
	context.Context
	lane *loop.Lane
}

// Done implements context.Context.
func (l *leaving) Done() <-chan struct{} {
	l.lane.Leave()
	return l.Context.Done()
}

// handed leaves the loop and returns what other goroutines may ask.
func (l *leaving) handed() context.Context {
	l.lane.Leave()
	return l.Context
}
