package idsource

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"
)

// faultStore is a SegmentStore in memory that fails on demand.
type faultStore struct {
	mu       sync.Mutex
	keys     map[string]Position
	reserves []Ask
	inFlight int
	most     int // calls of Reserve in flight at once
	down     error
	lose     bool          // reserve, then answer with an error
	block    chan struct{} // not nil: Reserve and Position wait until it is closed
}

func newFaultStore() *faultStore { return &faultStore{keys: map[string]Position{}} }

var errDown = errors.New("connection refused")

func (s *faultStore) set(change func(*faultStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *faultStore) snapshot() map[string]Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.keys)
}

func (s *faultStore) calls() []Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Ask(nil), s.reserves...)
}

func (s *faultStore) enter(ctx context.Context) error {
	s.mu.Lock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	err := s.hang(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	return err
}

func (s *faultStore) hang(ctx context.Context) error {
	s.mu.Lock()
	block := s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (s *faultStore) Reserve(ctx context.Context, a Ask) (lo, hi uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserves = append(s.reserves, a)
	if s.down != nil {
		return 0, 0, s.down
	}
	p, ok := s.keys[a.Key]
	if !ok {
		return 0, 0, ErrNoKey
	}
	if p.Next < a.High {
		return 0, 0, &WentBackError{Next: p.Next}
	}
	lo = max(p.Next, a.Floor)
	if lo > a.Last || a.Count > a.Last-lo+1 {
		return 0, 0, &FullError{Next: lo}
	}
	s.keys[a.Key] = Position{Next: lo + a.Count, Used: true}
	if s.lose {
		s.lose = false
		return 0, 0, errors.New("connection lost")
	}
	return lo, lo + a.Count, nil
}

func (s *faultStore) Position(ctx context.Context, key string) (Position, error) {
	if err := s.hang(ctx); err != nil {
		return Position{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key], s.down
}

func (s *faultStore) Advance(_ context.Context, key string, next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	p := s.keys[key]
	p.Next = max(p.Next, next)
	s.keys[key] = p
	return nil
}

func (s *faultStore) GiveBack(_ context.Context, key string, lo, hi uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil || s.keys[key].Next != hi {
		return false, s.down
	}
	s.keys[key] = Position{Next: lo, Used: true}
	return true, nil
}

// newTestSegment makes a source that the test's end closes.
func newTestSegment(t testing.TB, c SegmentConfig) *Segment {
	t.Helper()
	if c.Name == "" {
		c.Name = "order_id"
	}
	s, err := NewSegment(c)
	if err != nil {
		t.Fatalf("NewSegment: %v", err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // some tests leave the store down
	return s
}

// fill asks for n ids, stride apart.
func fill(t testing.TB, s Series, n int, stride uint64) []uint64 {
	t.Helper()
	ids := make([]uint64, n)
	if err := s.Fill(t.Context(), ids, stride); err != nil {
		t.Fatalf("Fill of %d ids, %d apart: %v", n, stride, err)
	}
	return ids
}

// repeated returns an id that occurs twice.
func repeated(ids []uint64) (uint64, bool) {
	seen := make(map[uint64]struct{}, len(ids))
	for _, id := range ids {
		if _, ok := seen[id]; ok {
			return id, true
		}
		seen[id] = struct{}{}
	}
	return 0, false
}

// wantKind checks that err is an *Error of the kind.
func wantKind(t testing.TB, what string, err error, kind Kind) {
	t.Helper()
	if _, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, kind) {
		t.Errorf("%s: %v, want an *Error of kind %q", what, err, kind)
	}
}

// waits is for Wait of a configuration.
func waits(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
