package idsource

import (
	"fmt"
	"strings"

	"idproxy/inside"
)

// Kind says what is wrong with a source, so that callers can branch with
// errors.Is(err, idsource.StoreDown). A Kind is an error only for that purpose.
type Kind uint8

// The kinds of errors of a source.
const (
	// NotReady: the source has not come up yet, or the caller gave up waiting.
	NotReady Kind = iota + 1
	// StoreDown: nothing is left in memory and the store does not answer.
	StoreDown
	// Exhausted: the source has issued the last id it may issue. Permanent.
	Exhausted
	// Fenced: the source may use no later timestamp until its bound is renewed
	// in the store, or until its clock has caught up with the bound.
	Fenced
	// Behind: the store stands below what has been used; ids might be issued
	// twice. Permanent until someone mends it.
	Behind
	// TooMany: one call asks for more ids than the source gives at once.
	TooMany
	// TooHigh: above the id that Advance was given too few are left, or its time
	// lies too far ahead.
	TooHigh
	// BadConfig: the configuration contradicts itself or the store.
	BadConfig
	// Closed: the source has been closed.
	Closed
	// Apart: the source has no consecutive ids.
	Apart
	// Held: another process holds the worker number.
	Held
)

var kindNames = [...]string{
	NotReady:  "not ready",
	StoreDown: "store not available",
	Exhausted: "exhausted",
	Fenced:    "fenced",
	Behind:    "behind",
	TooMany:   "too many ids at once",
	TooHigh:   "id too high",
	BadConfig: "bad configuration",
	Closed:    "closed",
	Apart:     "no consecutive ids",
	Held:      "held by another process",
}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Error returns the kind in words.
func (k Kind) Error() string { return k.String() }

// Error is what every method of a source answers with. Its text is one line:
// source, kind, cause, what to do. [inside.Text] says what clients may read of it.
type Error struct {
	Source string // name of the source in the configuration
	Kind   Kind
	Cause  error  // may be nil
	Hint   string // what someone can do about it; may be empty
}

// NewError returns an Error. Clients are not told what a store that is down said.
func NewError(source string, k Kind, cause error, hint string) *Error {
	if k == StoreDown {
		cause = inside.Mark(cause)
	}
	return &Error{Source: source, Kind: k, Cause: cause, Hint: hint}
}

// Error names the source, what is wrong, why, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "id source %q: %s", e.Source, e.Kind)
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap makes errors.Is find both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
