package segment

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"idproxy/idsource"
)

// Segment hands out ids of ranges reserved in a SegmentStore. The ranges form a
// chain; by default it is as long as two, since the next range is fetched
// while the newest one is being used. Ranges that follow each other without a
// gap are joined, so a statement never sees the seam.
//
// A Segment starts a goroutine when a range is wanted, and it ends when one has
// come; while the store does not answer it keeps trying.
type Segment struct {
	idsource.OneSeries
	cfg  Config
	head atomic.Pointer[block] // first of the chain, what the fast path takes from

	life context.Context // of the loader; ended by Close
	end  context.CancelFunc
	wg   sync.WaitGroup
	kick chan struct{} // has the loader try the store again now

	mu      sync.Mutex
	tail    *block
	waiters []*waiter
	loading bool            // the loader runs
	closed  bool            // no more ids
	dead    *idsource.Error // the store went back: no more ids
	failed  error           // of the last fetch; nil when it succeeded
	step    uint64          // of the last range
	fetched time.Time       // when it came; zero: none yet
	low     uint64          // where the last range began
	high    uint64          // no range may start below: where the last one ended
	past    uint64          // no id below is issued: Advance
	raised  uint64          // no part of the store gives a range below: Raiser
	pace    pace

	noHighWater bool // a test's negative control: high is not looked at
	noPace      bool // a test's negative control: ranges are fetched by their mark alone
}

// waiter is a Fill that found no ids, or an Advance beyond the last range. done
// has room for the one outcome.
type waiter struct {
	span uint64 // of Fill
	past uint64 // of Advance: the store is to stand here or above
	turn idsource.Turn
	done chan outcome
}

type outcome struct {
	first uint64
	err   *idsource.Error
}

// Fill sets ids to one run. See Source.
func (s *Segment) Fill(ctx context.Context, ids []uint64, stride uint64) error {
	if len(ids) == 0 {
		return nil
	}
	if len(ids) == 1 && stride == 1 {
		if id, ok := s.takeOne(); ok {
			ids[0] = id
			return nil
		}
	}
	over, span := bits.Mul64(uint64(len(ids)), stride)
	if over != 0 || span > s.cfg.MaxBatch || stride == 0 {
		return s.tooMany(len(ids), stride)
	}
	first, ok := s.take(span)
	if !ok {
		var err *idsource.Error
		if first, err = s.wait(ctx, span); err != nil {
			return err
		}
	}
	for i := range ids {
		ids[i] = first
		first += stride
	}
	return nil
}

// Range reserves n consecutive ids without listing them and returns the first.
func (s *Segment) Range(ctx context.Context, n uint64) (first uint64, err error) {
	var one [1]uint64
	err = s.Fill(ctx, one[:], n)
	return one[0], err
}

func (s *Segment) tooMany(n int, stride uint64) *idsource.Error {
	if stride == 0 {
		return s.fail(idsource.BadConfig, fmt.Errorf("ids %d apart were asked for", stride), "")
	}
	return s.fail(idsource.TooMany, fmt.Errorf("%d ids, %d apart, make more than %d", n, stride, s.cfg.MaxBatch),
		"insert fewer rows per statement")
}

func (s *Segment) fail(k idsource.Kind, cause error, hint string) *idsource.Error {
	return idsource.NewError(s.cfg.Name, k, cause, hint)
}

// takeOne is the fast path of one id: one load and one addition.
func (s *Segment) takeOne() (uint64, bool) {
	b := s.head.Load()
	if b == nil {
		return 0, false
	}
	id, ok := b.takeOne()
	if id+1 == b.mark && ok {
		s.reached()
	}
	return id, ok
}

// reached asks for the next range, now that a mark is reached.
func (s *Segment) reached() {
	s.mu.Lock()
	s.prefetch()
	s.mu.Unlock()
}

