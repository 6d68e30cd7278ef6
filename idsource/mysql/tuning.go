package mysql

import (
	"context"
	"database/sql"
	"errors"

	"idproxy/idsource"
)

const (
	selectTuning = "SELECT COALESCE(t.step, 0), COALESCE(t.max_step, 0), COALESCE(t.step_policy, ''), COALESCE(s.description, '') " +
		"FROM idproxy_segment s LEFT JOIN idproxy_series t ON t.biz_tag = s.biz_tag WHERE s.biz_tag = ?"
	// A store that nobody has tuned has no table for it.
	selectDescription = "SELECT 0, 0, '', COALESCE(description, '') FROM idproxy_segment WHERE biz_tag = ?"
	describeKey       = "UPDATE idproxy_segment SET description = ? WHERE biz_tag = ?"
	tuneKey           = "INSERT INTO idproxy_series (biz_tag, step, max_step, step_policy) VALUES (?, ?, ?, ?) " +
		"ON DUPLICATE KEY UPDATE step = ?, max_step = ?, step_policy = ?"
)

var (
	_ idsource.Tuner = (*Store)(nil)
	_ idsource.Tuner = (*Group)(nil)
)

// readTuning reads how a key is tuned; ErrNoKey when there is none.
func readTuning(ctx context.Context, db querier, key string) (t idsource.Tuning, err error) {
	for _, query := range []string{selectTuning, selectDescription} {
		err = db.QueryRowContext(ctx, query, key).Scan(&t.Step, &t.MaxStep, &t.Policy, &t.Description)
		if !noTable(err) {
			break
		}
	}
	if noTable(err) || errors.Is(err, sql.ErrNoRows) {
		err = idsource.ErrNoKey
	}
	return t, err
}

// writeTuning replaces how a key is tuned. It makes the table if need be.
func writeTuning(ctx context.Context, db *sql.DB, key string, t idsource.Tuning) error {
	if _, err := readTuning(ctx, db, key); err != nil {
		return err
	}
	err := tuneAtOnce(ctx, db, key, t)
	if noTable(err) {
		if _, err = db.ExecContext(ctx, createSeries); err == nil {
			err = tuneAtOnce(ctx, db, key, t)
		}
	}
	return err
}

// tuneAtOnce writes all of how a key is tuned, or nothing.
func tuneAtOnce(ctx context.Context, db *sql.DB, key string, t idsource.Tuning) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // behind a commit there is nothing left
	if _, err := tx.ExecContext(ctx, tuneKey, key, t.Step, t.MaxStep, t.Policy, t.Step, t.MaxStep, t.Policy); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, describeKey, t.Description, key); err != nil {
		return err
	}
	return tx.Commit()
}

// Tuning implements idsource.Tuner.
func (s *Store) Tuning(ctx context.Context, key string) (idsource.Tuning, error) {
	t, err := readTuning(ctx, s.db, key)
	if errors.Is(err, idsource.ErrNoKey) {
		return idsource.Tuning{}, nil
	}
	if err != nil {
		return idsource.Tuning{}, s.wrap(err)
	}
	return t, nil
}

// Tune implements idsource.Tuner.
func (s *Store) Tune(ctx context.Context, key string, t idsource.Tuning) error {
	if err := errors.Join(s.checkKey(key), s.checkTables(ctx)); err != nil {
		return err
	}
	err := writeTuning(ctx, s.db, key, t)
	if err != nil && !errors.Is(err, idsource.ErrNoKey) {
		return s.wrap(err)
	}
	return err
}

// Tuning implements idsource.Tuner: as the first server says that answers and has the key.
func (g *Group) Tuning(ctx context.Context, key string) (idsource.Tuning, error) {
	var errs []error
	for _, m := range g.order() {
		ctx, cancel := context.WithTimeout(ctx, g.memberTimeout)
		t, err := readTuning(ctx, m.db, key)
		cancel()
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, idsource.ErrNoKey) {
			errs = append(errs, m.wrap(err))
		}
	}
	return idsource.Tuning{}, errors.Join(errs...)
}

// Tune implements idsource.Tuner. All servers must be there.
func (g *Group) Tune(ctx context.Context, key string, t idsource.Tuning) error {
	if err := errors.Join(g.members[0].checkKey(key), g.ensure(ctx, false)); err != nil {
		return err
	}
	_, errs := each(ctx, g, func(ctx context.Context, m *member) (struct{}, error) {
		if err := g.believe(ctx, m, m.db); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, writeTuning(ctx, m.db, key, t)
	})
	return errors.Join(errs...)
}
