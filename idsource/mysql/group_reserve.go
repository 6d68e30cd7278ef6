package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/idsource"
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
		sealed, isSealed := errors.AsType[*idsource.SealedError](err)
		switch {
		case isSealed:
			return 0, 0, sealed
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
	lo, hi, err = m.takeRange(taking, conn, a, m.blocks.reserve(a, known))
	if errors.Is(err, errNoRow) {
		next, step, rerr := readRow(ctx, conn, a.Key)
		switch {
		case errors.Is(rerr, sql.ErrNoRows) && known == 0:
			return 0, 0, idsource.ErrNoKey
		case rerr != nil && !errors.Is(rerr, sql.ErrNoRows):
			return 0, 0, rerr
		case step < 0:
			return 0, 0, &idsource.SealedError{Next: next}
		case next < known:
			return 0, 0, g.wentBack(m, &behindError{a.Key, next, known})
		}
		return 0, 0, &idsource.FullError{Next: m.blocks.align(max(next, a.Floor), a.Count)}
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
		g.logger.Error("a server of the group went back and is not used", "server", m.where, "key", e.key, "offered", e.next, "seen", e.known)
	}
	return e
}

// known is where m is known to have stood, to this process and to the servers
// that answer; those are returned, to be told where it stands then.
func (g *Group) known(ctx context.Context, m *member, key string) (next uint64, witnesses []*member) {
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
	if told == 0 && !said {
		g.logger.Warn("no other server of the group answers: if this one is now restored from a backup, ids can come twice", "server", m.where, "key", key)
	}
}

// errNoRow is what takeRange answers when nothing fits the statement's conditions.
var errNoRow = errors.New("no row was updated")

// errOutOfRange is the server's number for a sum above 2^64.
const errOutOfRange = 1690

func (m *member) takeRange(ctx context.Context, conn *sql.Conn, a idsource.Ask, query string) (lo, hi uint64, err error) {
	if a.Count-1 > a.Last {
		return 0, 0, errNoRow
	}
	took, err := m.take(ctx, conn, a, query, a.Key)
	if e, ok := errors.AsType[*driver.MySQLError](err); ok && e.Number == errOutOfRange {
		return 0, 0, errNoRow
	}
	if err != nil {
		return 0, 0, err
	}
	if took.rows == 0 {
		return 0, 0, errNoRow
	}
	if hi = took.next; hi < a.Count {
		return 0, 0, fmt.Errorf("position %d came of one update", hi)
	}
	return hi - a.Count, hi, nil
}
