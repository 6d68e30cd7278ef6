package proxy

import (
	"context"

	"idproxy/proxy/loop"
)

// leaving is a context for what may wait. Who waits asks for Done first.
type leaving struct {
	context.Context
	lane *loop.Lane
}

// Done implements context.Context.
func (l *leaving) Done() <-chan struct{} {
	l.lane.Leave()
	return l.Context.Done()
}
