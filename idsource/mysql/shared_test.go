package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/segment"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
	"idproxy/integration/servers"
	"idproxy/integration/width"
)

// twin is a process of the other system.
type twin interface {
	nextID() (uint64, error)
	close()
}

// shares is a table that two systems take ranges from.
type shares struct {
	dialect Dialect
	dsn     string
	db      *sql.DB
	every   uint64 // delta
	of      uint64 // remainder
	step    uint64
}

// begin makes the table anew, with one key, "k".
func (s shares) begin(t *testing.T) {
	t.Helper()
	statements := []string{leafTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('k', 1, ?, 'orders')"}
	args := []any{s.step}
	if s.dialect == Tinyid {
		statements = []string{tinyidTable, "INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('k', 1, 1, ?, ?, ?, 1)"}
		args = []any{s.step, s.every, s.of}
	}
	assert.Of(s.db.ExecContext(t.Context(), "DROP TABLE IF EXISTS "+s.dialect.Table())).Must(t)
	assert.Of(s.db.ExecContext(t.Context(), statements[0])).Must(t)
	assert.Of(s.db.ExecContext(t.Context(), statements[1], args...)).Must(t)
}

func (s shares) store(t testing.TB) *Shared {
	t.Helper()
	st := assert.Of(NewShared(SharedConfig{DSN: s.dsn, Dialect: s.dialect})).Must(t)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func (s shares) twin(n int) twin {
	if s.dialect == Tinyid {
		return newTinyid(s.db, "k")
	}
	return newLeaf(s.db, "k", []int64{1_000_000, 100, 3_000}[n%3])
}

// seenIDs finds ids that come twice, and those that are none of the series.
type seenIDs struct {
	of     idsource.Spacing
	bits   []uint64
	twice  atomic.Uint64
	alien  atomic.Uint64
	beyond atomic.Uint64
}

func (s *seenIDs) add(id uint64) {
	switch {
	case id/64 >= uint64(len(s.bits)):
		s.beyond.Add(1)
	case id%s.of.Every != s.of.Remainder:
		s.alien.Add(1)
	case atomic.OrUint64(&s.bits[id/64], 1<<(id%64))&(1<<(id%64)) != 0:
		s.twice.Add(1)
	}
}

// mix has several processes of both systems take ids of one key at random, until each side has
// given want.
func (s shares) mix(t *testing.T, want uint64) *seenIDs {
	t.Helper()
	s.begin(t)
	seed := rand.Uint64()
	seen := &seenIDs{of: idsource.Spacing{Every: s.every, Remainder: s.of}, bits: make([]uint64, want*s.every+16<<20/64*s.every)}
	var ours, theirs atomic.Uint64
	var wg sync.WaitGroup
	began := time.Now()
	for i := range 3 {
		wg.Go(func() {
			one := s.twin(i)
			var inside sync.WaitGroup
			for range 2 {
				inside.Go(func() {
					for theirs.Load() < want {
						id, err := one.nextID()
						if err != nil {
							t.Errorf("%s: %v", s.dialect, err)
							return
						}
						seen.add(id)
						theirs.Add(1)
					}
				})
			}
			inside.Wait()
			one.close()
		})
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for ours.Load() < want {
				s.drawAWhile(t, s.store(t), segment.StepPolicy(i), random, seen, &ours, want)
				if t.Failed() {
					return
				}
			}
		})
	}
	wg.Wait()
	var stands uint64
	if p, err := s.store(t).Position(t.Context(), "k"); err != nil {
		t.Error(err)
	} else {
		stands = p.Next
	}
	t.Logf("%s, every %d: idproxy gave %d ids and %s %d in %v; the key stands at %d, %d came twice (seed %d)",
		s.dialect, s.every, ours.Load(), s.dialect, theirs.Load(), time.Since(began).Round(time.Millisecond), stands, seen.twice.Load(), seed)
	return seen
}

