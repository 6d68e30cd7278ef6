package simulation

import (
	"context"
	"maps"
	"slices"
	"time"

	"idproxy/idsource"
)

// positions is a store of segments, as a server has it.
type positions struct {
	node
	keys   map[string]idsource.Position
	past   []change      // all changes, oldest first
	newest grant         // the range that came last to who reserved it
	unsafe time.Duration // a fault of the store: it answers so long before its disk has a change
	loose  bool          // a fault of the store: what is given back is not compared
}

// change is what a key was before.
type change struct {
	at     time.Time
	key    string
	before idsource.Position
	by     *process // that was given a range, or gave one back; nil: another change
}

// grant is a range that a process reserved.
type grant struct {
	lo, hi uint64
	p      *process
}

func (s *positions) set(key string, p idsource.Position) { s.setBy(key, p, nil) }

func (s *positions) setBy(key string, p idsource.Position, by *process) {
	s.past = append(s.past, change{time.Now(), key, s.keys[key], by})
	s.keys[key] = p
	sealed := uint64(0)
	if p.Sealed != 0 {
		sealed = 1
	}
	s.w.note("position "+key, p.Next, sealed)
}

// back undoes all changes made behind a moment. The caller holds mu.
func (s *positions) back(to time.Time) {
	for n := len(s.past); n > 0 && s.past[n-1].at.After(to); n-- {
		s.keys[s.past[n-1].key] = s.past[n-1].before
		s.past = s.past[:n-1]
	}
	s.w.note("back", s.keys[key].Next)
}

// backBefore undoes the newest changes that are ranges of one process, behind a moment, and reports whether there are any. The
// caller holds mu.
func (s *positions) backBefore(p *process, to time.Time) bool {
	n := len(s.past)
	for n > 0 && s.past[n-1].by == p && s.past[n-1].at.After(to) {
		n--
	}
	if n == len(s.past) {
		return false
	}
	s.life++
	for len(s.past) > n {
		last := s.past[len(s.past)-1]
		s.keys[last.key] = last.before
		s.past = s.past[:len(s.past)-1]
	}
	s.w.note("back", uint64(n))
	return true
}

// crash loses what the disk does not have yet. The caller holds mu.
func (s *positions) crash(down time.Duration) {
	if s.down {
		return
	}
	s.back(time.Now().Add(-s.waits - s.unsafe))
	s.life++
	s.down = true
	time.AfterFunc(down, func() {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.down = false
	})
}

// key is that of the fleet's series.
const key = "order_id"

// reserve is one step of the server.
func (s *positions) reserve(p *process, a idsource.Ask) (r grant, err error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	at := s.keys[a.Key]
	if at == (idsource.Position{}) {
		return grant{}, idsource.ErrNoKey
	}
	if at.Sealed != 0 {
		return grant{}, &idsource.SealedError{Next: at.Next}
	}
	if at.Next < a.High {
		return grant{}, &idsource.WentBackError{Next: at.Next}
	}
	r = grant{lo: max(at.Next, a.Floor), p: p}
	if r.lo > a.Last || a.Count > a.Last-r.lo+1 {
		return grant{}, &idsource.FullError{Next: r.lo}
	}
	r.hi = r.lo + a.Count
	s.setBy(a.Key, idsource.Position{Next: r.hi, Used: true}, p)
	return r, nil
}

func (s *positions) position(name string) (idsource.Position, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.keys[name], nil
}

func (s *positions) advance(name string, next uint64) (bool, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch at := s.keys[name]; {
	case at == idsource.Position{}:
		return false, idsource.ErrNoKey
	case at.Sealed != 0:
		return false, &idsource.SealedError{Next: at.Next}
	case at.Next < next:
		s.set(name, idsource.Position{Next: next, Used: at.Used})
	}
	return true, nil
}

func (s *positions) open(name string, next uint64, seal idsource.Seal) (bool, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	at := s.keys[name]
	if at.Sealed != 0 && at.Sealed != seal && seal != idsource.AnySeal {
		return false, &idsource.SealedError{Next: at.Next}
	}
	s.set(name, idsource.Position{Next: max(1, at.Next, next), Used: at.Used, Unset: next == 0 && at.Next <= 1 && !at.Used})
	return true, nil
}

func (s *positions) seal(name string, below uint64, seal idsource.Seal) (idsource.Position, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	at := s.keys[name]
	if at == (idsource.Position{}) {
		at = idsource.Position{Next: 1, Unset: true}
	}
	if at.Next < below && at.Sealed == 0 {
		at.Sealed = seal
		s.set(name, at)
	}
	return at, nil
}

func (s *positions) list() ([]string, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return slices.Sorted(maps.Keys(s.keys)), nil
}

// giveBack happens once however often it is heard: done is of the one request.
func (s *positions) giveBack(p *process, name string, lo, hi uint64, done *bool) (bool, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.keys[name].Next != hi && !s.loose || s.keys[name].Sealed != 0 || *done {
		return false, nil
	}
	*done = true
	s.setBy(name, idsource.Position{Next: lo, Used: true}, p)
	return true, nil
}

// client is the store as a process has it.
type client struct {
	p    *process
	s    *positions
	held []grant // ranges that came, the newest ones
}

func (c *client) node() *node { return &c.s.node }

// Reserve implements idsource.SegmentStore.
func (c *client) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	g, err := callAbout(ctx, c.p, a.Key, c.node, errRefused, func() (grant, error) { return c.s.reserve(c.p, a) })
	if err == nil {
		c.p.host.w.mu.Lock()
		c.held = append(c.held[max(0, len(c.held)-64):], g)
		c.s.newest = g
		c.p.host.w.mu.Unlock()
	}
	return g.lo, g.hi, err
}

// Position implements idsource.SegmentStore.
func (c *client) Position(ctx context.Context, name string) (idsource.Position, error) {
	return callAbout(ctx, c.p, name, c.node, errRefused, func() (idsource.Position, error) { return c.s.position(name) })
}

// Advance implements idsource.SegmentStore.
func (c *client) Advance(ctx context.Context, name string, next uint64) error {
	_, err := callAbout(ctx, c.p, name, c.node, errRefused, func() (bool, error) { return c.s.advance(name, next) })
	return err
}

// Open implements idsource.SegmentStore.
func (c *client) Open(ctx context.Context, name string, next uint64, seal idsource.Seal) error {
	_, err := callAbout(ctx, c.p, name, c.node, errRefused, func() (bool, error) { return c.s.open(name, next, seal) })
	return err
}

// Seal implements idsource.SegmentStore.
func (c *client) Seal(ctx context.Context, name string, below uint64, seal idsource.Seal) (idsource.Position, error) {
	return callAbout(ctx, c.p, name, c.node, errRefused, func() (idsource.Position, error) { return c.s.seal(name, below, seal) })
}

// GiveBack implements idsource.SegmentStore.
func (c *client) GiveBack(ctx context.Context, name string, lo, hi uint64) (bool, error) {
	var done bool
	return callAbout(ctx, c.p, name, c.node, errRefused, func() (bool, error) { return c.s.giveBack(c.p, name, lo, hi, &done) })
}
