package mysql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"idproxy/idsource/lease"
	"idproxy/integration/assert"
	"idproxy/integration/holders"
	"idproxy/integration/servers"
)

// openJob opens the store of a holder, whose place is a DSN.
func openJob(j holders.Job) (lease.Store, error) {
	var dsn string
	if err := json.Unmarshal(j.Store, &dsn); err != nil {
		return nil, err
	}
	s, err := New(Config{DSN: dsn})
	if err != nil {
		return nil, err
	}
	if j.Once {
		return holders.Owned(s.Disposable(), s), nil
	}
	return holders.Owned(s.Workers(), s), nil
}

// workersAt is a server with an empty database for pools.
type workersAt struct {
	*servers.Server
	t *testing.T
}

// startWith starts a server with a clock of its own; nil: the host's.
func startWith(t *testing.T, kind servers.Kind, clock *servers.Clock) workersAt {
	t.Helper()
	s := assert.Of(servers.Start(t.Context(), kind, servers.Options{NoTLS: true, NoSync: true, Args: []string{"--innodb-buffer-pool-size=16M"}, Clock: clock})).Must(t)
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	w := workersAt{s, t}
	db := assert.Of(sql.Open("mysql", s.DSN(""))).Must(t)
	defer db.Close() //nolint:errcheck // nothing is pending
	assert.Of(db.ExecContext(t.Context(), "CREATE DATABASE idproxy")).Must(t)
	return w
}

func (w workersAt) store() *Store {
	w.t.Helper()
	s := assert.Of(New(Config{DSN: w.DSN("idproxy")})).Must(w.t)
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w workersAt) open() lease.Store {
	workers := w.store().Workers()
	w.t.Cleanup(func() { _ = workers.Close() })
	return workers
}

func (w workersAt) job(pool string) holders.Job {
	w.t.Helper()
	text := assert.Of(json.Marshal(w.DSN("idproxy"))).Must(w.t)
	return holders.Job{Store: text, Pool: pool}
}

// again kills the server, copies its data, and starts it.
func (w workersAt) again(from, to string) {
	w.t.Helper()
	assert.Must(w.t, w.Kill())
	copyData(w.t, filepath.Join(w.Dir, from), filepath.Join(w.Dir, to))
	assert.Must(w.t, w.Start(w.t.Context()))
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			ahead := newClock(t)
			w, clock := startWith(t, kind, ahead), &holders.Clock{Set: ahead.Ahead}
			w.nameHolds(clock)
			holders.Contract(t, w.open, clock, "", 300)
			t.Run("side by side", func(t *testing.T) { holders.Zombie(t, w.open(), w.job("zombie")) })
			t.Run("restart", func(t *testing.T) { holders.Restart(t, w.open(), w.job("restart"), w) })
			t.Run("restored", func(t *testing.T) {
				holders.Restored(t, w.job("restored"), holders.Place{
					Open:    w.open,
					Control: func() lease.Store { return lease.FromTable(holders.SameServer(w.table())) },
					Save:    func() { w.again("data", "backup") },
					Restore: func() { w.again("backup", "data") },
				})
			})
			if kind == servers.MySQL {
				t.Run("older data", func(t *testing.T) { workersAt{w.Server, t}.olderData() })
			} else {
				t.Run("disposable", func(t *testing.T) { workersAt{w.Server, t}.disposable() })
				t.Run("session's clock", func(t *testing.T) { workersAt{w.Server, t}.sessionsClock() })
			}
			t.Run("clock before its start", func(t *testing.T) { workersAt{w.Server, t}.beforeItsStart(ahead) })
		})
	}
}

// olderData puts the tables back while the server runs, as an import does. As with disposable, one kind is enough.
func (w workersAt) olderData() {
	db := assert.Of(sql.Open("mysql", w.DSN("idproxy"))).Must(w.t)
	w.t.Cleanup(func() { assert.NoError(w.t, db.Close()) })
	tables := func(statements ...string) func() {
		return func() {
			for _, statement := range statements {
				for _, table := range []string{"idproxy_pool", "idproxy_worker"} {
					assert.Of(db.ExecContext(w.t.Context(), strings.ReplaceAll(statement, "TABLE_NAME", table))).Must(w.t)
				}
			}
		}
	}
	holders.OlderData(w.t, w.job("older"), holders.Place{
		Open: w.open,
		Save: tables("DROP TABLE IF EXISTS saved_TABLE_NAME", "CREATE TABLE saved_TABLE_NAME LIKE TABLE_NAME", "INSERT INTO saved_TABLE_NAME SELECT * FROM TABLE_NAME"),
		Restore: tables("DROP TABLE TABLE_NAME", "CREATE TABLE TABLE_NAME LIKE saved_TABLE_NAME",
			"INSERT INTO TABLE_NAME SELECT * FROM saved_TABLE_NAME"),
	})
}

