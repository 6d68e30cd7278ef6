package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"idproxy/idsource"
)

// maxKey is the length of the key column, in characters.
const maxKey = 255

const (
	// openKey, raiseKey: a step below zero seals the row, and says who did. The order of what is set counts: the server
	// takes the new value of a column in what follows.
	openKey = "INSERT INTO idproxy_segment (biz_tag, max_id, step) VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE " +
		"max_id = IF(step >= 0 OR ? OR step = ?, GREATEST(max_id, ?), max_id), step = IF(step < 0 AND (? OR step = ?), max_id > 0, step)"
	raiseKey = "UPDATE idproxy_segment SET max_id = GREATEST(max_id, ?) WHERE biz_tag = ? AND step >= 0"
	// insertKey leaves a row as it is that is sealed.
	insertKey = "INSERT INTO idproxy_segment (biz_tag, max_id, step) VALUES (?, ?, 0) " +
		"ON DUPLICATE KEY UPDATE max_id = IF(step < 0, max_id, GREATEST(max_id, ?))"
	// reserve: the server remembers the value of LAST_INSERT_ID(expr) and sends it in
	// the OK packet, so the new position comes back without a second question.
	// The cast keeps the sum an unsigned integer: an unsigned column and a
	// signed literal make a decimal.
	//
	// The last condition stops a process that knows nothing of a group that the
	// server was made part of.
	reserve = "UPDATE idproxy_segment SET max_id = LAST_INSERT_ID(CAST(GREATEST(max_id, ?) + ? AS UNSIGNED)), step = ? " +
		"WHERE biz_tag = ? AND step >= 0 AND GREATEST(max_id, ?) <= ? AND max_id >= ? " +
		"AND NOT EXISTS (SELECT 1 FROM idproxy_store WHERE name = 'servers' OR name = 'version' AND value <> '1')"
	position = "SELECT max_id, step FROM idproxy_segment WHERE biz_tag = ?"
	giveBack = "UPDATE idproxy_segment SET max_id = ? WHERE biz_tag = ? AND max_id = ? AND step >= 0"
	setKey   = "UPDATE idproxy_segment SET max_id = ?, step = IF(step < 0, 1, step) WHERE biz_tag = ?"
	sealKey  = "INSERT INTO idproxy_segment (biz_tag, max_id, step) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE step = IF(step >= 0 AND max_id < ?, ?, step)"
	allKeys  = "SELECT biz_tag FROM idproxy_segment ORDER BY biz_tag"
)

// Store keeps positions in a table. It is an idsource.SegmentStore.
type Store struct{ *database }

var _ idsource.SegmentStore = (*Store)(nil)

// New checks the DSN and connects to nothing. No error of the package repeats
// the DSN.
func New(c Config) (*Store, error) {
	s, err := newDatabase(c)
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// checkKey refuses what the column would cut or the server would not take:
// two keys cut to the same row would be a surprise.
func (s *Store) checkKey(key string) error {
	if !utf8.ValidString(key) || utf8.RuneCountInString(key) > maxKey {
		return s.wrap(fmt.Errorf("key %.200q is not UTF-8 text of at most %d characters", key, maxKey))
	}
	return nil
}

// Reserve implements idsource.SegmentStore.
func (s *Store) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	if err := s.checkKey(a.Key); err != nil {
		return 0, 0, err
	}
	if a.Count == 0 || a.Count-1 > a.Last {
		return 0, 0, s.full(ctx, a)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return 0, 0, s.wrap(err)
	}
	defer conn.Close() //nolint:errcheck // back to the pool
	step := min(a.Count, math.MaxInt32)
	m, err := s.take(ctx, conn, a, reserve, a.Floor, a.Count, step, a.Key, a.Floor, a.Last-(a.Count-1), a.High)
	if noTable(err) {
		return 0, 0, idsource.ErrNoKey
	}
	if err != nil {
		return 0, 0, s.wrap(err)
	}
	if m.rows == 0 {
		return 0, 0, s.full(ctx, a)
	}
	if hi = m.next; m.rows != 1 || hi < a.Count {
		return 0, 0, s.wrap(fmt.Errorf("%d rows and position %d came of one update", m.rows, hi))
	}
	return hi - a.Count, hi, nil
}

// full finds out why no row was updated.
func (s *Store) full(ctx context.Context, a idsource.Ask) error {
	if err := s.checkTables(ctx); err != nil {
		return err
	}
	next, step, err := readRow(ctx, s.db, a.Key)
	if errors.Is(err, sql.ErrNoRows) {
		return idsource.ErrNoKey
	}
	if err != nil {
		return s.wrap(err)
	}
	if step < 0 {
		return &idsource.SealedError{Next: next}
	}
	if next < a.High {
		return &idsource.WentBackError{Next: next}
	}
	return &idsource.FullError{Next: max(next, a.Floor)}
}

func readRow(ctx context.Context, db querier, key string) (next uint64, step int64, err error) {
	err = db.QueryRowContext(ctx, position, key).Scan(&next, &step)
	return next, step, err
}

