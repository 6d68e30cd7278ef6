package file

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"

	"idproxy/idsource"
)

// Config says where a Store is.
type Config struct {
	Dir    string       // required: the folder; created when it does not exist, its parent must
	Logger *slog.Logger // default: discard
}

// Store keeps positions and fences in a folder. It is both an
// idsource.SegmentStore and an idsource.FenceStore.
type Store struct {
	dir    string
	logger *slog.Logger
	turn   chan struct{} // holds one token; whoever has it may use the fields below
	ready  bool          // the folder was looked at
	shared bool          // the positions are let go of after each use
	lock   *lock         // of the positions; nil until they are used
	keys   positions     // as in the file; nil when that is unknown
}

var (
	_ idsource.SegmentStore = (*Store)(nil)
	_ idsource.FenceStore   = (*Store)(nil)
)

// New checks the configuration and touches no file.
func New(c Config) (*Store, error) {
	if c.Dir == "" {
		return nil, errors.New("a file store needs a folder")
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{dir: dir, logger: c.Logger, turn: make(chan struct{}, 1)}, nil
}

// Prepare looks at the folder, and creates it when it does not exist. The other
// methods do so too; calling it at the start tells of a bad folder early.
func (s *Store) Prepare(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	s.leave()
	return nil
}

// enter waits for the turn and makes sure that the folder is a store.
func (s *Store) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := s.prepare(); err != nil {
		s.leave()
		return err
	}
	return nil
}

// leave ends the turn, and lets another process have its own.
func (s *Store) leave() {
	if s.shared && s.lock != nil {
		if err := s.letGo(); err != nil {
			s.logger.Warn("positions not let go of", "file.directory", s.dir, "error.message", err)
		}
	}
	<-s.turn
}

// letGo forgets the positions: another process may change them from now on.
func (s *Store) letGo() error {
	l := s.lock
	s.lock, s.keys = nil, nil
	return l.release()
}

// Share has the store keep the positions for as long as one use of them takes, so that another
// process that shares them has its turn. It is for the time in which one process takes the other's
// place. Otherwise the store keeps them once it has used them.
func (s *Store) Share(with bool) {
	s.turn <- struct{}{}
	defer s.leave()
	s.shared = with
}

func (s *Store) prepare() error {
	if s.ready {
		return nil
	}
	created, err := prepare(s.dir)
	if err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	if created {
		s.logger.Warn("file store created: its ids are unique on this host only", "file.directory", s.dir)
	}
	s.ready = true
	return nil
}

// load locks and reads the positions unless that was done before.
func (s *Store) load(ctx context.Context) error {
	if s.lock == nil {
		path := filepath.Join(s.dir, segmentsFile+".lock")
		l, err := acquire(path)
		if err != nil && s.shared {
			l, err = acquireSoon(ctx, path)
		}
		if err != nil {
			return err
		}
		s.lock = l
	}
	if err := s.lock.valid(); err != nil {
		return err
	}
	if s.keys != nil {
		return nil
	}
	path := filepath.Join(s.dir, segmentsFile)
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if s.keys, err = parsePositions(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// change moves one key. move gets the position, or false when there is none,
// and returns the new one. The file is written before change returns, unless nothing is new. made
// says whether a key is made that stays at 0.
func (s *Store) change(ctx context.Context, key string, made bool, move func(idsource.Position, bool) (idsource.Position, error)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if err := s.load(ctx); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	old, exists := s.keys[key]
	p, err := move(old, exists)
	if err != nil || p == old && (exists || !made) {
		return err
	}
	keys := maps.Clone(s.keys)
	keys[key] = p
	if err := replace(filepath.Join(s.dir, segmentsFile), keys.render()); err != nil {
		// The file may hold either content, and either will do: the ids
		// between the two are nobody's, since the caller gets an error.
		return fmt.Errorf("file store: %w", err)
	}
	s.keys = keys
	return nil
}

// Reserve implements idsource.SegmentStore.
func (s *Store) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	err = s.change(ctx, a.Key, false, func(p idsource.Position, exists bool) (idsource.Position, error) {
		if !exists {
			return p, idsource.ErrNoKey
		}
		if p.Sealed != 0 {
			return p, &idsource.SealedError{Next: p.Next}
		}
		if p.Next < a.High {
			return p, &idsource.WentBackError{Next: p.Next}
		}
		lo = max(p.Next, a.Floor)
		if lo > a.Last || a.Count > a.Last-lo+1 {
			return p, &idsource.FullError{Next: lo}
		}
		hi = lo + a.Count
		return idsource.Position{Next: hi, Used: true}, nil
	})
	if err != nil {
		return 0, 0, err
	}
	return lo, hi, nil
}

// Position implements idsource.SegmentStore.
func (s *Store) Position(ctx context.Context, key string) (idsource.Position, error) {
	if err := s.enter(ctx); err != nil {
		return idsource.Position{}, err
	}
	defer s.leave()
	if err := s.load(ctx); err != nil {
		return idsource.Position{}, fmt.Errorf("file store: %w", err)
	}
	p, ok := s.keys[key]
	if ok {
		p = shown(p)
	}
	return p, nil
}

// shown is a position as others know it: what was opened at 0 stands at 0 in the file.
func shown(p idsource.Position) idsource.Position {
	p.Next, p.Unset = max(1, p.Next), p.Next == 0
	return p
}

// Ping asks whether positions can be read and written, and changes none.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.Position(ctx, ""); err != nil {
		return err
	}
	if err := Writable(s.dir); err != nil {
		return fmt.Errorf("file store: %w", err)
	}
	return nil
}

