package mysql

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/servers"
)

func TestTunesAndRemembers(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		s := newStore(t, shared.dsn())
		sourcetest.Tunes(t, s, "tuned")
		sourcetest.Remembers(t, s, "remembered")
		sourcetest.Seals(t, s, "sealed")
	})
	t.Run("group", func(t *testing.T) {
		g := newGroup(t, databases(t, 2), 1000)
		sourcetest.Tunes(t, g, "tuned")
		sourcetest.Remembers(t, g, "remembered")
		sourcetest.Seals(t, g, "sealed")
	})
}

// TestTunesAtOnce: a tuning of which the store has no room for a part changes nothing, and an account that may make
// no table tunes where there is one.
func TestTunesAtOnce(t *testing.T) {
	s := newStore(t, shared.dsn())
	ctx := t.Context()
	assert.Must(t, s.Open(ctx, "k", 1, 0))
	was := idsource.Tuning{Step: 500, Description: "d"}
	assert.Must(t, s.Tune(ctx, "k", was))
	assert.Fails(t, "a description without room was accepted", s.Tune(ctx, "k", idsource.Tuning{Step: 700, Description: strings.Repeat("long", 100)}), "")
	assert.Of(s.Tuning(ctx, "k")).Equal(t, "tuned", was)
	assert.Must(t, shared.exec("CREATE OR REPLACE USER tunes@'127.0.0.1' IDENTIFIED BY 'tunes'",
		"GRANT SELECT, INSERT, UPDATE ON idproxy.* TO tunes@'127.0.0.1'"))
	tunes := assert.Of(New(Config{DSN: strings.Replace(shared.dsn(), "idproxy:"+password, "tunes:tunes", 1)})).Must(t)
	defer tunes.Close() //nolint:errcheck // nothing is pending
	assert.NoError(t, tunes.Tune(ctx, "k", idsource.Tuning{Step: 800}))
}

// TestCommitEnds: on a server where a COMMIT begins the next transaction for everybody, what is
// written behind a range is there for others at once.
func TestCommitEnds(t *testing.T) {
	t.Parallel()
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := startWith(t, kind, nil)
			db := assert.Of(sql.Open("mysql", w.DSN(""))).Must(t)
			defer db.Close() //nolint:errcheck // nothing is pending
			assert.Of(db.ExecContext(t.Context(), "SET GLOBAL completion_type = 'CHAIN'")).Must(t)
			s, other := w.store(), w.store()
			s.db.SetMaxOpenConns(1) // what comes next goes over the connection of the range
			other.db.SetMaxOpenConns(1)
			assert.Must(t, s.Open(t.Context(), "k", 1, 0))
			for want := uint64(1); want < 300; want += 101 { // the first range makes the table of the history
				assert.Must(t, reserved(s, ask("k", 1), want))
				assert.Must(t, s.Set(t.Context(), "k", want+101))
				seen, err := other.Position(t.Context(), "k")
				assert.True(t, seen.Next == want+101 && err == nil, "others see %d, %v, want %d", seen.Next, err, want+101)
			}
		})
	}
}

// used is a store whose key k has given its first id, which makes the table of the history.
func used(t *testing.T, dsn string) *Store {
	t.Helper()
	s := newStore(t, dsn)
	assert.Must(t, s.Open(t.Context(), "k", 1, 0))
	assert.Must(t, reserved(s, ask("k", 1), 1))
	return s
}