// take is the fast path: one block, no lock.
func (s *Segment) take(span uint64) (uint64, bool) {
	b := s.head.Load()
	if b == nil {
		return 0, false
	}
	first, ok := b.take(span)
	if ok && b.crossed(first, span) {
		s.reached()
	}
	return first, ok
}

// wait takes from the whole chain, or waits until the loader brings a range.
func (s *Segment) wait(ctx context.Context, span uint64) (uint64, *idsource.Error) {
	s.mu.Lock()
	first, ok := s.takeChain(span)
	if ok {
		s.prefetch()
		s.mu.Unlock()
		return first, nil
	}
	if err := s.ended(); err != nil {
		s.mu.Unlock()
		return 0, err
	}
	w := s.enqueue(&waiter{span: span})
	s.mu.Unlock()
	return s.await(ctx, w)
}

// enqueue has the loader serve w, if patience allows it to wait. The caller holds mu.
func (s *Segment) enqueue(w *waiter) *waiter {
	w.done = make(chan outcome, 1)
	var ok bool
	if w.turn, ok = s.cfg.patience.Begin(); ok {
		s.waiters = append(s.waiters, w)
	} else {
		w.done <- outcome{err: s.storeDown(s.cfg.patience.Why())}
	}
	s.startLoader()
	if s.failed != nil {
		select {
		case s.kick <- struct{}{}:
		default: // one is pending
		}
	}
	return w
}

// await waits until w is served, for as long as ctx and patience allow.
func (s *Segment) await(ctx context.Context, w *waiter) (uint64, *idsource.Error) {
	defer w.turn.End()
	limit := time.NewTimer(w.turn.Most)
	defer limit.Stop()
	select {
	case o := <-w.done:
		return o.first, o.err
	case <-ctx.Done():
		return s.giveUp(w, context.Cause(ctx))
	case <-limit.C:
		return s.giveUp(w, nil)
	}
}

// takeChain claims span ids of the first block that has them and forgets the
// blocks in front that have none. The caller holds mu.
func (s *Segment) takeChain(span uint64) (uint64, bool) {
	for b := s.head.Load(); b != nil; b = b.next {
		if first, ok := b.take(span); ok {
			return first, true
		}
		if b.next != nil && b.drained() && s.head.Load() == b {
			s.head.Store(b.next)
		}
	}
	return 0, false
}

// ended says why no more ids will come. The caller holds mu.
func (s *Segment) ended() *idsource.Error {
	switch {
	case s.closed:
		return s.fail(idsource.Closed, nil, "")
	case s.dead != nil:
		return s.dead
	}
	return nil
}

// giveUp takes w off the list. Ids that came in the meantime are used.
func (s *Segment) giveUp(w *waiter, cause error) (uint64, *idsource.Error) {
	s.mu.Lock()
	for i := range s.waiters {
		if s.waiters[i] == w {
			s.waiters = append(s.waiters[:i], s.waiters[i+1:]...)
			break
		}
	}
	failed := s.failed
	s.mu.Unlock()
	select {
	case o := <-w.done:
		return o.first, o.err
	default:
	}
	if failed == nil && cause != nil {
		return 0, s.fail(idsource.NotReady, fmt.Errorf("the wait for a range ended: %w", cause), "")
	}
	return 0, s.storeDown(s.cfg.patience.Why())
}

func (s *Segment) storeDown(err error) *idsource.Error {
	return s.fail(idsource.StoreDown, err, "it is tried again until it answers")
}

// Blocks implements Series, for any size of at least 1.
func (s *Segment) Blocks(ctx context.Context, ids []uint64, size uint64) error {
	if size == 0 || size > s.cfg.MaxBatch {
		return s.tooMany(1, size)
	}
	most := int(min(s.cfg.MaxBatch/size, uint64(len(ids))))
	for left := ids; len(left) > 0; left = left[min(most, len(left)):] {
		if err := s.Fill(ctx, left[:min(most, len(left))], size); err != nil {
			return err
		}
	}
	if most < len(ids) { // a smaller part may have been taken from a lower range
		slices.Sort(ids)
	}
	return nil
}
