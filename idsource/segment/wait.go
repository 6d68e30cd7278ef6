package segment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"idproxy/idsource"
)

// wait takes from the whole chain, or waits until the loader brings a range.
func (s *Segment) wait(ctx context.Context, span uint64) (uint64, *idsource.Error) {
	s.mu.Lock()
	first, ok := s.chain.takeAny(span)
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

// giveUp takes w off the list. Ids that came in the meantime are used.
func (s *Segment) giveUp(w *waiter, cause error) (uint64, *idsource.Error) {
	s.mu.Lock()
	s.waiters.remove(w)
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

// ask asks the store, for as long as patience allows.
func (s *Segment) ask(ctx context.Context, what func(ctx context.Context) error) error {
	t, ok := s.cfg.patience.Begin()
	if !ok {
		return s.storeDown(s.cfg.patience.Why())
	}
	defer t.End()
	limited, cancel := context.WithTimeout(ctx, t.Most)
	defer cancel()
	err := what(limited)
	if err != nil && ctx.Err() != nil { // the client has gone, which tells nothing of the store
		s.cfg.patience.Left()
		return s.storeDown(err)
	}
	if errors.Is(err, idsource.ErrNoKey) { // which is an answer
		s.cfg.patience.Answered(nil)
		return s.fail(idsource.BadConfig, err, "")
	}
	if sealed, ok := errors.AsType[*idsource.SealedError](err); ok { // likewise
		s.cfg.patience.Answered(nil)
		return s.fail(idsource.Behind, sealed, "")
	}
	s.cfg.patience.Answered(err)
	if err != nil {
		return s.storeDown(err)
	}
	return nil
}
