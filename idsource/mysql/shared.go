package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"sync"

	"idproxy/idsource"
)

// SharedConfig says which table a Shared store takes ranges from.
type SharedConfig struct {
	DSN     string       // required, as in Config
	Dialect Dialect      // required
	Table   string       // default: as the dialect's system names it
	Logger  *slog.Logger // default: discard
}

// Shared takes ranges from the table of another system, Leaf or tinyid, that goes on taking its
// own: both give ids of one series. It moves max_id as that system does, and makes no
// table, no column, and no key but by Create. It is an idsource.SegmentStore.
type Shared struct {
	*database
	table string // as configured
	say   dialect

	mu     sync.Mutex
	spaced map[string]idsource.Spacing // by key: as the caller of Spacing was told
}

// SharedLast is the greatest id that a Shared store gives: max_id has a sign, and stands behind the ids.
const SharedLast = math.MaxInt64 - 1

var (
	_ idsource.SegmentStore = (*Shared)(nil)
	_ idsource.Tuner        = (*Shared)(nil)
	_ idsource.Spaced       = (*Shared)(nil)
)

var plainTable = regexp.MustCompile(`^[A-Za-z0-9_$]+(\.[A-Za-z0-9_$]+)?$`)

// PlainTable reports whether the name of a table needs no quotes inside, with its database or without.
func PlainTable(name string) bool { return plainTable.MatchString(name) }

// NewShared checks the configuration and connects to nothing.
func NewShared(c SharedConfig) (*Shared, error) {
	if err := c.Dialect.known(); err != nil {
		return nil, fmt.Errorf("mysql store: %w", err)
	}
	if c.Table == "" {
		c.Table = c.Dialect.Table()
	}
	if !PlainTable(c.Table) {
		return nil, fmt.Errorf("mysql store: %q is not the name of a table, with its database or without", c.Table)
	}
	db, err := newDatabase(Config{DSN: c.DSN, Logger: c.Logger})
	if err != nil {
		return nil, err
	}
	db.where += " table " + c.Table
	quoted := "`" + strings.ReplaceAll(c.Table, ".", "`.`") + "`"
	return &Shared{database: db, table: c.Table, say: c.Dialect.statements(quoted), spaced: map[string]idsource.Spacing{}}, nil
}

// row is what the table says of a key.
type row struct {
	next        uint64
	used        bool
	step        uint64
	description string
	spacing     idsource.Spacing
}

// read reads the row of a key; ErrNoKey when there is none.
func (s *Shared) read(ctx context.Context, key string) (row, error) {
	var r row
	var top, step, every, remainder int64
	err := s.db.QueryRowContext(ctx, s.say.position, key).Scan(&top, &r.used, &step, &r.description, &every, &remainder)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, idsource.ErrNoKey
	case err != nil:
		return r, s.wrap(err)
	case top < 0:
		return r, s.wrap(fmt.Errorf("key %q has max_id %d: it must not be below 0", key, top))
	case every < 1 || remainder < 0 || remainder >= every:
		return r, s.wrap(fmt.Errorf("key %q has delta %d and remainder %d: no id is of that series", key, every, remainder))
	}
	r.next, r.step = uint64(top)+s.say.above, uint64(max(step, 0))
	r.spacing = idsource.Spacing{Every: uint64(every), Remainder: uint64(remainder)}
	return r, nil
}