// Advance implements idsource.SegmentStore.
func (s *Store) Advance(ctx context.Context, key string, next uint64) error {
	return s.change(ctx, key, false, func(p idsource.Position, exists bool) (idsource.Position, error) {
		switch {
		case !exists:
			return p, idsource.ErrNoKey
		case p.Sealed != 0:
			return p, &idsource.SealedError{Next: p.Next}
		}
		p.Next = max(p.Next, next)
		return p, nil
	})
}

// Open implements idsource.SegmentStore.
func (s *Store) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	return s.change(ctx, key, true, func(p idsource.Position, _ bool) (idsource.Position, error) {
		if p.Sealed != 0 && p.Sealed != seal && seal != idsource.AnySeal {
			return p, &idsource.SealedError{Next: p.Next}
		}
		p.Next, p.Sealed = max(p.Next, next), 0
		return p, nil
	})
}

// Seal implements idsource.SegmentStore.
func (s *Store) Seal(ctx context.Context, key string, below uint64, seal idsource.Seal) (at idsource.Position, err error) {
	err = s.change(ctx, key, false, func(p idsource.Position, _ bool) (idsource.Position, error) {
		if p.Sealed == 0 && p.Next < below {
			p.Sealed = seal
		}
		at = shown(p)
		return p, nil
	})
	return at, err
}

// Set puts an existing key at next, also below where it stands, and opens it: whoever calls
// it knows that no id from next on is in use.
func (s *Store) Set(ctx context.Context, key string, next uint64) error {
	return s.change(ctx, key, false, func(p idsource.Position, exists bool) (idsource.Position, error) {
		if exists {
			p.Next, p.Sealed = next, 0
		}
		return p, nil
	})
}

// Keys lists the keys there are.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := s.load(ctx); err != nil {
		return nil, fmt.Errorf("file store: %w", err)
	}
	return slices.Sorted(maps.Keys(s.keys)), nil
}

// Peek reads the positions of a folder that another process may be using: it
// takes no lock, makes no folder, and what it returns may be old by then.
func Peek(dir string) (map[string]idsource.Position, error) {
	path := filepath.Join(dir, segmentsFile)
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	keys, err := parsePositions(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for key, p := range keys {
		keys[key] = shown(p)
	}
	return keys, nil
}

// GiveBack implements idsource.SegmentStore.
func (s *Store) GiveBack(ctx context.Context, key string, lo, hi uint64) (back bool, err error) {
	err = s.change(ctx, key, false, func(p idsource.Position, _ bool) (idsource.Position, error) {
		if p.Next != hi || lo >= hi || p.Sealed != 0 {
			return p, nil
		}
		p.Next, back = lo, true
		return p, nil
	})
	return back && err == nil, err
}

// Close lets another process have the positions. Worker numbers are released
// by their sources.
func (s *Store) Close() error {
	s.turn <- struct{}{}
	defer s.leave()
	s.ready = false
	if s.lock == nil {
		return nil
	}
	return s.letGo()
}
