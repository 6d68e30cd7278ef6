package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"idproxy/idsource/lease"
)

const (
	createPools = "CREATE TABLE IF NOT EXISTS idproxy_pool (" +
		"pool VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY, " +
		"shape VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
		"server VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, " + // who answered last, and since when it runs
		"since BIGINT NOT NULL, " + // that is so
		"version BIGINT NOT NULL) ENGINE=InnoDB"
	createWorkers = "CREATE TABLE IF NOT EXISTS idproxy_worker (" +
		"pool VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
		"worker INT UNSIGNED NOT NULL, " +
		"state TINYINT UNSIGNED NOT NULL, " + // 1 free, 2 held, 3 dropped
		"token VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, " +
		"beat BIGINT NOT NULL, " + // times are milliseconds since 1970
		"start BIGINT NOT NULL, " +
		"fence BIGINT NOT NULL, " +
		"label VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL, " +
		"version BIGINT NOT NULL, " +
		"PRIMARY KEY (pool, worker)) ENGINE=InnoDB"

	// selectPage: a row of the one-row table is there also when there is no pool.
	selectPage = "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED), p.shape, p.server, p.since, p.version, " +
		"w.worker, w.state, w.token, w.beat, w.start, w.fence, w.label, w.version " +
		"FROM (SELECT 1) AS one LEFT JOIN idproxy_pool AS p ON p.pool = ? LEFT JOIN idproxy_worker AS w ON w.pool = ?"
	oneWorker  = " AND w.worker = ?"
	lastWorker = " AND w.worker = (SELECT MAX(worker) FROM idproxy_worker WHERE pool = ?)"

	insertPool = "INSERT IGNORE INTO idproxy_pool (pool, shape, server, since, version) VALUES (?, ?, ?, ?, 1)"
	updatePool = "UPDATE idproxy_pool SET shape = ?, server = ?, since = ?, version = version + 1 WHERE pool = ? AND version = ?"

	// updateWorker compares the pool's version as well: what was decided by it holds no
	// longer when it changed.
	updateWorker = "UPDATE idproxy_worker SET state = ?, token = ?, beat = ?, start = ?, fence = ?, label = ?, version = version + 1 " +
		"WHERE pool = ? AND worker = ? AND version = ? AND EXISTS (SELECT 1 FROM idproxy_pool WHERE pool = ? AND version = ?)"
	insertWorkers = "INSERT IGNORE INTO idproxy_worker (pool, worker, state, token, beat, start, fence, label, version) VALUES "
	insertWorker  = "INSERT IGNORE INTO idproxy_worker (pool, worker, state, token, beat, start, fence, label, version) " +
		"SELECT ?, ?, ?, ?, ?, ?, ?, ?, 1 FROM idproxy_pool WHERE pool = ? AND version = ?"
)

// Workers is a lease.Store of the same server: pools of worker numbers in the
// tables idproxy_pool and idproxy_worker, which are made with the first pool.
// Times are the server's. Closing it closes nothing of the Store.
func (s *Store) Workers() lease.Store { return lease.FromTable(newTable(s.database)) }

// Disposable is a store of numbers that are used once, in the same tables.
func (s *Store) Disposable() lease.Store { return lease.Disposable(newTable(s.database)) }

func newTable(s *database) *table {
	t := &table{s: s, free: make(chan *session, 1)}
	t.free <- nil
	return t
}

// table is one session with the server, which callers use in turn. A session
// ends with the server's process, so it knows for good who answers.
type table struct {
	s    *database
	free chan *session // holds the session that nobody uses; nil: one has to be opened
}

type session struct {
	*sql.Conn
	who   string // the server, whichever data it has
	since int64  // when its process began, seconds since 1970
}

// Close implements lease.Table.
func (t *table) Close() error {
	c := <-t.free
	t.free <- nil
	if c == nil {
		return nil
	}
	return c.Close()
}

