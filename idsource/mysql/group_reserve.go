package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/idsource"
)

const (
	selectMarks = "SELECT server, next_id FROM idproxy_mark WHERE biz_tag = ?"
	raiseMark   = "INSERT INTO idproxy_mark (biz_tag, server, next_id) VALUES (?, ?, ?) " +
		"ON DUPLICATE KEY UPDATE next_id = GREATEST(next_id, ?)"
	dropMarks = "DELETE FROM idproxy_mark WHERE biz_tag = ?"
)

// behindError says that a server stands below where it was seen.
type behindError struct {
	key         string
	next, known uint64
}

func (e *behindError) Error() string {
	return fmt.Sprintf("the server went back: key %q stands at %d there and was at %d; it is not used until idproxy source adopt or source set moves the key above every id in use",
		e.key, e.next, e.known)
}

// Reserve implements idsource.SegmentStore. The range starts at a.High or
// above, so that the ids of one process ascend whichever server gives them.
func (g *Group) Reserve(ctx context.Context, a idsource.Ask) (lo, hi uint64, err error) {
	if err := g.members[0].checkKey(a.Key); err != nil {
		return 0, 0, err
	}
	if a.Count == 0 || a.Count > g.block {
		return 0, 0, fmt.Errorf("%d ids were asked for, a block has %d", a.Count, g.block)
	}
	if err := g.ensure(ctx, true); err != nil {
		return 0, 0, err
	}
	a.Floor = max(a.Floor, a.High)
	var errs []error
	noKey, full := 0, 0
	for _, m := range g.order() {
		lo, hi, err = g.from(ctx, m, a)
		if err == nil {
			m.answered()
			g.mu.Lock()
			g.current = m.index
			g.mu.Unlock()
			return lo, hi, nil
		}
		_, isFull := errors.AsType[*idsource.FullError](err)
		_, isBehind := errors.AsType[*behindError](err)
		switch {
		case isFull:
			full++
		case errors.Is(err, idsource.ErrNoKey):
			noKey++
		case !isBehind:
			m.failed()
		}
		errs = append(errs, m.wrap(err))
	}
	switch n := len(g.members); {
	case noKey == n:
		return 0, 0, idsource.ErrNoKey
	case full == n:
		next := a.Last + 1
		for _, err := range errs {
			if e, ok := errors.AsType[*idsource.FullError](err); ok {
				next = min(next, e.Next)
			}
		}
		return 0, 0, &idsource.FullError{Next: next}
	}
	return 0, 0, disagreed(errs, noKey > 0)
}

// disagreed is what a group answers whose servers did not answer alike. It is none of
// the errors that a caller acts upon: of a key that one server lacks while another
// one is away nobody knows that it went back, or that there is none.
func disagreed(errs []error, noKey bool) error {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	err := errors.New(strings.Join(texts, "; "))
	if noKey {
		return fmt.Errorf("all servers of a group must be there for a key that is not on all of them: %w", err)
	}
	return err
}

// from reserves a range on one server.
//
// The connection is held from before the marks are read until the range is
// there. A connection does not outlive the server's process, so what the
// marks say was true of the data that the range is taken from.
func (g *Group) from(ctx context.Context, m *member, a idsource.Ask) (lo, hi uint64, err error) {
	conn, err := g.connect(ctx, m)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close() //nolint:errcheck // back to the pool
	known, witnesses := g.known(ctx, m, a.Key)
	taking, cancel := context.WithTimeout(ctx, g.memberTimeout)
	defer cancel()
	lo, hi, err = m.takeRange(taking, conn, a, g.rangeSQL(m, a, known))
	if errors.Is(err, errNoRow) {
		next, _, rerr := readRow(ctx, conn, a.Key)
		switch {
		case errors.Is(rerr, sql.ErrNoRows) && known == 0:
			return 0, 0, idsource.ErrNoKey
		case rerr != nil && !errors.Is(rerr, sql.ErrNoRows):
			return 0, 0, rerr
		case next < known:
			return 0, 0, g.wentBack(m, &behindError{a.Key, next, known})
		}
		return 0, 0, &idsource.FullError{Next: g.align(m, max(next, a.Floor), a.Count)}
	}
	if err != nil {
		return 0, 0, err
	}
	m.saw(a.Key, hi)
	g.testify(ctx, m, witnesses, a.Key, hi)
	return lo, hi, nil
}

