package idsource

import (
	"fmt"
	"sync"
	"time"
)

// DefaultWait is how long calls wait for a store that does not answer, unless they are told
// otherwise.
const DefaultWait = 2 * time.Second

// The pause between two tries of a store that fails.
const (
	MinPause = 50 * time.Millisecond
	MaxPause = time.Second
)

// Patience says how long calls wait for a store that does not answer. They share
// one deadline, from when the first of them began. Behind it one call at a time
// waits, which sees the store come back, and the others do not: the connections
// of a pool must not fill up behind a store that is dead.
type Patience struct {
	Limit func() time.Duration // how long a call may wait

	mu     sync.Mutex
	since  time.Time // when the first call of those began that nothing came for; zero: there is none
	alone  bool      // one waits behind the deadline
	failed error     // of the store, the last one since it answered
}

// NewPatience makes one for waits as long as limit says, by default DefaultWait.
func NewPatience(limit func() time.Duration) *Patience {
	if limit == nil {
		limit = func() time.Duration { return DefaultWait }
	}
	return &Patience{Limit: limit}
}

// Turn is the wait of one call.
type Turn struct {
	Of    *Patience
	Most  time.Duration // that it may last
	alone bool
}

// Begin starts a wait. ok is false where the call must not wait; else end must
// be called.
func (p *Patience) Begin() (t Turn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, now := p.Limit(), time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if left := limit - now.Sub(p.since); left > 0 {
		return Turn{Of: p, Most: left}, true
	}
	if p.alone || limit <= 0 {
		return Turn{}, false
	}
	p.alone = true
	return Turn{Of: p, Most: limit, alone: true}, true
}

// End ends the wait.
func (t Turn) End() {
	if !t.alone {
		return
	}
	t.Of.mu.Lock()
	defer t.Of.mu.Unlock()
	t.Of.alone = false
}

// Answered notes that the store answers: err is nil; or why it does not.
func (p *Patience) Answered(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.since = time.Time{}
	}
}

// Left notes that a call's client has gone before there was an answer, which tells nothing of the store: where it
// has not failed the next call waits for as long as any.
func (p *Patience) Left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.since = time.Time{}
	}
}

// Failed says why the last call had no answer; nil: one came since, or none was waited for.
func (p *Patience) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Why says why the store does not answer.
func (p *Patience) Why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		return fmt.Errorf("no answer within %v", p.Limit())
	}
	return p.failed
}

// LaterError is what a pool reports whose store answers, and that knows how long
// it takes until there is a number. No call waits that may not wait so long.
type LaterError struct {
	For time.Duration // there is none before
	Err error
}

// Error returns the text of what is wrong.
func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *LaterError) Unwrap() error { return e.Err }