// Pools implements lease.Table.
func (t *table) Pools(ctx context.Context) (names []string, err error) {
	rows, err := t.s.db.QueryContext(ctx, "SELECT pool FROM idproxy_pool")
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, t.s.wrap(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, t.s.wrap(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return nil, t.s.wrap(err)
	}
	return names, nil
}

// Visit implements lease.Table.
func (t *table) Visit(ctx context.Context, pool string, do func(v lease.Visit) error) (err error) {
	var c *session
	select {
	case c = <-t.free:
	case <-ctx.Done():
		return t.s.wrap(context.Cause(ctx))
	}
	defer func() {
		if err != nil && c != nil { // whatever is wrong, a new session is a new beginning
			_ = c.Close()
			c = nil
		}
		t.free <- c
	}()
	if c == nil {
		if c, err = t.open(ctx); err != nil {
			return t.s.wrap(err)
		}
	}
	if err := do(&visit{session: c, pool: pool}); err != nil {
		return t.s.wrap(err)
	}
	return nil
}

// open opens a session and asks who answers.
func (t *table) open(ctx context.Context) (c *session, err error) {
	conn, err := t.s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close()
		}
	}()
	// Local time is not unique: an hour comes twice in autumn.
	if _, err := conn.ExecContext(ctx, "SET time_zone = '+00:00'"); err != nil {
		return nil, err
	}
	known, err := facts(ctx, conn)
	if err == nil {
		err = wrongVersion(known)
	}
	if err != nil {
		return nil, err
	}
	names, err := variables(ctx, conn, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_id', 'hostname', 'port')")
	if err != nil {
		return nil, err
	}
	// MariaDB has no server_uuid.
	who := fmt.Sprintf("%s:%s server_id=%s %s", names["hostname"], names["port"], names["server_id"], names["server_uuid"])
	c = &session{Conn: conn, who: strings.TrimSpace(who)}
	return c, c.look(ctx)
}

// look finds out when the server's process began, by its clock of now: where that
// was set meanwhile, it is another time than before.
func (c *session) look(ctx context.Context) error {
	var now int64
	if err := c.QueryRowContext(ctx, "SELECT UNIX_TIMESTAMP()").Scan(&now); err != nil {
		return err
	}
	status, err := variables(ctx, c.Conn, "SHOW GLOBAL STATUS LIKE 'Uptime'")
	if err != nil {
		return err
	}
	up, err := strconv.ParseUint(status["Uptime"], 10, 64)
	if err != nil {
		return fmt.Errorf("status Uptime: %w", err)
	}
	c.since = now - int64(up) // below zero, which is written as 2^64 less so much, where the clock is before the start
	return nil
}

// startSlack is by how much two readings of when a server began may differ, in seconds.
const startSlack = 2

// server names who answers and since when. A server whose data was put back to
// an older state has been restarted, and is another one. stored is the name from
// the last visit.
func (c *session) server(stored string) string {
	who, text, ok := strings.Cut(stored, " since ")
	since, err := strconv.ParseInt(text, 10, 64)
	if ok && err == nil && who == c.who && since-c.since <= startSlack && c.since-since <= startSlack {
		return stored
	}
	return fmt.Sprintf("%s since %d", c.who, c.since)
}

// visit is a stay at one pool.
type visit struct {
	*session
	pool string
}

// Read implements lease.Visit.
func (v *visit) Read(ctx context.Context, w lease.Workers) (lease.Page, error) {
	p, err := v.read(ctx, w)
	if err == nil && p.Exists && p.Server != p.Pool.Server {
		// Someone else may have looked after the server's clock was set. Two sessions
		// that go by different readings would take turns in starting a quarantine.
		if err = v.look(ctx); err == nil {
			p.Server = v.server(p.Pool.Server)
		}
	}
	if noTable(err) { // there is no pool either
		err = v.QueryRowContext(ctx, "SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)").Scan(&p.Now)
		p.Server = v.server("")
	}
	return p, err
}

