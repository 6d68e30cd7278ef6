package segment

import (
	"context"
	"fmt"

	"idproxy/idsource"
)

// Advance drops the ids held in memory up to id. Where the last range that
// this process fetched ends above id, the store stands above it too, and
// nothing is asked. Otherwise a range above id is fetched, which raises the
// store. See Series.
//
// From then on Close keeps one id of the newest range. If it gave the whole range back, the
// process that holds the range in front could give that back too, and so on down to id.
//
// A store that stands below where this process knows it to be must refuse the fetch, although
// the floor would hide that it went back.
func (s *Segment) Advance(ctx context.Context, id uint64) error {
	if err := s.raise(ctx, id); err != nil {
		return err
	}
	s.mu.Lock()
	w, err := s.advance(id)
	s.mu.Unlock()
	if err == nil && w != nil {
		_, err = s.await(ctx, w)
	}
	if err != nil { // an *Error
		return err
	}
	return nil
}

// raise has all parts of a store of several stand above id.
func (s *Segment) raise(ctx context.Context, id uint64) error {
	parts, ok := s.cfg.Store.(idsource.Raiser)
	s.mu.Lock()
	needless, ended := id < s.raised, s.ended()
	s.mu.Unlock()
	if !ok || needless || ended != nil || s.tooHigh(id) {
		return nil // advance says what is wrong
	}
	err := s.ask(ctx, func(ctx context.Context) error { return parts.Raise(ctx, s.cfg.Key, id+1) })
	if err != nil { // an *Error
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raised = max(s.raised, id+1)
	return nil
}

// tooHigh says whether fewer ids than a step are left above id.
func (s *Segment) tooHigh(id uint64) bool { return id > s.cfg.Last || s.cfg.Last-id < s.cfg.MaxStep }

// advance does what needs no waiting. The caller holds mu.
func (s *Segment) advance(id uint64) (*waiter, *idsource.Error) {
	if err := s.ended(); err != nil {
		return nil, err
	}
	if id < s.high {
		s.skip(id + 1)
		return nil, nil
	}
	if s.tooHigh(id) {
		return nil, s.fail(idsource.TooHigh, fmt.Errorf("%d cannot be moved past: fewer than %d ids would be left below the greatest allowed, %d",
			id, s.cfg.MaxStep, s.cfg.Last), "insert a lower id, or use explicit: keep")
	}
	s.skip(id + 1)
	return s.enqueue(&waiter{past: id + 1}), nil
}

// Return implements Series. Ids that Advance has moved past meanwhile are not issued again.
func (s *Segment) Return(first, end uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended() == nil {
		s.chain.untake(max(first, s.past), end)
	}
}

// skip drops what is held below id. The caller holds mu.
func (s *Segment) skip(id uint64) {
	if id <= s.past {
		return
	}
	s.past = id
	s.chain.skip(id)
	s.prefetch()
}
