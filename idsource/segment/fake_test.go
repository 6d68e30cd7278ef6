package segment

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"idproxy/idsource"
	"idproxy/integration/assert"
)

// faultStore is a SegmentStore in memory that fails on demand.
type faultStore struct {
	mu       sync.Mutex
	keys     map[string]idsource.Position
	reserves []idsource.Ask
	inFlight int
	most     int // calls of Reserve in flight at once
	down     error
	strict   bool          // a key that nobody made is none
	lose     bool          // reserve, then answer with an error
	block    chan struct{} // not nil: Reserve and Position wait until it is closed
}

func newFaultStore() *faultStore { return &faultStore{keys: map[string]idsource.Position{}} }

func (s *faultStore) set(change func(*faultStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// at returns where a key stands: one that nobody made is there all the same, unless the store is strict. The caller holds mu.
func (s *faultStore) at(key string) (p idsource.Position, ok bool) {
	if p, ok = s.keys[key]; !ok && !s.strict {
		return idsource.Position{Next: 1, Unset: true}, true
	}
	return p, ok
}

func (s *faultStore) snapshot() map[string]idsource.Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.keys)
}

func (s *faultStore) calls() []idsource.Ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]idsource.Ask(nil), s.reserves...)
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

func (s *faultStore) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reserves = append(s.reserves, a)
	if s.down != nil {
		return 0, 0, s.down
	}
	p, ok := s.at(a.Key)
	if !ok {
		return 0, 0, idsource.ErrNoKey
	}
	if p.Sealed != 0 {
		return 0, 0, &idsource.SealedError{Next: p.Next}
	}
	if p.Next < a.High {
		return 0, 0, &idsource.WentBackError{Next: p.Next}
	}
	lo = max(p.Next, a.Floor)
	if lo > a.Last || a.Count > a.Last-lo+1 {
		return 0, 0, &idsource.FullError{Next: lo}
	}
	s.keys[a.Key] = idsource.Position{Next: lo + a.Count, Used: true}
	if s.lose {
		s.lose = false
		return 0, 0, errors.New("connection lost")
	}
	return lo, lo + a.Count, nil
}

func (s *faultStore) Position(ctx context.Context, key string) (idsource.Position, error) {
	if err := s.hang(ctx); err != nil {
		return idsource.Position{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, _ := s.at(key)
	return p, s.down
}

func (s *faultStore) Advance(_ context.Context, key string, next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	p, ok := s.at(key)
	switch {
	case !ok:
		return idsource.ErrNoKey
	case p.Sealed != 0:
		return &idsource.SealedError{Next: p.Next}
	}
	p.Next, p.Unset = max(p.Next, next), false
	s.keys[key] = p
	return nil
}

func (s *faultStore) Open(_ context.Context, key string, next uint64, seal idsource.Seal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	p := s.keys[key]
	if p.Sealed != 0 && p.Sealed != seal && seal != idsource.AnySeal {
		return &idsource.SealedError{Next: p.Next}
	}
	p.Next, p.Unset, p.Sealed = max(1, p.Next, next), next == 0 && p.Next <= 1 && !p.Used, 0
	s.keys[key] = p
	return nil
}

func (s *faultStore) Seal(_ context.Context, key string, below uint64, seal idsource.Seal) (idsource.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.keys[key]
	if !ok {
		p = idsource.Position{Next: 1, Unset: true}
	}
	if s.down == nil && p.Next < below && p.Sealed == 0 {
		p.Sealed = seal
		s.keys[key] = p
	}
	return p, s.down
}

func (s *faultStore) GiveBack(_ context.Context, key string, lo, hi uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil || s.keys[key].Next != hi || s.keys[key].Sealed != 0 {
		return false, s.down
	}
	s.keys[key] = idsource.Position{Next: lo, Used: true}
	return true, nil
}

// newTestSegment makes a source that the test's end closes.
func newTestSegment(t testing.TB, c Config) *Segment {
	t.Helper()
	if c.Name == "" {
		c.Name = "order_id"
	}
	s := assert.Of(New(c)).Must(t, "NewSegment")
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // some tests leave the store down
	return s
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
