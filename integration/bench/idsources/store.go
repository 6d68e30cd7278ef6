package idsources

import (
	"context"
	"sync"
	"time"

	"idproxy/idsource"
)

// store is a SegmentStore of one key in memory that takes its time.
type store struct {
	delay time.Duration // of each Reserve
	gap   uint64        // ids that others take behind every range, so that none joins the next

	mu   sync.Mutex
	next uint64
}

// Reserve implements idsource.SegmentStore.
func (s *store) Reserve(_ context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	lo = max(s.next, a.Floor)
	s.next = lo + a.Count + s.gap
	return lo, lo + a.Count, nil
}

// Position implements idsource.SegmentStore.
func (s *store) Position(context.Context, string) (idsource.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return idsource.Position{Next: s.next, Used: s.next > 0}, nil
}

// Advance implements idsource.SegmentStore.
func (s *store) Advance(_ context.Context, _ string, next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, next)
	return nil
}

// GiveBack implements idsource.SegmentStore.
func (s *store) GiveBack(context.Context, string, uint64, uint64) (bool, error) { return false, nil }

// Open implements idsource.SegmentStore.
func (s *store) Open(ctx context.Context, key string, next uint64, _ idsource.Seal) error {
	return s.Advance(ctx, key, next)
}

// Seal implements idsource.SegmentStore.
func (s *store) Seal(context.Context, string, uint64, idsource.Seal) (idsource.Position, error) {
	return idsource.Position{}, nil
}

// fences is a FenceStore of one worker number in memory, which was used long ago.
type fences struct {
	mu    sync.Mutex
	fence uint64
}

// Acquire implements idsource.FenceStore.
func (f *fences) Acquire(context.Context, uint64, idsource.Shape) (idsource.Lease, error) {
	return f, nil
}

// Fence implements idsource.Lease.
func (f *fences) Fence() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fence
}

// Raise implements idsource.Lease.
func (f *fences) Raise(_ context.Context, fence uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fence = fence
	return nil
}

// Release implements idsource.Lease.
func (f *fences) Release(ctx context.Context, fence uint64) error { return f.Raise(ctx, fence) }