// TestHistoryIsBounded: of a key with more ranges than are kept the oldest are deleted.
func TestHistoryIsBounded(t *testing.T) {
	s := newStore(t, shared.dsn())
	ctx := t.Context()
	assert.Must(t, s.Open(ctx, "k", 1_000_000, 0))
	assert.Must(t, reserved(s, ask("k", 1), 1_000_000))
	for _, q := range []string{
		"INSERT INTO idproxy_taken SELECT 'k', seq, seq + 1, UTC_TIMESTAMP(6), 'a' FROM seq_1_to_10500",
		"INSERT INTO idproxy_taken SELECT 'k', 900000 + seq, 900001 + seq, UTC_TIMESTAMP(6) - INTERVAL 31 DAY, 'a' FROM seq_1_to_10",
		"INSERT INTO idproxy_taken SELECT 'other', seq, seq + 1, UTC_TIMESTAMP(6), 'a' FROM seq_1_to_10500",
	} {
		assert.Of(s.db.ExecContext(ctx, q)).Must(t)
	}
	count := func(what string) (n int) {
		t.Helper()
		assert.Must(t, s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM idproxy_taken WHERE "+what).Scan(&n))
		return n
	}
	for range 100 * forgetEvery { // one in forgetEvery looks
		assert.Must(t, sourcetest.ErrorOf(s.Reserve(ctx, ask("k", 1))))
		if count("biz_tag = 'k'") <= historyMost {
			break
		}
	}
	assert.LessOrEqual(t, "ranges are kept", count("biz_tag = 'k'"), historyMost)
	assert.Equal(t, "ranges of last month are kept", count("lo > 900000 AND lo < 900020"), 0)
	assert.Equal(t, "ranges of another key, all of them", count("biz_tag = 'other'"), 10_500)
}

// TestHistoryDenied: an account that may not write the history gets its ranges, and the log says it once.
func TestHistoryDenied(t *testing.T) {
	s := newStore(t, shared.dsn())
	assert.Must(t, s.Open(t.Context(), "k", 1, 0))
	assert.Must(t, shared.exec("DROP TABLE IF EXISTS idproxy.idproxy_taken", "CREATE OR REPLACE USER poor@'127.0.0.1' IDENTIFIED BY 'poor'",
		"GRANT SELECT, INSERT, UPDATE ON idproxy.idproxy_segment TO poor@'127.0.0.1'", "GRANT SELECT ON idproxy.idproxy_store TO poor@'127.0.0.1'"))
	var log bytes.Buffer
	poor := assert.Of(New(Config{DSN: strings.Replace(shared.dsn(), "idproxy:"+password, "poor:poor", 1), Logger: slog.New(slog.NewTextHandler(&log, nil))})).Must(t)
	defer poor.Close() //nolint:errcheck // nothing is pending
	for i := range uint64(3) {
		assert.NoError(t, reserved(poor, ask("k", 10), 1+10*i))
	}
	assert.True(t, strings.Count(log.String(), "cannot be written down") == 1, "log: %s", log.String())
	assert.Fails(t, "a range where there is no room", sourcetest.ErrorOf(poor.Reserve(t.Context(), idsource.Ask{Key: "k", Count: 1, Last: 5})), "")
}

// TestHistoryOracle: the history is written where BEGIN is a block of Oracle's language.
func TestHistoryOracle(t *testing.T) {
	s := used(t, shared.dsn()+"?sql_mode='ORACLE'")
	all, err := s.History(t.Context(), "k", 100, 10)
	assert.True(t, len(all) == 1 && err == nil, "history %+v, %v, want one range", all, err)
}

// TestHistoryGoesOn: a range that waited too long for another one is not the end of the history.
func TestHistoryGoesOn(t *testing.T) {
	s := used(t, shared.dsn())
	waits := assert.Of(New(Config{DSN: shared.dsn() + "?innodb_lock_wait_timeout=1"})).Must(t)
	defer waits.Close() //nolint:errcheck // nothing is pending
	tx := assert.Of(s.db.BeginTx(t.Context(), nil)).Must(t)
	assert.Of(tx.ExecContext(t.Context(), "UPDATE idproxy_segment SET description = 'held' WHERE biz_tag = 'k'")).Must(t)
	watch := newStoreOf(t, shared.dsn())
	waited := func() (n int) {
		var name string
		assert.NoError(t, watch.db.QueryRow("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'").Scan(&name, &n))
		return n
	}
	before := waited()
	go func() { // the range was refused the row after a second, and waits for it again
		for end := time.Now().Add(time.Minute); waited() < before+2 && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		_ = tx.Rollback()
	}()
	assert.Must(t, reserved(waits, ask("k", 1), 2))
	assert.Must(t, reserved(waits, ask("k", 1), 3))
	all, err := s.History(t.Context(), "k", 100, 10)
	assert.True(t, len(all) == 2 && all[0].Lo == 3 && err == nil, "history %+v, %v, want the ranges before and behind the wait", all, err)
}

// TestHistoryNotForgotten: where the account may not delete what is old, the history does not grow.
func TestHistoryNotForgotten(t *testing.T) {
	s := used(t, shared.dsn())
	assert.Must(t, shared.exec("CREATE OR REPLACE USER keeps@'127.0.0.1' IDENTIFIED BY 'keeps'",
		"GRANT CREATE, SELECT, INSERT, UPDATE ON idproxy.* TO keeps@'127.0.0.1'"))
	var log bytes.Buffer
	keeps := assert.Of(New(Config{DSN: strings.Replace(shared.dsn(), "idproxy:"+password, "keeps:keeps", 1), Logger: slog.New(slog.NewTextHandler(&log, nil))})).Must(t)
	defer keeps.Close() //nolint:errcheck // nothing is pending
	for range 100 * forgetEvery {
		assert.Must(t, sourcetest.ErrorOf(keeps.Reserve(t.Context(), ask("k", 1))))
		if log.Len() > 0 {
			break
		}
	}
	assert.MustTrue(t, strings.Count(log.String(), "what is old cannot be deleted") == 1, "log: %s", log.String())
	before := assert.Of(s.History(t.Context(), "k", math.MaxInt64, historyMost)).Must(t)
	assert.Must(t, sourcetest.ErrorOf(keeps.Reserve(t.Context(), ask("k", 1))))
	now, err := s.History(t.Context(), "k", math.MaxInt64, historyMost)
	assert.True(t, len(now) == len(before) && err == nil, "%d ranges, %v, want %d", len(now), err, len(before))
}

// roundTrips is where a server is reached whose clients' packets are counted.
func roundTrips(t *testing.T, dsn string) (counted string, n *atomic.Int64) {
	t.Helper()
	l := assert.Of(net.Listen("tcp", "127.0.0.1:0")).Must(t)
	t.Cleanup(func() { _ = l.Close() })
	server := dsn[strings.Index(dsn, "(")+1 : strings.Index(dsn, ")")]
	n = &atomic.Int64{}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				_ = from.Close()
				return
			}
			go func() {
				_, _ = io.Copy(from, to)
				_ = from.Close()
			}()
			go func() {
				defer to.Close() //nolint:errcheck // the test is over
				buf := make([]byte, 1<<16)
				for {
					k, err := from.Read(buf)
					if err != nil {
						return
					}
					n.Add(1)
					if _, err := to.Write(buf[:k]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return strings.Replace(dsn, server, l.Addr().String(), 1), n
}

// TestOneRoundTrip: a range and who took it cost one round trip. One range in a hundred costs
// another, for what is deleted of the history.
func TestOneRoundTrip(t *testing.T) {
	dsn, n := roundTrips(t, shared.dsn())
	s := used(t, dsn)
	const ranges = 50
	before := n.Load()
	for range ranges {
		assert.Must(t, sourcetest.ErrorOf(s.Reserve(t.Context(), ask("k", 7))))
	}
	got := n.Load() - before
	assert.True(t, got >= ranges && got <= ranges+10, "%d ranges cost %d round trips", ranges, got)
}

// TestOlderProgram: the statements of a program that knows neither tuning nor history work beside.
func TestOlderProgram(t *testing.T) {
	s := newStore(t, shared.dsn())
	ctx := t.Context()
	assert.Must(t, s.Open(ctx, "k", 1, 0))
	assert.Must(t, s.Tune(ctx, "k", idsource.Tuning{Step: 500, Description: "d"}))
	for i := range uint64(3) {
		assert.Must(t, reserved(s, idsource.Ask{Key: "k", Count: 10, Floor: 1, Last: math.MaxInt64, By: "new:1"}, 1+30*i))
		r, err := s.db.ExecContext(ctx, fmt.Sprintf("UPDATE idproxy_segment SET max_id = LAST_INSERT_ID(CAST(GREATEST(max_id, %d) + %d AS UNSIGNED)), step = %[2]d WHERE biz_tag = 'k' "+
			"AND NOT EXISTS (SELECT 1 FROM idproxy_store WHERE name = 'servers' OR name = 'version' AND value <> '1')", 1, 20))
		assert.Must(t, err)
		assert.Of(r.RowsAffected()).Equal(t, "rows of the older program's range", 1)
	}
	to, err := s.Tuning(ctx, "k")
	assert.True(t, to.Step == 500 && to.Description == "d" && err == nil, "tuned %+v, %v", to, err)
	all, err := s.History(ctx, "k", 1000, 10)
	assert.True(t, len(all) == 3 && err == nil, "history %+v, %v", all, err)
}

func BenchmarkReserve(b *testing.B) {
	for _, recorded := range []bool{true, false} {
		b.Run(fmt.Sprintf("recorded=%v", recorded), func(b *testing.B) {
			s, err := New(Config{DSN: shared.dsn()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close() //nolint:errcheck // nothing is pending
			if err := s.Open(b.Context(), "bench", 1, 0); err != nil {
				b.Fatal(err)
			}
			if !recorded {
				s.unrecorded.Store(math.MaxInt64)
			}
			for b.Loop() {
				if _, _, err := s.Reserve(b.Context(), ask("bench", 7)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
