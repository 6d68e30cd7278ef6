package snowflake

import (
	"errors"
	"math"
	"sync"
	"time"

	"idproxy/idsource"
)

// outlook is what those know who wait for an id: what the store said, and when that may change.
type outlook struct {
	patience *idsource.Patience // with the store

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when there is something new
	failed  error         // of the store; nil when the last call succeeded
	later   time.Duration // on the monotonic clock: when failed may change, if that is known
	closed  bool
}

func newOutlook(wait func() time.Duration) *outlook {
	return &outlook{patience: idsource.NewPatience(wait), changed: make(chan struct{})}
}

// watch returns a channel that is closed at the next change, when on the monotonic
// clock that may come at the earliest, and whether there is no point in waiting for
// it.
func (o *outlook) watch() (changed <-chan struct{}, later time.Duration, hopeless bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed, o.later, o.closed || errors.Is(o.failed, idsource.BadConfig)
}

// tell lets those who wait try again, and returns the error from before. now is the monotonic
// clock.
func (o *outlook) tell(err error, now time.Duration) (before error) {
	later, known := errors.AsType[*idsource.LaterError](err)
	if known {
		o.patience.Answered(nil)
	} else {
		o.patience.Answered(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	before, o.failed, o.later = o.failed, err, 0
	if known {
		o.later = now + min(later.For, math.MaxInt64/2)
	}
	close(o.changed)
	o.changed = make(chan struct{})
	return before
}

// state is what the store said last, and whether the source was closed.
func (o *outlook) state() (failed error, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed, o.closed
}

// close notes that the source is closed, and reports whether it was not before.
func (o *outlook) close() (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first, o.closed = !o.closed, true
	return first
}