// disposable has numbers that are used once. Both kinds of server keep them alike: one is enough.
func (w workersAt) disposable() {
	holders.Disposable(w.t, w.job("once"), holders.Place{
		Open: func() lease.Store {
			s := w.store().Disposable()
			w.t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Control: func() lease.Store { return lease.Disposable(holders.SameServer(w.table())) },
		Save:    func() { w.again("data", "backup") },
		Restore: func() { w.again("backup", "data") },
	}, w)
}

func (w workersAt) table() *table {
	tb := newTable(w.store().database)
	w.t.Cleanup(func() { _ = tb.Close() })
	return tb
}

// newClock makes a clock for servers.
func newClock(t *testing.T) *servers.Clock {
	t.Helper()
	clock := assert.Of(servers.NewClock()).Must(t)
	t.Cleanup(func() { assert.NoError(t, clock.Close()) })
	return clock
}

// nameHolds asks a server for its name in several sessions.
func (w workersAt) nameHolds(clock *holders.Clock) {
	w.t.Helper()
	first := w.name("")
	clock.Pass(1200 * time.Millisecond)
	assert.Equal(w.t, "its name in another session", w.name(first), first)
}

// name is how a session names the server, of which the store has a name.
func (w workersAt) name(stored string) string {
	c := assert.Of(w.table().open(w.t.Context())).Must(w.t)
	defer c.Close() //nolint:errcheck // nothing is pending
	return c.server(stored)
}

// TestServerName: a server is the same one until it is started again.
func TestServerName(t *testing.T) {
	c := &session{who: "db1:3306 server_id=1", since: 1_000_000}
	name := c.server("")
	assert.True(t, strings.HasSuffix(name, "since 1000000"), "name %q", name)
	for other, same := range map[session]bool{
		{who: c.who, since: 1_000_000}: true, {who: c.who, since: 1_000_002}: true, {who: c.who, since: 999_998}: true,
		{who: c.who, since: 1_000_003}: false, {who: c.who, since: 999_997}: false, {who: "db2:3306 server_id=1", since: 1_000_000}: false,
	} {
		assert.Equal(t, fmt.Sprintf("%s since %d: same", other.who, other.since), other.server(name) == name, same)
	}
}

// sessionsClock: a session that was opened before the server's clock was set looks again
// before it takes the server for another one.
func (w workersAt) sessionsClock() {
	before, now := newTable(w.store().database), lease.FromTable(newTable(w.store().database))
	holders.Fill(w.t, now, "sessions", 2)
	old := lease.FromTable(before)
	defer func() { assert.NoError(w.t, errors.Join(old.Close(), now.Close())) }()
	assert.Of(old.List(w.t.Context(), "sessions")).Must(w.t)
	c := <-before.free
	c.since -= 3600
	before.free <- c
	w.gives(old, "sessions")
	w.gives(now, "sessions")
}

// gives has a pool give a number.
func (w workersAt) gives(s lease.Store, pool string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	a := lease.Ask{Pool: pool, Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
	r, err := s.Take(ctx, a)
	assert.True(w.t, err == nil && r.Verdict == lease.Granted, "%+v, %v, want a number", r, err)
}

// beforeItsStart: a server whose clock was ahead when it began, and was put right, has a status
// Uptime of 2^64 less so many seconds. It is the same server, and gives numbers.
func (w workersAt) beforeItsStart(clock *servers.Clock) {
	w.t.Helper()
	before := w.name("")
	clock.Ahead(-time.Hour)
	assert.Equal(w.t, "the server is", w.name(before), before)
	pool := w.open()
	holders.Fill(w.t, pool, "before", 2)
	w.gives(pool, "before")
}
