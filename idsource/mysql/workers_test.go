package mysql

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"idproxy/idsource/lease"
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

func startFor(t *testing.T, kind servers.Kind) workersAt {
	t.Helper()
	return startWith(t, kind, nil)
}

// startWith starts a server with a clock of its own; nil: the host's.
func startWith(t *testing.T, kind servers.Kind, clock *servers.Clock) workersAt {
	t.Helper()
	s, err := servers.Start(t.Context(), kind, servers.Options{NoTLS: true, NoSync: true, Args: []string{"--innodb-buffer-pool-size=16M"}, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := workersAt{s, t}
	db, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is pending
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE idproxy"); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w workersAt) store() *Store {
	w.t.Helper()
	s, err := New(Config{DSN: w.DSN("idproxy")})
	if err != nil {
		w.t.Fatal(err)
	}
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
	text, err := json.Marshal(w.DSN("idproxy"))
	if err != nil {
		w.t.Fatal(err)
	}
	return holders.Job{Store: text, Pool: pool}
}

// again kills the server, copies its data, and starts it.
func (w workersAt) again(from, to string) {
	w.t.Helper()
	if err := w.Kill(); err != nil {
		w.t.Fatal(err)
	}
	copyData(w.t, filepath.Join(w.Dir, from), filepath.Join(w.Dir, to))
	if err := w.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func TestWorkers(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := startFor(t, kind)
			w.nameHolds()
			t.Run("side by side", func(t *testing.T) {
				holders.Contract(t, w.open, "", 300)
				holders.Zombie(t, w.open(), w.job("zombie"))
			})
			t.Run("restart", func(t *testing.T) {
				holders.Restart(t, w.open(), w.job("restart"), w.pause)
			})
			t.Run("restored", func(t *testing.T) {
				holders.Restored(t, w.job("restored"), holders.Place{
					Open:    w.open,
					Control: func() lease.Store { return lease.FromTable(holders.SameServer(w.table())) },
					Save:    func() { w.again("data", "backup") },
					Restore: func() { w.again("backup", "data") },
				})
			})
		})
	}
}

func TestDisposable(t *testing.T) {
	t.Parallel()
	w := startFor(t, servers.MariaDB)
	holders.Disposable(t, w.job("p"), holders.Place{
		Open: func() lease.Store {
			s := w.store().Disposable()
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		Control: func() lease.Store { return lease.Disposable(holders.SameServer(w.table())) },
		Save:    func() { w.again("data", "backup") },
		Restore: func() { w.again("backup", "data") },
	}, w.pause)
}

func (w workersAt) pause(away bool) error {
	if away {
		return w.Signal(syscall.SIGSTOP)
	}
	return w.Signal(syscall.SIGCONT)
}

func (w workersAt) table() *table {
	tb := newTable(w.store().database)
	w.t.Cleanup(func() { _ = tb.Close() })
	return tb
}

// nameHolds asks a server for its name in several sessions.
func (w workersAt) nameHolds() {
	w.t.Helper()
	name := func(stored string) string {
		c, err := w.table().open(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // nothing is pending
		return c.server(stored)
	}
	first := name("")
	time.Sleep(1200 * time.Millisecond)
	if again := name(first); again != first {
		w.t.Errorf("%q is %q in another session", first, again)
	}
}

// TestServerName: a server is the same one until it is started again.
func TestServerName(t *testing.T) {
	c := &session{who: "db1:3306 server_id=1", since: 1_000_000}
	name := c.server("")
	if !strings.HasSuffix(name, "since 1000000") {
		t.Errorf("name %q", name)
	}
	for _, tt := range []struct {
		who   string
		since int64
		same  bool
	}{
		{who: c.who, since: 1_000_000, same: true},
		{who: c.who, since: 1_000_002, same: true},
		{who: c.who, since: 999_998, same: true},
		{who: c.who, since: 1_000_003},
		{who: c.who, since: 999_997},
		{who: "db2:3306 server_id=1", since: 1_000_000},
	} {
		if got := (&session{who: tt.who, since: tt.since}).server(name) == name; got != tt.same {
			t.Errorf("%s since %d: same %v, want %v", tt.who, tt.since, got, tt.same)
		}
	}
}

// TestServerClockSet: a session that was opened before the server's clock was set looks again
// before it takes the server for another one.
func TestServerClockSet(t *testing.T) {
	t.Parallel()
	w := startFor(t, servers.MariaDB)
	before, now := newTable(w.store().database), lease.FromTable(newTable(w.store().database))
	holders.Fill(t, now, "p", 2)
	old := lease.FromTable(before)
	defer func() {
		if err := errors.Join(old.Close(), now.Close()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := old.List(t.Context(), "p"); err != nil {
		t.Fatal(err)
	}
	c := <-before.free
	c.since -= 3600
	before.free <- c
	a := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
	for i, s := range []lease.Store{old, now} {
		if r, err := s.Take(t.Context(), a); err != nil || r.Verdict != lease.Granted {
			t.Errorf("session %d: %+v, %v, want a number", i, r, err)
		}
	}
}

// TestServerClockBeforeItsStart: a server whose clock was ahead when it began, and was put right,
// has a status Uptime of 2^64 less so many seconds. It is the same server, and gives numbers.
func TestServerClockBeforeItsStart(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			clock, err := servers.NewClock()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := clock.Close(); err != nil {
					t.Error(err)
				}
			})
			w := startWith(t, kind, clock)
			name := func(stored string) string {
				c, err := newTable(w.store().database).open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close() //nolint:errcheck // nothing is pending
				return c.server(stored)
			}
			before := name("")
			clock.Ahead(-time.Hour)
			if now := name(before); now != before {
				t.Errorf("the server was %s and is %s", before, now)
			}
			pool := w.open()
			holders.Fill(t, pool, "p", 2)
			a := lease.Ask{Pool: "p", Shape: holders.Shape(), Rules: holders.Brisk, Use: lease.Use{Token: "a"}}
			if r, err := pool.Take(t.Context(), a); err != nil || r.Verdict != lease.Granted {
				t.Errorf("%+v, %v, want a number", r, err)
			}
		})
	}
}
