package snowflake

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

// faultFences is a FenceStore in memory that fails on demand. It outlives the
// sources of a test as a folder does.
type faultFences struct {
	mu     sync.Mutex
	fences map[uint64]uint64
	held   map[uint64]bool
	down   error
	raises int
	forget bool // a negative control: the number was used long ago, and what was stored since is gone

	releasing func() // not nil: called when a number is given up
}

func newFaultFences() *faultFences {
	return &faultFences{fences: map[uint64]uint64{}, held: map[uint64]bool{}}
}

// usedFences has let worker numbers be used before, long ago.
func usedFences(workers ...uint64) *faultFences {
	s := newFaultFences()
	for _, w := range workers {
		s.fences[w] = 1
	}
	return s
}

func (s *faultFences) set(change func(*faultFences)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *faultFences) fence(worker uint64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fences[worker]
}

var errHeld = fmt.Errorf("worker 5: %w", idsource.Held)

func (s *faultFences) Acquire(_ context.Context, worker uint64, _ idsource.Shape) (idsource.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.down != nil:
		return nil, s.down
	case s.held[worker]:
		return nil, errHeld
	}
	s.held[worker] = true
	return &faultLease{store: s, worker: worker}, nil
}

// crash drops the locks as the kernel does when a process dies.
func (s *faultFences) crash() { s.set(func(s *faultFences) { clear(s.held) }) }

type faultLease struct {
	store  *faultFences
	worker uint64
}

func (l *faultLease) Fence() uint64 {
	if l.store.forget {
		return 1
	}
	return l.store.fence(l.worker)
}

func (l *faultLease) Raise(_ context.Context, fence uint64) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.down != nil {
		return l.store.down
	}
	l.store.fences[l.worker] = fence
	l.store.raises++
	return nil
}

func (l *faultLease) Release(ctx context.Context, fence uint64) error {
	if l.store.releasing != nil {
		l.store.releasing()
	}
	var err error
	if fence != 0 {
		err = l.Raise(ctx, fence)
	}
	l.store.set(func(s *faultFences) { s.held[l.worker] = false })
	return err
}

// testClock runs with the (fake) time of the test; its wall clock can be set.
type testClock struct{ offset atomic.Int64 }

func (c *testClock) jump(d time.Duration) { c.offset.Add(int64(d)) }

func (c *testClock) clock() Clock {
	start := time.Now().Add(-time.Hour)
	return Clock{
		Wall: func() int64 { return time.Now().UnixNano() + c.offset.Load() },
		Mono: func() time.Duration { return time.Since(start) },
	}
}

// testEpoch lies before the time that synctest starts at.
var testEpoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

func newTestSnowflake(t testing.TB, c Config, clk Clock) *Snowflake {
	t.Helper()
	c.Name = cmp.Or(c.Name, "event_id")
	c.Epoch = cmp.Or(c.Epoch, testEpoch)
	c.Clock = clk
	s := assert.Of(New(c)).Must(t, "New")
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // some tests leave the store down
	return s
}

// kill ends a source as kill -9 does: nothing is released or lowered.
func kill(s *Snowflake) {
	s.outlook.close()
	s.end()
	s.wg.Wait()
	s.words.revoke()
}