// drawAWhile is one process of idproxy from its start to its end. Now and then it moves past an id,
// or an administrator sets the step.
func (s shares) drawAWhile(t *testing.T, store *Shared, policy segment.StepPolicy, random *rand.Rand, seen *seenIDs, ours *atomic.Uint64, want uint64) {
	seg, err := segment.New(segment.Config{Name: "order_id", Store: store, Key: "k", StepPolicy: policy, MaxStep: 10_000, Wait: func() time.Duration { return time.Minute }})
	if err != nil {
		t.Error(err)
		return
	}
	last := uint64(0)
	for range 500 + random.IntN(2000) {
		if ours.Load() >= want {
			break
		}
		ids := make([]uint64, 1+random.IntN(40))
		if err := seg.Fill(t.Context(), ids, 1); err != nil {
			t.Error(err)
			break
		}
		for _, id := range ids {
			seen.add(id)
		}
		ours.Add(uint64(len(ids)))
		last = ids[len(ids)-1]
	}
	if random.IntN(4) == 0 {
		assert.NoError(t, seg.Advance(t.Context(), last+uint64(random.IntN(20))))
	}
	if random.IntN(8) == 0 {
		assert.NoError(t, store.Tune(t.Context(), "k", idsource.Tuning{Step: s.step + random.Uint64N(2000)}))
	}
	assert.NoError(t, seg.Close(context.Background()))
}

// control takes ranges as if max_id meant something else: they begin an id later.
func (s shares) control(t *testing.T) {
	t.Helper()
	s.begin(t)
	st, one := s.store(t), s.twin(0)
	defer one.close()
	seen := &seenIDs{of: idsource.Spacing{Every: 1}, bits: make([]uint64, 10_000)}
	for range 20 {
		lo, hi, err := st.Reserve(t.Context(), idsource.Ask{Key: "k", Count: 10, Floor: 1, Last: math.MaxInt64})
		assert.Must(t, err)
		for id := lo + 1; id <= hi; id++ {
			seen.add(id)
		}
		for range 2 * s.step {
			id := assert.Of(one.nextID()).Must(t)
			seen.add(id)
		}
	}
	assert.True(t, seen.twice.Load() != 0, "%s: the control found no id twice", s.dialect)
}

// TestShared has idproxy and stand-ins for Leaf and tinyid take ids of one key: none comes twice.
func TestShared(t *testing.T) {
	t.Parallel()
	want := width.Of[uint64](5_000, 400_000)
	if width.Long {
		want = 5_000_000
	}
	for _, kind := range []servers.Kind{servers.MariaDB, servers.MySQL} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := startWith(t, kind, nil)
			db := assert.Of(sql.Open("mysql", w.DSN("idproxy"))).Must(t)
			t.Cleanup(func() { _ = db.Close() })
			for _, s := range []shares{{dialect: Leaf, every: 1}, {dialect: Tinyid, every: 1}, {dialect: Tinyid, every: 3, of: 2}} {
				s.dsn, s.db, s.step = w.DSN("idproxy"), db, 10+want/10_000
				seen := s.mix(t, want)
				if seen.twice.Load()+seen.alien.Load()+seen.beyond.Load() > 0 {
					t.Errorf("%s, every %d: %d ids came twice, %d are not of the series, %d are beyond what was asked for", s.dialect, s.every, seen.twice.Load(), seen.alien.Load(), seen.beyond.Load())
				}
				if s.every > 1 {
					continue
				}
				s.control(t)
				s.rules(t)
			}
		})
	}
}

