package idsource

import (
	"fmt"
	"sync"
	"time"
)

// patience says how long calls wait for a store that does not answer. They share
// one deadline, from when the first of them began. Behind it one call at a time
// waits, which sees the store come back, and the others do not: the connections
// of a pool must not fill up behind a store that is dead.
type patience struct {
	limit func() time.Duration // how long a call may wait

	mu     sync.Mutex
	since  time.Time // when the first call of those began that nothing came for; zero: there is none
	alone  bool      // one waits behind the deadline
	failed error     // of the store, the last one since it answered
}

func newPatience(limit func() time.Duration) *patience {
	if limit == nil {
		limit = func() time.Duration { return DefaultWait }
	}
	return &patience{limit: limit}
}

// turn is the wait of one call.
type turn struct {
	of    *patience
	most  time.Duration
	alone bool
}

// begin starts a wait, which end must end. ok is false where the call must not wait.
func (p *patience) begin() (t turn, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit, now := p.limit(), time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if left := limit - now.Sub(p.since); left > 0 {
		return turn{of: p, most: left}, true
	}
	if p.alone || limit <= 0 {
		return turn{}, false
	}
	p.alone = true
	return turn{of: p, most: limit, alone: true}, true
}

func (t turn) end() {
	if !t.alone {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.alone = false
}

// answered notes that the store answers: err is nil; or why it does not.
func (p *patience) answered(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.since = time.Time{}
	}
}

// why says why the store does not answer.
func (p *patience) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		return fmt.Errorf("no answer within %v", p.limit())
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
