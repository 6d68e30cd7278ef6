package order

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"idproxy/idsource"
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

// kindIn is of which kind a refusal of the leader is: its words begin as an *idsource.Error does.
// What may pass by itself is NotReady here, whatever it is there.
func kindIn(words string) idsource.Kind {
	rest, _ := strings.CutPrefix(words, "ERR id source ")
	name, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return idsource.NotReady
	}
	for _, k := range []idsource.Kind{idsource.Exhausted, idsource.Behind, idsource.TooHigh} {
		if strings.HasPrefix(rest[len(name):], ": "+k.String()) {
			return k
		}
	}
	return idsource.NotReady
}
