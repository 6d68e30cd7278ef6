package mysql

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/idsource"
)

// What is kept of a key's history.
const (
	historyMost = 10_000 // ranges
	historyDays = 30
	forgetEvery = 100 // ranges; the rest is deleted then, a thousand at once
)

const (
	// insertTaken is one of four statements. The server runs all four in one round trip and syncs its log once. The row is locked from the
	// UPDATE to the COMMIT, in which nobody waits for a network. ROW_COUNT() is that of the UPDATE.
	insertTaken = "INSERT INTO idproxy_taken (biz_tag, lo, hi, taken, taken_by) " +
		"SELECT ?, LAST_INSERT_ID() - ?, LAST_INSERT_ID(), UTC_TIMESTAMP(6), ? FROM DUAL WHERE ROW_COUNT() = 1 " +
		"ON DUPLICATE KEY UPDATE hi = LAST_INSERT_ID(), taken = UTC_TIMESTAMP(6), taken_by = ?"
	selectTaken = "SELECT lo, hi, CAST(taken AS CHAR), taken_by FROM idproxy_taken WHERE biz_tag = ? AND lo <= ? ORDER BY lo DESC LIMIT ?"
	forgetTaken = "DELETE FROM idproxy_taken WHERE biz_tag = ? AND (taken < UTC_TIMESTAMP() - INTERVAL ? DAY OR " +
		"lo < (SELECT lo FROM (SELECT lo FROM idproxy_taken WHERE biz_tag = ? ORDER BY lo DESC LIMIT 1 OFFSET ?) newest)) LIMIT 1000"
)

var (
	_ idsource.Historian = (*Store)(nil)
	_ idsource.Historian = (*Group)(nil)
)

// moved is what the UPDATE of a range did: how many rows it changed, and where the last one stands.
type moved struct {
	rows int64
	next uint64
}

// take runs the UPDATE of a range over conn, and writes in the same transaction who took it. The range
// counts for more: where that cannot be written, it is taken without, and so are those of the next minute.
func (s *database) take(ctx context.Context, conn *sql.Conn, a idsource.Ask, update string, args ...any) (moved, error) {
	if time.Now().UnixNano() < s.unrecorded.Load() {
		return unrecorded(ctx, conn, update, args)
	}
	m, err := recorded(ctx, conn, a, update, args)
	if err == nil {
		s.forget(ctx, conn, a.Key, m)
	}
	if _, refused := errors.AsType[*driver.MySQLError](err); !refused {
		return m, err
	}
	why, passing := err, passes(err)
	if noTable(why) && strings.Contains(why.Error(), "idproxy_taken") {
		if _, why = conn.ExecContext(ctx, createTaken); why == nil {
			return recorded(ctx, conn, a, update, args)
		}
	}
	if m, err = unrecorded(ctx, conn, update, args); err != nil || m.rows == 0 {
		return m, err
	}
	if !passing {
		s.pause(time.Minute, why)
	}
	return m, nil
}

// passes reports an error of the moment, which says nothing of the history: a wait for the lock of the key's row
// that took too long, a deadlock, and another member of a replicated group that was faster.
func passes(err error) bool {
	e, ok := errors.AsType[*driver.MySQLError](err)
	return ok && (e.Number == 1205 || e.Number == 1213 || e.Number == 3101)
}

// pause takes ranges without a word of who took them, for some time.
func (s *database) pause(d time.Duration, why error) {
	s.unrecorded.Store(time.Now().Add(d).UnixNano())
	if !s.warnedHistory.Swap(true) {
		s.logger.Warn("who takes which range cannot be written down", "server", s.where, "error.message", why)
	}
}

// forget deletes now and then what is old of a key's history. Where the account may not, no more is
// written for a day, for the table would grow without bound.
func (s *database) forget(ctx context.Context, conn *sql.Conn, key string, m moved) {
	if m.rows != 1 || rand.IntN(forgetEvery) != 0 {
		return
	}
	if _, err := conn.ExecContext(ctx, forgetTaken, key, historyDays, key, historyMost); Denied(err) {
		s.pause(24*time.Hour, fmt.Errorf("what is old cannot be deleted: %w", err))
	} // after another error it is tried again at a later range
}

// unrecorded is take without a word of who took the range.
func unrecorded(ctx context.Context, conn *sql.Conn, update string, args []any) (m moved, err error) {
	r, err := conn.ExecContext(ctx, update, args...)
	if err != nil {
		return m, err
	}
	last, err := r.LastInsertId()
	if err != nil {
		return m, err
	}
	m.next = uint64(last) // the driver passes 64 unsigned bits through an int64
	m.rows, err = r.RowsAffected()
	return m, err
}

// recorded is take with one. After an error of the server nothing is left of the transaction.
func recorded(ctx context.Context, conn *sql.Conn, a idsource.Ask, update string, args []any) (m moved, err error) {
	values := []sqldriver.NamedValue{}
	for _, v := range append(args[:len(args):len(args)], a.Key, a.Count, a.By, a.By) {
		values = append(values, sqldriver.NamedValue{Ordinal: len(values) + 1, Value: v})
	}
	raw := conn.Raw(func(c any) error {
		var r sqldriver.Result
		if r, err = c.(sqldriver.ExecerContext).ExecContext(ctx, "START TRANSACTION; "+update+"; "+insertTaken+"; COMMIT", values); err != nil {
			return nil
		}
		all, ok := r.(driver.Result)
		if !ok || len(all.AllRowsAffected()) != 4 {
			err = errors.New("the server has not answered to each statement")
			return sqldriver.ErrBadConn
		}
		m = moved{rows: all.AllRowsAffected()[1], next: uint64(all.AllLastInsertIds()[1])}
		return nil
	})
	if err != nil {
		if _, rerr := conn.ExecContext(ctx, "ROLLBACK"); rerr != nil {
			_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // closes it
		}
		return m, err
	}
	return m, raw
}

// readHistory reads the ranges of a key that begin at upTo or below.
func readHistory(ctx context.Context, db querier, key string, upTo uint64, n int) ([]idsource.Taken, error) {
	rows, err := db.QueryContext(ctx, selectTaken, key, upTo, n)
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	var all []idsource.Taken
	for rows.Next() {
		var t idsource.Taken
		var at string
		if err := rows.Scan(&t.Lo, &t.Hi, &at, &t.By); err != nil {
			return nil, err
		}
		if t.At, err = time.Parse("2006-01-02 15:04:05.999999", at); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// History implements idsource.Historian.
func (s *Store) History(ctx context.Context, key string, upTo uint64, n int) ([]idsource.Taken, error) {
	all, err := readHistory(ctx, s.db, key, upTo, n)
	if err != nil {
		return nil, s.wrap(err)
	}
	return all, nil
}

// History implements idsource.Historian. All servers must answer: each has its own ranges.
func (g *Group) History(ctx context.Context, key string, upTo uint64, n int) ([]idsource.Taken, error) {
	parts, errs := each(ctx, g, func(ctx context.Context, m *member) ([]idsource.Taken, error) {
		return readHistory(ctx, m.db, key, upTo, n)
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := slices.Concat(parts...)
	slices.SortFunc(all, func(a, b idsource.Taken) int { return cmp.Compare(b.Lo, a.Lo) })
	return all[:min(n, len(all))], nil
}
