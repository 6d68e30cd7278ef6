package mysql

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func ask(key string, n uint64) idsource.Ask {
	return idsource.Ask{Key: key, Count: n, Floor: 1, Last: math.MaxInt64}
}

func TestStore(t *testing.T) {
	for name, dsn := range dsns() {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, dsn)
			ctx := t.Context()
			assert.Of(s.Position(ctx, "k")).Equal(t, "Position without a table", idsource.Position{})
			assert.ErrorIs(t, "Reserve without a table", sourcetest.ErrorOf(s.Reserve(ctx, ask("k", 1))), idsource.ErrNoKey)
			floor, unsigned := idsource.Ask{Key: "k", Count: 10, Floor: 100, Last: 200}, idsource.Ask{Key: "k", Count: 100, Floor: 1, Last: math.MaxUint64 - 1}
			for _, st := range []struct {
				name string
				do   func() error
				want idsource.Position
			}{
				{"new", func() error { return s.Open(ctx, "k", 5, 0) }, idsource.Position{Next: 5}},
				{"not down", func() error { return s.Advance(ctx, "k", 3) }, idsource.Position{Next: 5}},
				{"reserve", func() error { return reserved(s, ask("k", 10), 5) }, idsource.Position{Next: 15, Used: true}},
				{"floor", func() error { return reserved(s, floor, 100) }, idsource.Position{Next: 110, Used: true}},
				{"give back", func() error { _, err := s.GiveBack(ctx, "k", 105, 110); return err }, idsource.Position{Next: 105, Used: true}},
				{"give back late", func() error { _, err := s.GiveBack(ctx, "k", 5, 10); return err }, idsource.Position{Next: 105, Used: true}},
				{"up", func() error { return s.Advance(ctx, "k", 1000) }, idsource.Position{Next: 1000, Used: true}},
				{"signed end", func() error { return s.Advance(ctx, "k", math.MaxInt64) }, idsource.Position{Next: math.MaxInt64, Used: true}},
				{"last signed id", func() error { return reserved(s, ask("k", 1), math.MaxInt64) }, idsource.Position{Next: 1 << 63, Used: true}},
				{"unsigned", func() error { return reserved(s, unsigned, 1<<63) }, idsource.Position{Next: 1<<63 + 100, Used: true}},
			} {
				assert.Must(t, st.do(), st.name)
				assert.Of(s.Position(ctx, "k")).Equal(t, st.name, st.want)
			}
			_, _, err := s.Reserve(ctx, ask("k", 1))
			full, ok := errors.AsType[*idsource.FullError](err)
			assert.True(t, ok && full.Next == 1<<63+100, "Reserve beyond the last id: %v, want a FullError", err)
			back := idsource.Ask{Key: "k", Count: 1, Floor: 1 << 63, Last: math.MaxUint64 - 1, High: 1<<63 + 101}
			_, _, err = s.Reserve(ctx, back)
			e, ok := errors.AsType[*idsource.WentBackError](err)
			assert.True(t, ok && e.Next == 1<<63+100, "Reserve of a key that stands lower than known: %v, want a WentBackError", err)
			back.High--
			assert.NoError(t, reserved(s, back, 1<<63+100), "Reserve of a key that stands where known")
			assert.ErrorIs(t, "Reserve of a key that is not there", sourcetest.ErrorOf(s.Reserve(ctx, ask("other", 1))), idsource.ErrNoKey)
		})
	}
}

func reserved(s *Store, a idsource.Ask, want uint64) error {
	lo, hi, err := s.Reserve(context.Background(), a)
	if err == nil && (lo != want || hi != lo+a.Count) {
		err = fmt.Errorf("reserved [%d, %d), want %d ids from %d on", lo, hi, a.Count, want)
	}
	return err
}