// connect holds a connection to a server that is m of the group.
func (g *Group) connect(ctx context.Context, m *member) (*sql.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.memberTimeout)
	defer cancel()
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := g.believe(ctx, m, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// wentBack says once that a server does not stand where it stood.
func (g *Group) wentBack(m *member, e *behindError) error {
	m.mu.Lock()
	said := m.behind[e.key]
	m.behind[e.key] = true
	m.mu.Unlock()
	if !said {
		g.logger.Error("a server of the group went back and is not used", "store", m.where, "key", e.key, "stands", e.next, "seen", e.known)
	}
	return e
}

// known is where m is known to have stood, to this process and to the servers
// that answer; those are returned, to be told where it stands then.
func (g *Group) known(ctx context.Context, m *member, key string) (next uint64, witnesses []*member) {
	if g.noMarks {
		return 0, nil
	}
	next = m.lastSeen(key)
	var ask []*member
	for _, o := range g.others(m) {
		if !o.rests() {
			ask = append(ask, o)
		}
	}
	marks, errs := within(ctx, g.witnessTimeout, ask, func(ctx context.Context, o *member) (map[int]uint64, error) {
		if err := g.believe(ctx, o, o.db); err != nil {
			return nil, err
		}
		return readMarks(ctx, o.db, key)
	})
	for i, o := range ask {
		if errs[i] == nil {
			next = max(next, marks[i][m.index])
			witnesses = append(witnesses, o)
		}
	}
	return next, witnesses
}

// testify has the witnesses remember where m stands. One that fails is a
// witness less, as if it had been down before.
func (g *Group) testify(ctx context.Context, m *member, witnesses []*member, key string, next uint64) {
	_, errs := within(ctx, g.witnessTimeout, witnesses, func(ctx context.Context, o *member) (struct{}, error) {
		_, err := o.db.ExecContext(ctx, raiseMark, key, m.index, next, next)
		return struct{}{}, err
	})
	told := 0
	for _, err := range errs {
		if err == nil {
			told++
		}
	}
	g.mu.Lock()
	said := g.alone
	g.alone = told == 0
	g.mu.Unlock()
	if told == 0 && !said && !g.noMarks {
		g.logger.Warn("no other server of the group answers: if this one is now restored from a backup, ids can come twice", "store", m.where, "key", key)
	}
}

func readMarks(ctx context.Context, db querier, key string) (map[int]uint64, error) {
	rows, err := db.QueryContext(ctx, selectMarks, key)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	marks := map[int]uint64{}
	for rows.Next() {
		var server int
		var next uint64
		if err := rows.Scan(&server, &next); err != nil {
			return nil, err
		}
		marks[server] = next
	}
	return marks, rows.Err()
}

func readRow(ctx context.Context, db querier, key string) (next uint64, step int64, err error) {
	err = db.QueryRowContext(ctx, position, key).Scan(&next, &step)
	return next, step, err
}

// align returns where a range of n ids can start on m, at x or above: within
// one of its blocks.
func (g *Group) align(m *member, x, n uint64) uint64 {
	servers, own := uint64(len(g.members)), uint64(m.index)
	k := x / g.block
	if k > math.MaxUint64/g.block-2*servers {
		return math.MaxUint64
	}
	switch {
	case g.noOwner:
		return x
	case k%servers != own:
		return (k + (own+servers-k%servers)%servers) * g.block
	case x%g.block+n > g.block:
		return (k + servers) * g.block
	}
	return x
}

// rangeSQL is align and the reservation in one statement.
func (g *Group) rangeSQL(m *member, a idsource.Ask, known uint64) string {
	x := fmt.Sprintf("CAST(GREATEST(max_id, %d) AS UNSIGNED)", a.Floor)
	k := fmt.Sprintf("(%s DIV %d)", x, g.block)
	servers := len(g.members)
	lo := fmt.Sprintf("CAST(IF(%[2]s %% %[3]d <> %[4]d, (%[2]s + (%[5]d - %[2]s %% %[3]d) %% %[3]d) * %[6]d, "+
		"IF(%[1]s %% %[6]d + %[7]d > %[6]d, (%[2]s + %[3]d) * %[6]d, %[1]s)) AS UNSIGNED)",
		x, k, servers, m.index, m.index+servers, g.block, a.Count)
	if g.noOwner {
		lo = x
	}
	return fmt.Sprintf("UPDATE idproxy_segment SET max_id = LAST_INSERT_ID(CAST(%[1]s + %[2]d AS UNSIGNED)), step = %[3]d "+
		"WHERE biz_tag = ? AND max_id >= %[4]d AND %[1]s <= %[5]d", lo, a.Count, min(a.Count, 1<<31-1), known, a.Last-(a.Count-1))
}

// errNoRow is what takeRange answers when nothing fits the statement's conditions.
var errNoRow = errors.New("no row was updated")

// errOutOfRange is the server's number for a sum above 2^64.
const errOutOfRange = 1690

func (m *member) takeRange(ctx context.Context, conn *sql.Conn, a idsource.Ask, query string) (lo, hi uint64, err error) {
	if a.Count-1 > a.Last {
		return 0, 0, errNoRow
	}
	r, err := conn.ExecContext(ctx, query, a.Key)
	if e, ok := errors.AsType[*driver.MySQLError](err); ok && e.Number == errOutOfRange {
		return 0, 0, errNoRow
	}
	if err != nil {
		return 0, 0, err
	}
	rows, err := r.RowsAffected()
	if err != nil {
		return 0, 0, err
	}
	if rows == 0 {
		return 0, 0, errNoRow
	}
	last, err := r.LastInsertId()
	if err != nil {
		return 0, 0, err
	}
	if hi = uint64(last); hi < a.Count {
		return 0, 0, fmt.Errorf("position %d came of one update", hi)
	}
	return hi - a.Count, hi, nil
}
