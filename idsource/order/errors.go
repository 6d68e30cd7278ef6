package order

import (
	"errors"
	"fmt"
)

// ErrDeposed is what the store of a term answers when another term has begun.
var ErrDeposed = errors.New("another process leads")

// MovedError is the answer of a process that does not lead, to whom it does not pass on for.
type MovedError struct {
	Leader Leader
}

// Error names the leader.
func (e *MovedError) Error() string {
	if e.Leader.Token == "" {
		return "no process leads at the moment"
	}
	return fmt.Sprintf("the process at %s leads", e.Leader.Addr)
}

// MovedTo is where clients of the Redis protocol ask instead; empty: nowhere yet.
func (e *MovedError) MovedTo() string { return e.Leader.Redis }