func TestKeys(t *testing.T) {
	s := newStore(t, shared.dsn())
	keys := []string{"a", "A", "ä", `x' OR '1'='1`, `\`, `"`, "new\nline", "\x00", strings.Repeat("ü", 255)}
	for i, key := range keys {
		assert.NoError(t, s.Open(t.Context(), key, uint64(i+1), 0), fmt.Sprintf("Advance(%q)", key))
	}
	for i, key := range keys {
		p, err := s.Position(t.Context(), key)
		assert.True(t, p.Next == uint64(i+1) && err == nil, "Position(%q) = %+v, %v, want %d", key, p, err, i+1)
	}
	for _, key := range []string{strings.Repeat("x", 256), "\xff"} {
		assert.Fails(t, fmt.Sprintf("Advance(%.20q) was accepted", key), s.Open(t.Context(), key, 1, 0), "")
	}
}

// No error tells the password, whatever is wrong.
func TestPasswordStaysSecret(t *testing.T) {
	const secret = "hunter2"
	here := fmt.Sprintf("127.0.0.1:%d", shared.port)
	for _, dsn := range []string{
		"idproxy:hunter2", "idproxy:hunter2@tcp(127.0.0.1:1/idproxy", "idproxy:hunter2/x@nowhere/idproxy", "idproxy:x@hunter2(y)/idproxy", "idproxy:hunter2@tcp(127.0.0.1:1)/",
		"idproxy:hunter2@tcp(127.0.0.1:1)/idproxy?timeout=hunter2", "idproxy:hunter2@tcp(127.0.0.1:1)/idproxy?tls=hunter2", "idproxy:hunter2@tcp(127.0.0.1:1)/idproxy",
		"idproxy:hunter2@tcp(" + here + ")/idproxy", "idproxy:hunter2@tcp(" + here + ")/nothing",
	} {
		s, err := New(Config{DSN: dsn})
		if err == nil {
			_, err = s.Position(t.Context(), "k")
			assert.NoError(t, s.Close(), "Close")
		}
		assert.True(t, err != nil && !strings.Contains(err.Error(), secret), "dsn %q: error %v, want one without the password", dsn, err)
	}
}

// TestWarnOfCrashes: a server that may forget commits is named once, also for a key that is not there yet.
func TestWarnOfCrashes(t *testing.T) {
	defer func() { assert.NoError(t, shared.exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1")) }()
	for _, value := range []string{"2", "1"} {
		assert.Must(t, shared.exec("SET GLOBAL innodb_flush_log_at_trx_commit = "+value))
		for _, fresh := range []bool{false, true} {
			s := newStore(t, shared.dsn())
			var log bytes.Buffer
			s.logger = slog.New(slog.NewTextHandler(&log, nil))
			key := "fresh"
			if !fresh {
				key = "k"
				assert.Must(t, s.Open(t.Context(), key, 1, 0))
			}
			for range 3 {
				assert.Of(s.Position(t.Context(), key)).Must(t)
			}
			want := map[string]int{"2": 1, "1": 0}[value]
			assert.Equal(t, fmt.Sprintf("innodb_flush_log_at_trx_commit %s, fresh %v: warnings in %s", value, fresh, &log), strings.Count(log.String(), "innodb_flush_log_at_trx_commit is 2, not 1"), want)
		}
	}
}

func TestWeakness(t *testing.T) {
	for _, tt := range []struct{ flush, log, sync, want string }{
		{"1", "ON", "1", ""},
		{"1", "OFF", "0", ""},
		{"3", "OFF", "0", ""},
		{"1", "ON", "0", "sync_binlog is 0, not 1"},
		{"1", "ON", "1000", "sync_binlog is 1000, not 1"},
		{"0", "ON", "0", "innodb_flush_log_at_trx_commit is 0 and sync_binlog is 0, not 1"},
	} {
		got := weakness(map[string]string{"innodb_flush_log_at_trx_commit": tt.flush, "log_bin": tt.log, "sync_binlog": tt.sync})
		assert.Equal(t, fmt.Sprintf("%+v", tt), got, tt.want)
	}
}

// aMinute is how long an id is waited for on a busy machine.
func aMinute() time.Duration { return time.Minute }

func newSegment(t *testing.T, s *Store, wait func() time.Duration) *segment.Segment {
	t.Helper()
	assert.Must(t, s.Open(t.Context(), "order_id", 1, idsource.AnySeal))
	src := assert.Of(segment.New(segment.Config{Name: "order_id", Store: s, Step: 10, MaxStep: 20, Wait: wait})).Must(t)
	t.Cleanup(func() { assert.NoError(t, src.Close(context.Background()), "Close") })
	return src
}

// TestServerKilled: the server runs with autocommit off, which the store must not fall for.
func TestServerKilled(t *testing.T) {
	t.Parallel()
	own := newServer(t)
	assert.Must(t, newStore(t, own.dsn()).Open(t.Context(), "order_id", 1, 0))
	source := func() idsource.Series { return newSegment(t, newStoreOf(t, own.dsn()), nil) }
	sourcetest.Killed(t, source, own.kill, func() { assert.Must(t, own.start(), "server did not come back") })
}

// Every Advance that returned holds for other processes, though the server dies.
func TestServerKilledAdvance(t *testing.T) {
	t.Parallel()
	own := newServer(t)
	s := newStore(t, own.dsn())
	src, ids := newSegment(t, s, aMinute), make([]uint64, 1)
	for _, far := range []uint64{0, 9, 10, 500, 1 << 40} {
		assert.Must(t, src.Fill(t.Context(), ids, 1))
		id := ids[0] + far
		assert.Must(t, src.Advance(t.Context(), id))
		own.kill()
		assert.Must(t, own.start())
		for _, src := range []*segment.Segment{newSegment(t, s, aMinute), src} {
			err := src.Fill(t.Context(), ids, 1)
			assert.True(t, err == nil && ids[0] > id, "id %d behind Advance(%d), %v", ids[0], id, err)
		}
	}
}

// A backup is restored under a running source.
func TestServerWentBack(t *testing.T) {
	s := newStore(t, shared.dsn())
	src := newSegment(t, s, aMinute)
	assert.Must(t, src.Admit(t.Context(), "shop.orders.id", 0))
	ids := make([]uint64, 50)
	assert.Must(t, src.Fill(t.Context(), ids, 1))
	assert.Of(s.db.ExecContext(t.Context(), "UPDATE idproxy_segment SET max_id = 20")).Must(t)
	var err error
	for range 10 {
		if err = src.Fill(t.Context(), ids, 1); err != nil {
			break
		}
		assert.MustTrue(t, ids[0] > 50, "ids from %d on were issued again", ids[0])
	}
	assert.True(t, errors.Is(err, idsource.Behind), "Fill: %v, want kind Behind", err)
	for assert.Of(s.Position(t.Context(), "order_id")).Must(t).Sealed == 0 { // src seals it
		time.Sleep(time.Millisecond)
	}
	again := newSegment(t, s, aMinute)
	assert.ErrorIs(t, "Admit after a restart", again.Admit(t.Context(), "shop.orders.id", 5000), idsource.Behind)
}

func TestNotes(t *testing.T) {
	for name, dsn := range dsns() {
		t.Run(name, func(t *testing.T) {
			one, other := newStore(t, dsn), newStore(t, dsn)
			assert.Of(one.db.ExecContext(t.Context(), "DROP TABLE IF EXISTS idproxy_note")).Must(t)
			sourcetest.Notes(t, one.Notes(), other.Notes())
		})
	}
}