// Position implements idsource.SegmentStore.
func (s *Store) Position(ctx context.Context, key string) (idsource.Position, error) {
	if err := s.checkKey(key); err != nil {
		return idsource.Position{}, err
	}
	next, step, err := readRow(ctx, s.db, key)
	fresh := errors.Is(err, sql.ErrNoRows) || noTable(err)
	if err != nil && !fresh {
		return idsource.Position{}, s.wrap(err)
	}
	_ = s.WarnOfCrashes(ctx) // tried again at the next call
	if fresh {
		return idsource.Position{}, nil
	}
	return idsource.Position{Next: max(1, next), Used: step > 0 || step < 0 && next > 0, Unset: next == 0, Sealed: sealOf(step)}, nil
}

// sealOf is who sealed a key, by the step of its row.
func sealOf(step int64) idsource.Seal {
	if step < 0 {
		return idsource.Seal(min(-step, math.MaxInt32))
	}
	return 0
}

// checkTables says why the tables are not this store's to use.
func (s *Store) checkTables(ctx context.Context) error {
	known, err := facts(ctx, s.db)
	if err == nil {
		err = alone(known)
	}
	if err != nil {
		return s.wrap(err)
	}
	return nil
}

// Advance implements idsource.SegmentStore.
func (s *Store) Advance(ctx context.Context, key string, next uint64) error {
	if err := errors.Join(s.checkKey(key), s.checkTables(ctx)); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, raiseKey, next, key); err != nil && !noTable(err) {
		return s.wrap(err)
	}
	at, step, err := readRow(ctx, s.db, key)
	switch {
	case errors.Is(err, sql.ErrNoRows), noTable(err):
		return idsource.ErrNoKey
	case err != nil:
		return s.wrap(err)
	case step < 0:
		return &idsource.SealedError{Next: at}
	}
	return nil
}

// Open implements idsource.SegmentStore. It creates the tables if need be.
func (s *Store) Open(ctx context.Context, key string, next uint64, seal idsource.Seal) error {
	return s.making(ctx, key, func() error { return open(ctx, s.db, key, next, seal) })
}

// making does what may make a key, in tables that it creates if need be.
func (s *Store) making(ctx context.Context, key string, do func() error) error {
	if err := s.checkKey(key); err != nil {
		return err
	}
	known, err := facts(ctx, s.db)
	if err == nil {
		err = alone(known)
	}
	if err == nil && known[factVersion] == "" {
		err = create(ctx, s.db)
	}
	if err == nil {
		err = do()
	}
	if _, sealed := errors.AsType[*idsource.SealedError](err); err != nil && !sealed {
		return s.wrap(err)
	}
	return err
}

// open opens a key of a server.
func open(ctx context.Context, db querier, key string, next uint64, seal idsource.Seal) error {
	anyone := seal == idsource.AnySeal
	if err := insert(ctx, db, openKey, key, next, anyone, -int64(seal), next, anyone, -int64(seal)); err != nil {
		return err
	}
	at, step, err := readRow(ctx, db, key)
	if err == nil && step < 0 {
		return &idsource.SealedError{Next: at}
	}
	return err
}

// seal seals a key of a server. One that is not there it makes at next.
func seal(ctx context.Context, db querier, key string, next, below uint64, by idsource.Seal) error {
	return insert(ctx, db, sealKey, key, next, -int64(by), below, -int64(by))
}

// Seal implements idsource.SegmentStore. It creates the tables if need be.
func (s *Store) Seal(ctx context.Context, key string, below uint64, by idsource.Seal) (idsource.Position, error) {
	err := s.making(ctx, key, func() error { return seal(ctx, s.db, key, 0, below, by) })
	if err != nil {
		return idsource.Position{}, err
	}
	return s.Position(ctx, key)
}

// insert creates a key, or moves it up, by openKey or insertKey, or seals it.
func insert(ctx context.Context, db querier, query string, args ...any) error {
	_, err := db.ExecContext(ctx, query, args...)
	if noTable(err) { // someone dropped that one alone
		if err = create(ctx, db); err == nil {
			_, err = db.ExecContext(ctx, query, args...)
		}
	}
	return err
}

// Set puts an existing key at next, also below where it stands, and opens it: whoever calls
// it knows that no id from next on is in use.
func (s *Store) Set(ctx context.Context, key string, next uint64) error {
	if err := errors.Join(s.checkKey(key), s.checkTables(ctx)); err != nil {
		return err
	}
	if _, err := s.db.ExecContext(ctx, setKey, next, key); err != nil {
		return s.wrap(err)
	}
	return nil
}

// Keys lists the keys there are.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	keys, err := listKeys(ctx, s.db)
	if err != nil {
		return nil, s.wrap(err)
	}
	return keys, nil
}

func listKeys(ctx context.Context, db querier) ([]string, error) {
	keys, err := queryKeys(ctx, db, allKeys)
	if noTable(err) {
		return nil, nil
	}
	return keys, err
}

// queryKeys returns what a query has in its one column.
func queryKeys(ctx context.Context, db querier, query string) ([]string, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	var keys []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, rows.Err()
}

// GiveBack implements idsource.SegmentStore.
func (s *Store) GiveBack(ctx context.Context, key string, lo, hi uint64) (bool, error) {
	if err := s.checkKey(key); err != nil || lo >= hi {
		return false, err
	}
	r, err := s.db.ExecContext(ctx, giveBack, lo, key, hi)
	if err != nil {
		return false, s.wrap(err)
	}
	rows, err := r.RowsAffected()
	if err != nil {
		return false, s.wrap(err)
	}
	return rows == 1, nil
}