// Reserve implements idsource.SegmentStore.
func (s *Shared) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	if a.Last = min(a.Last, SharedLast); a.Count == 0 || a.Count-1 > a.Last || a.Floor > a.Last || a.High > math.MaxInt64 {
		return 0, 0, s.full(ctx, a)
	}
	at := func(id uint64) uint64 { return id - min(id, s.say.above) } // of max_id
	args := []any{at(a.Floor), a.Count}
	if s.say.spaced {
		known, err := s.told(ctx, a.Key)
		if err != nil {
			return 0, 0, err
		}
		args = append(args, known.Every, known.Remainder)
	}
	args = append(args, a.Key, at(a.Floor), at(a.Last-(a.Count-1)), at(a.High))
	r, err := s.db.ExecContext(ctx, s.say.reserve, args...)
	if err != nil {
		return 0, 0, s.wrap(err)
	}
	rows, err := r.RowsAffected()
	if err != nil {
		return 0, 0, s.wrap(err)
	}
	if rows == 0 {
		return 0, 0, s.full(ctx, a)
	}
	last, err := r.LastInsertId()
	if err != nil {
		return 0, 0, s.wrap(err)
	}
	if hi = uint64(last) + s.say.above; rows != 1 || last < 0 || hi < a.Count {
		return 0, 0, s.wrap(fmt.Errorf("%d rows and max_id %d came of one update", rows, last))
	}
	return hi - a.Count, hi, nil
}

// full finds out why no row was updated.
func (s *Shared) full(ctx context.Context, a idsource.Ask) error {
	r, err := s.read(ctx, a.Key)
	if err != nil {
		return err
	}
	s.mu.Lock()
	known, ok := s.spaced[a.Key]
	s.mu.Unlock()
	switch {
	case ok && known != r.spacing:
		return s.wrap(fmt.Errorf("key %q had delta %d and remainder %d, and now %d and %d: restart idproxy, which then goes by those",
			a.Key, known.Every, known.Remainder, r.spacing.Every, r.spacing.Remainder))
	case r.next < a.High:
		return &idsource.WentBackError{Next: r.next}
	}
	return &idsource.FullError{Next: max(r.next, a.Floor)}
}

// Position implements idsource.SegmentStore.
func (s *Shared) Position(ctx context.Context, key string) (idsource.Position, error) {
	r, err := s.read(ctx, key)
	if errors.Is(err, idsource.ErrNoKey) {
		return idsource.Position{}, nil
	}
	if err != nil {
		return idsource.Position{}, err
	}
	_ = s.WarnOfCrashes(ctx) // tried again at the next call
	return idsource.Position{Next: max(1, r.next), Used: r.used, Unset: !r.used && r.next <= 1+s.say.above}, nil
}

// Advance implements idsource.SegmentStore, but for keys that do not exist: a key that was written
// wrong would begin a series of its own beside the one that the other system has.
func (s *Shared) Advance(ctx context.Context, key string, next uint64) error {
	if _, err := s.read(ctx, key); err != nil {
		return s.explained(key, err)
	}
	return s.change(ctx, s.say.raise, key, next)
}

// Open implements idsource.SegmentStore, but for keys that do not exist: see Create.
func (s *Shared) Open(ctx context.Context, key string, next uint64, _ idsource.Seal) error {
	return s.Advance(ctx, key, next)
}

// explained says what to do about a key that is not there.
func (s *Shared) explained(key string, err error) error {
	if errors.Is(err, idsource.ErrNoKey) {
		return s.wrap(fmt.Errorf("it has no row for key %q: correct key of the source, or make the row with idproxy source create: %w", key, err))
	}
	return err
}