// rules looks at what a Shared store promises, step by step.
func (s shares) rules(t *testing.T) {
	s.begin(t)
	st, ctx := s.store(t), t.Context()
	first := uint64(1)
	if s.dialect == Tinyid {
		first = 2 // it gives ids above max_id
	}
	ask := idsource.Ask{Key: "k", Count: 10, Floor: 1, Last: math.MaxInt64}
	for _, one := range []struct {
		name string
		do   func() error
		want idsource.Position
	}{
		{"as it was made", func() error { return nil }, idsource.Position{Next: first, Unset: true}},
		{"reserve", func() error { return reservedOf(st, ask, first) }, idsource.Position{Next: first + 10, Used: true}},
		{"floor", func() error {
			return reservedOf(st, idsource.Ask{Key: "k", Count: 10, Floor: 100, Last: 200}, 100)
		}, idsource.Position{Next: 110, Used: true}},
		{"give back", func() error { _, err := st.GiveBack(ctx, "k", 105, 110); return err }, idsource.Position{Next: 105, Used: true}},
		{"give back late", func() error { _, err := st.GiveBack(ctx, "k", 5, 10); return err }, idsource.Position{Next: 105, Used: true}},
		{"up", func() error { return st.Advance(ctx, "k", 1000) }, idsource.Position{Next: 1000, Used: true}},
		{"not down", func() error { return st.Advance(ctx, "k", 900) }, idsource.Position{Next: 1000, Used: true}},
		{"set down", func() error { return st.Set(ctx, "k", 500) }, idsource.Position{Next: 500, Used: true}},
		{"near the end", func() error { return st.Advance(ctx, "k", math.MaxInt64-10) }, idsource.Position{Next: math.MaxInt64 - 10, Used: true}},
		{"the end", func() error { return reservedOf(st, ask, math.MaxInt64-10) }, idsource.Position{Next: math.MaxInt64, Used: true}},
	} {
		assert.Must(t, one.do(), fmt.Sprintf("%s: %s", s.dialect, one.name))
		assert.Of(st.Position(ctx, "k")).Equal(t, fmt.Sprint(s.dialect, ": ", one.name), one.want)
	}
	_, _, err := st.Reserve(ctx, ask)
	full, ok := errors.AsType[*idsource.FullError](err)
	assert.True(t, ok && full.Next == math.MaxInt64, "%s: beyond the end: %v, want a FullError", s.dialect, err)
	assert.Must(t, st.Set(ctx, "k", 500))
	ask.High = 501
	_, _, err = st.Reserve(ctx, ask)
	back, ok := errors.AsType[*idsource.WentBackError](err)
	assert.True(t, ok && back.Next == 500, "%s: below where it is known to stand: %v, want a WentBackError", s.dialect, err)
	s.keys(t, st)
}

// keys looks at keys that are not there, and at how keys are tuned.
func (s shares) keys(t *testing.T, st *Shared) {
	ctx := t.Context()
	assert.ErrorIs(t, fmt.Sprint(s.dialect, ": Reserve of a key that is not there"), sourcetest.ErrorOf(st.Reserve(ctx, idsource.Ask{Key: "none", Count: 1, Last: 9})), idsource.ErrNoKey)
	assert.Fails(t, fmt.Sprintf("%s: Advance of a key that is not there", s.dialect), st.Advance(ctx, "none", 1), "no row for key")
	assert.Must(t, st.Create(ctx, "new", 700, idsource.Tuning{Step: 33}))
	p, err := st.Position(ctx, "new")
	assert.True(t, p.Next == 700 && p.Used == (s.dialect == Leaf) && err == nil, "%s: a new key: %+v, %v", s.dialect, p, err)
	to, err := st.Tuning(ctx, "new")
	assert.True(t, to.Step == 33 && err == nil, "%s: tuning of a new key: %+v, %v", s.dialect, to, err)
	for _, to := range []idsource.Tuning{{}, {MaxStep: 5}, {Policy: "fixed"}, {Step: 1 << 40}, {Step: 5, MaxStep: 5}, {Step: 5, Policy: "fixed"}} {
		assert.Fails(t, fmt.Sprintf("%s: Tune(%+v) was accepted", s.dialect, to), st.Tune(ctx, "k", to), "")
	}
	keys, err := st.Keys(ctx)
	assert.True(t, len(keys) == 2 && err == nil, "%s: keys %q, %v", s.dialect, keys, err)
	if s.dialect != Tinyid {
		return
	}
	assert.Of(st.Spacing(ctx, "k")).Equal(t, "spacing", idsource.Spacing{Every: 1})
	assert.Of(s.db.ExecContext(ctx, "UPDATE tiny_id_info SET delta = 2, remainder = 1 WHERE biz_type = 'k'")).Must(t)
	assert.Fails(t, "Reserve of a key whose delta was changed", sourcetest.ErrorOf(st.Reserve(ctx, idsource.Ask{Key: "k", Count: 1, Last: 9999})), "restart idproxy")
}

func reservedOf(s *Shared, a idsource.Ask, want uint64) error {
	lo, hi, err := s.Reserve(context.Background(), a)
	if err == nil && (lo != want || hi != lo+a.Count) {
		err = errors.New("another range than it should be")
	}
	return err
}