func (v *visit) read(ctx context.Context, w lease.Workers) (p lease.Page, err error) {
	query, args := selectPage, []any{v.pool, v.pool}
	switch {
	case w >= 0:
		query, args = query+oneWorker, append(args, int64(w))
	case w == lease.Highest:
		query, args = query+lastWorker, append(args, v.pool)
	}
	p.Records, p.Versions = map[uint64]lease.Record{}, map[uint64]int64{}
	rows, err := v.QueryContext(ctx, query, args...)
	if err != nil {
		return p, err
	}
	defer rows.Close() //nolint:errcheck // Err below says it
	for rows.Next() {
		var shape, server, token, label sql.NullString
		var since, poolVersion, worker, state, beat, start, fence, version sql.NullInt64
		if err := rows.Scan(&p.Now, &shape, &server, &since, &poolVersion,
			&worker, &state, &token, &beat, &start, &fence, &label, &version); err != nil {
			return p, err
		}
		p.Exists, p.PoolVersion = poolVersion.Valid, poolVersion.Int64
		p.Pool = lease.Pool{Shape: shape.String, Server: server.String, Since: since.Int64}
		if !worker.Valid {
			continue
		}
		r := lease.Record{
			State: lease.State(state.Int64), Token: token.String, Label: label.String,
			Beat: beat.Int64, Start: start.Int64, Fence: fence.Int64,
		}
		if r.State < lease.Free || r.State > lease.Dropped {
			return p, fmt.Errorf("worker number %d has an unknown state, %d", worker.Int64, r.State)
		}
		p.Records[uint64(worker.Int64)], p.Versions[uint64(worker.Int64)] = r, version.Int64
	}
	p.Server = v.server(p.Pool.Server)
	return p, rows.Err()
}

// changed says whether a statement found the row as it was to be.
func changed(r sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// WritePool implements lease.Visit. It makes the tables if need be.
func (v *visit) WritePool(ctx context.Context, old lease.Page, p lease.Pool) (bool, error) {
	if old.Exists {
		return changed(v.ExecContext(ctx, updatePool, p.Shape, p.Server, p.Since, v.pool, old.PoolVersion))
	}
	for _, table := range []string{createStore, createPools, createWorkers} {
		if _, err := v.ExecContext(ctx, table); err != nil {
			return false, fmt.Errorf("create the tables: %w", err)
		}
	}
	if _, err := v.ExecContext(ctx, insertFact, factVersion, schemaVersion); err != nil {
		return false, err
	}
	return changed(v.ExecContext(ctx, insertPool, v.pool, p.Shape, p.Server, p.Since))
}

// Write implements lease.Visit.
func (v *visit) Write(ctx context.Context, old lease.Page, w uint64, r lease.Record) (bool, error) {
	if w > math.MaxUint32 {
		return false, errors.New("a worker number of more than 32 bits")
	}
	if old.Versions[w] == 0 {
		return changed(v.ExecContext(ctx, insertWorker, v.pool, w, r.State, r.Token, r.Beat, r.Start, r.Fence, r.Label, v.pool, old.PoolVersion))
	}
	return changed(v.ExecContext(ctx, updateWorker, r.State, r.Token, r.Beat, r.Start, r.Fence, r.Label,
		v.pool, w, old.Versions[w], v.pool, old.PoolVersion))
}

// Insert implements lease.Visit. The pool's version does not matter: whoever
// takes a number looks at the pool.
func (v *visit) Insert(ctx context.Context, _ lease.Page, workers []uint64, r lease.Record) (bool, error) {
	var args []any
	for _, w := range workers {
		args = append(args, v.pool, w, r.State, r.Token, r.Beat, r.Start, r.Fence, r.Label)
	}
	one := "(?, ?, ?, ?, ?, ?, ?, ?, 1)"
	_, err := v.ExecContext(ctx, insertWorkers+one+strings.Repeat(", "+one, len(workers)-1), args...)
	return err == nil, err
}