// change puts max_id of a key where next is the lowest id that is not reserved.
func (s *Shared) change(ctx context.Context, statement, key string, next uint64) error {
	if next > math.MaxInt64 {
		return s.wrap(fmt.Errorf("%d is beyond the greatest id that max_id can stand at", next))
	}
	if _, err := s.db.ExecContext(ctx, statement, next-min(next, s.say.above), key); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Seal implements idsource.SegmentStore: the other system would not heed it.
func (s *Shared) Seal(context.Context, string, uint64, idsource.Seal) (idsource.Position, error) {
	return idsource.Position{}, s.wrap(errors.ErrUnsupported)
}

// Set puts an existing key at next, as Store.Set does.
func (s *Shared) Set(ctx context.Context, key string, next uint64) error {
	return s.change(ctx, s.say.set, key, next)
}

// GiveBack implements idsource.SegmentStore.
func (s *Shared) GiveBack(ctx context.Context, key string, lo, hi uint64) (bool, error) {
	if lo >= hi || lo < s.say.above {
		return false, nil
	}
	return changed(s.db.ExecContext(ctx, s.say.giveBack, lo-s.say.above, key, hi-s.say.above))
}

// Keys lists the keys there are.
func (s *Shared) Keys(ctx context.Context) ([]string, error) {
	keys, err := queryKeys(ctx, s.db, s.say.keys)
	if err != nil {
		return nil, s.wrap(err)
	}
	return keys, nil
}

// Tuning implements idsource.Tuner.
func (s *Shared) Tuning(ctx context.Context, key string) (idsource.Tuning, error) {
	r, err := s.read(ctx, key)
	if errors.Is(err, idsource.ErrNoKey) {
		return idsource.Tuning{}, nil
	}
	return idsource.Tuning{Step: r.step, Description: r.description}, err
}

// fits says why the table has no room for how a series is tuned.
func (s *Shared) fits(t idsource.Tuning) error {
	switch {
	case t.MaxStep != 0 || t.Policy != "":
		return s.wrap(errors.New("it has no columns for max_step and policy: set them in the configuration"))
	case t.Description != "" && !s.say.describe:
		return s.wrap(errors.New("it has no column for a description"))
	case t.Step > math.MaxInt32:
		return s.wrap(fmt.Errorf("its column for the step holds at most %d", math.MaxInt32))
	case t.Step == 0:
		return s.wrap(errors.New("a key needs a step: the other system takes as many ids at once"))
	}
	return nil
}

// Tune implements idsource.Tuner. The other system obeys the step, too.
func (s *Shared) Tune(ctx context.Context, key string, t idsource.Tuning) error {
	if err := s.fits(t); err != nil {
		return err
	}
	if _, err := s.read(ctx, key); err != nil {
		return err
	}
	args := []any{t.Step, key}
	if s.say.describe {
		args = []any{t.Step, t.Description, key}
	}
	if _, err := s.db.ExecContext(ctx, s.say.tune, args...); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Create makes a key that stands at next. The other system serves it, too.
func (s *Shared) Create(ctx context.Context, key string, next uint64, t idsource.Tuning) error {
	if err := s.fits(t); err != nil {
		return err
	}
	if next > math.MaxInt64 {
		return s.wrap(fmt.Errorf("%d is beyond the greatest id that max_id can stand at", next))
	}
	args := []any{key, next - min(next, s.say.above), t.Step}
	if s.say.describe {
		args = append(args, t.Description)
	}
	if _, err := s.db.ExecContext(ctx, s.say.create, args...); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Spacing implements idsource.Spaced.
func (s *Shared) Spacing(ctx context.Context, key string) (idsource.Spacing, error) {
	r, err := s.read(ctx, key)
	if err != nil {
		return idsource.Spacing{}, s.explained(key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.spaced[key]; ok {
		return known, nil
	}
	s.spaced[key] = r.spacing
	return r.spacing, nil
}

// told returns the spacing that the caller knows of, or reads it.
func (s *Shared) told(ctx context.Context, key string) (idsource.Spacing, error) {
	s.mu.Lock()
	known, ok := s.spaced[key]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	r, err := s.read(ctx, key)
	return r.spacing, err
}

// Servers implements what database.Servers says, of the one table.
func (s *Shared) Servers(ctx context.Context) ([]Server, error) {
	servers, err := s.database.Servers(ctx)
	for i := range servers {
		servers[i].Identity += " table " + s.table
	}
	return servers, err
}

// CheckTable says why the table is not one of the dialect.
func (s *Shared) CheckTable(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, s.say.columns)
	if err != nil {
		return s.wrap(err)
	}
	return errors.Join(rows.Close(), rows.Err())
}
