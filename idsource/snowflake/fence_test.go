package snowflake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// lives starts, uses and kills a source several times over the same store,
// setting the clock in between, and returns all that was issued.
func lives(t *testing.T, back time.Duration, fenced guard) (ids []uint64) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		fences.forget = !bool(fenced)
		var clk testClock
		for range 4 {
			s := newTestSnowflake(t, Config{Fences: fences, Sequence: "zero"}, clk.clock())
			for range 50 {
				more := make([]uint64, 3)
				if err := s.Fill(t.Context(), more, 1); err != nil {
					sourcetest.WantKind(t, "Fill", err, idsource.Fenced)
					break
				}
				ids = append(ids, more...)
				time.Sleep(10 * time.Millisecond)
			}
			kill(s)
			fences.crash()
			clk.jump(-back)
		}
	})
	return ids
}

// Restarts after kill -9 with the clock set back, as in the reports about other
// generators that keep the last time only.
func TestSnowflakeRestart(t *testing.T) {
	for _, back := range []time.Duration{0, 10 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second, time.Hour} {
		ids := lives(t, back, guarded)
		sourcetest.Once(t, ids, "clock back by", back)
		assert.True(t, len(ids) >= 150, "clock back by %v: only %d ids", back, len(ids))
	}
	// Negative control: an owner that does not start above the fence.
	sourcetest.Twice(t, lives(t, 500*time.Millisecond, bare), "without the fence")
}

// After a crash the source goes on at once, above the dead owner's fence.
func TestSnowflakeRestartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		var clk testClock
		a := newTestSnowflake(t, Config{Fences: fences}, clk.clock())
		sourcetest.Fill(t, a, 1, 1)
		kill(a)
		fences.crash()
		fence := fences.fence(0)
		time.Sleep(100 * time.Millisecond)
		b := newTestSnowflake(t, Config{Fences: fences}, clk.clock())
		start := time.Now()
		assert.GreaterOrEqual(t, "the new owner's timestamp, above the fence", b.layout.Decode(sourcetest.Fill(t, b, 1, 1)[0]).Time, fence)
		assert.LessOrEqual(t, "the first id took", time.Since(start), 10*time.Millisecond)
	})
}

// A clean end lowers the fence to what was used.
func TestSnowflakeClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		s := newTestSnowflake(t, Config{Fences: fences, Worker: 9}, new(testClock).clock())
		last := s.layout.Decode(sourcetest.Fill(t, s, 5, 1)[4]).Time
		assert.Must(t, s.Close(t.Context()), "Close")
		assert.Equal(t, "fence after Close", fences.fence(9), last+1)
		assert.True(t, !fences.held[9], "the worker number is still held")
		sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Closed)
		sourcetest.WantKind(t, "Admit", s.Admit(t.Context(), "a.b.c", 0), idsource.Closed)
		assert.NoError(t, s.Close(t.Context()), "second Close")
	})
}

// The store cannot be written any more: ids go on up to the fence, then stop,
// and come back with the store.
func TestSnowflakeFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		s := newTestSnowflake(t, Config{Fences: fences}, new(testClock).clock())
		sourcetest.Fill(t, s, 1, 1)
		fences.set(func(f *faultFences) { f.down = sourcetest.ErrDown })
		start := time.Now()
		var err error
		for err == nil {
			ids := make([]uint64, 1)
			err = s.Fill(t.Context(), ids, 1)
			assert.MustTrue(t, err != nil || s.layout.Decode(ids[0]).Time < fences.fence(0), "timestamp at or above the fence")
			time.Sleep(10 * time.Millisecond)
		}
		sourcetest.WantKind(t, "at the fence", err, idsource.Fenced)
		assert.True(t, errors.Is(err, sourcetest.ErrDown), "error %q lacks the cause", err)
		lasted := time.Since(start)
		assert.True(t, lasted >= DefaultLead && lasted <= DefaultLead+idsource.DefaultWait+time.Second, "ids lasted %v without the store, want the lead of %v and the wait of %v", lasted, DefaultLead, idsource.DefaultWait)
		fences.set(func(f *faultFences) { f.down = nil })
		time.Sleep(idsource.MaxPause)
		sourcetest.Fill(t, s, 1, 1)
	})
}

func TestSnowflakeNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		fences.held[0] = true
		s := newTestSnowflake(t, Config{Fences: fences}, new(testClock).clock())
		start := time.Now()
		err := s.Fill(t.Context(), make([]uint64, 1), 1)
		sourcetest.WantKind(t, "worker held elsewhere", err, idsource.NotReady)
		assert.True(t, errors.Is(err, errHeld) && time.Since(start) == idsource.DefaultWait, "after %v: %v, want the cause after %v", time.Since(start), err, idsource.DefaultWait)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("client gone"))
		err = s.Fill(ctx, make([]uint64, 1), 1)
		sourcetest.WantKind(t, "context that ended", err, idsource.NotReady)
		assert.True(t, strings.Contains(err.Error(), "client gone"), "error %q lacks the context's cause", err)
		fences.crash()
		sourcetest.Fill(t, s, 1, 1)
	})
}

// A worker number that was used with another layout or epoch: refused at once.
func TestSnowflakeOtherShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		fences.down = fmt.Errorf("%w: layout 38/15/10", idsource.BadConfig)
		s := newTestSnowflake(t, Config{Fences: fences}, new(testClock).clock())
		synctest.Wait()
		start := time.Now()
		err := s.Fill(t.Context(), make([]uint64, 1), 1)
		sourcetest.WantKind(t, "Fill", err, idsource.BadConfig)
		took := time.Since(start)
		assert.True(t, took == 0 && strings.Contains(err.Error(), "38/15/10"), "after %v: %v, want the cause at once", took, err)
	})
}

// The clock is set back while a source runs.
func TestSnowflakeClockBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		then ClockBack
		back time.Duration
		want idsource.Kind // of the first Fill; 0: an id
		took time.Duration // at most
	}{
		{"hold", BackError, 15 * time.Millisecond, 0, 0},
		{"borrow", BackBorrow, 2 * time.Second, 0, 0},
		{"borrow too much, wait", BackBorrow, 4 * time.Second, 0, 1100 * time.Millisecond},
		{"an hour", BackBorrow, time.Hour, idsource.Fenced, 0},
		{"error, wait", BackError, time.Second, 0, time.Second},
		{"error", BackError, 10 * time.Second, idsource.Fenced, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clk testClock
				s := newTestSnowflake(t, Config{Fences: newFaultFences(), ClockBack: tt.then}, clk.clock())
				time.Sleep(time.Minute) // the start no longer counts
				before := sourcetest.Fill(t, s, 10, 1)
				clk.jump(-tt.back)
				ids, start := make([]uint64, 1), time.Now()
				err := s.Fill(t.Context(), ids, 1)
				took := time.Since(start)
				assert.True(t, (err == nil) == (tt.want == 0) && (err == nil || errors.Is(err, tt.want)) && took <= tt.took, "Fill after %v back: %v after %v, want kind %v within %v", tt.back, err, took, tt.want, tt.took)
				assert.True(t, err != nil || ids[0] > before[9], "id %d does not follow %d", ids[0], before[9])
				time.Sleep(tt.back)
				got := sourcetest.Fill(t, s, 1, 1)
				assert.True(t, got[0] > before[9], "id %d does not follow %d", got[0], before[9])
			})
		})
	}
}

// A clock that jumps ahead and is put right must not take the fence with it.
func TestSnowflakeClockAhead(t *testing.T) {
	for _, then := range []ClockBack{BackBorrow, BackError} {
		synctest.Test(t, func(t *testing.T) { clockAhead(t, then) })
	}
}

func clockAhead(t *testing.T, then ClockBack) {
	t.Helper()
	fences := newFaultFences()
	var clk testClock
	s := newTestSnowflake(t, Config{Fences: fences, ClockBack: then}, clk.clock())
	time.Sleep(time.Minute)
	sourcetest.Fill(t, s, 1, 1)
	before := fences.fence(0)
	clk.jump(24 * time.Hour)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	assert.Fails(t, "an id was issued a day ahead at once", s.Fill(ctx, make([]uint64, 1), 1), "")
	clk.jump(-24 * time.Hour)
	assert.LessOrEqual(t, "after the jump the fence", fences.fence(0), before+10_000)
	sourcetest.Fill(t, s, 1, 1) // the clock was put right, it did not go back

	// A jump that stays is followed.
	clk.jump(24 * time.Hour)
	time.Sleep(2 * DefaultRenew)
	id := s.layout.Decode(sourcetest.Fill(t, s, 1, 1)[0])
	assert.GreaterOrEqual(t, "by the clock the timestamp", id.Time+1000, s.time.now())

	// That is what it can go back from.
	clk.jump(-24 * time.Hour)
	err := s.Fill(t.Context(), make([]uint64, 1), 1)
	assert.True(t, then != BackError || err != nil && strings.Contains(err.Error(), "the clock went back by 24h"), "a day back: %v", err)
}

// Two sources with one worker number and no lock between them: the fence does not part them, the
// lock does. This is the lock's negative control; the test of the file store has the positive one.
func TestSnowflakeTwoOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clk testClock
		a := newTestSnowflake(t, Config{Fences: newFaultFences(), Sequence: "zero"}, clk.clock())
		b := newTestSnowflake(t, Config{Fences: newFaultFences(), Sequence: "zero"}, clk.clock())
		ids := append(sourcetest.Fill(t, a, 10, 1), sourcetest.Fill(t, b, 10, 1)...)
		sourcetest.Twice(t, ids, "two owners of a worker number")
	})
}

// unfence has a source believe that its fence lies in the far future.
func unfence(s *Snowflake) {
	g := *s.words.grant.Load()
	g.fence = math.MaxUint64
	s.words.grant.Store(&g)
}

// guard says whether what a test is about is at work; without it the test must notice.
type guard bool

const (
	guarded guard = true
	bare    guard = false
)

// outlive runs a source for longer than the fence that its store still took,
// kills it, sets the clock back and starts another one.
func outlive(t *testing.T, fenced guard) (ids []uint64) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		var clk testClock
		s := newTestSnowflake(t, Config{Fences: fences, Sequence: "zero"}, clk.clock())
		ids = append(ids, sourcetest.Fill(t, s, 1, 1)...)
		fences.set(func(f *faultFences) { f.down = sourcetest.ErrDown })
		if !fenced {
			unfence(s)
		}
		for range 200 {
			more := make([]uint64, 1)
			if err := s.Fill(t.Context(), more, 1); err == nil {
				ids = append(ids, more...)
			}
			time.Sleep(100 * time.Millisecond)
		}
		kill(s)
		fences.crash()
		fences.set(func(f *faultFences) { f.down = nil })
		clk.jump(-8 * time.Second)
		s = newTestSnowflake(t, Config{Fences: fences, Sequence: "zero"}, clk.clock())
		for range 80 {
			ids = append(ids, sourcetest.Fill(t, s, 1, 1)...)
			time.Sleep(100 * time.Millisecond)
		}
	})
	return ids
}

func TestSnowflakeFenceCheck(t *testing.T) {
	sourcetest.Once(t, outlive(t, guarded))
	sourcetest.Twice(t, outlive(t, bare), "beyond its fence")
}

// closeUnderLoad lets sources with one worker number follow each other without
// a pause while goroutines take ids. Every id carries into the time, so that the
// next owner starts right behind the last id of the one before.
func closeUnderLoad(t *testing.T, closing func(*Snowflake, *faultFences) error) (ids []uint64) {
	fences := usedFences(0)
	var clk testClock
	slow := clk.clock()
	wall := slow.Wall
	slow.Wall = func() int64 {
		now := wall()
		runtime.Gosched() // the grant may be taken away here
		return now
	}
	var mu sync.Mutex
	for range 40 {
		s := newTestSnowflake(t, Config{Fences: fences, Layout: "41/10/1", Sequence: "zero"}, slow)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				var mine []uint64
				for {
					id := make([]uint64, 1)
					if err := s.Fill(context.Background(), id, 1); err != nil {
						sourcetest.WantKind(t, "Fill", err, idsource.Closed)
						break
					}
					mine = append(mine, id...)
				}
				mu.Lock()
				ids = append(ids, mine...)
				mu.Unlock()
			})
		}
		time.Sleep(time.Millisecond)
		assert.NoError(t, closing(s, fences), "Close")
		wg.Wait()
	}
	return ids
}

func justClose(s *Snowflake, _ *faultFences) error { return s.Close(context.Background()) }

// closeRegranted is Close with a grant that is there again when a claim looks at it once more.
func closeRegranted(s *Snowflake, fences *faultFences) error {
	defer s.words.revoke()
	g := s.words.grant.Load()
	fences.set(func(f *faultFences) {
		f.releasing = func() {
			s.words.grant.Store(g)
			time.Sleep(time.Millisecond)
		}
	})
	return s.Close(context.Background())
}

func TestSnowflakeCloseUnderLoad(t *testing.T) {
	sourcetest.Once(t, closeUnderLoad(t, justClose))
	for range 20 { // on a busy machine the moment may be missed
		if _, twice := sourcetest.Repeated(closeUnderLoad(t, closeRegranted)); twice {
			return
		}
	}
	t.Error("with a grant that stays no id was issued twice: the test proves nothing")
}

// Restarts in quick succession do not add their leads up.
func TestSnowflakeCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		var all []uint64
		for range 50 {
			s := newTestSnowflake(t, Config{Fences: fences, Layout: "41/10/1"}, new(testClock).clock())
			for range 30 {
				id := sourcetest.Fill(t, s, 1, 1)[0]
				ts, most := s.layout.Decode(id).Time, s.time.now()+s.words.lead
				assert.MustTrue(t, ts <= most, "timestamp %d lies %d ms above the clock and the lead", ts, ts-most)
				all = append(all, id)
			}
			kill(s)
			fences.crash()
		}
		sourcetest.Once(t, all)
	})
}

// A clock that jumps while the fence is renewed takes it nowhere either: what
// was judged is what is used.
func TestSnowflakeClockAheadInRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		var clk testClock
		var armed atomic.Bool
		c := clk.clock()
		wall := c.Wall
		c.Wall = func() int64 {
			now := wall()
			if armed.CompareAndSwap(true, false) {
				clk.jump(24 * time.Hour)
			}
			return now
		}
		newTestSnowflake(t, Config{Fences: fences}, c)
		time.Sleep(time.Minute + time.Second) // between two renewals
		before := fences.fence(0)
		armed.Store(true)
		time.Sleep(DefaultRenew)
		got := fences.fence(0)
		assert.True(t, !armed.Load() && got > before && got <= before+10_000, "the fence went from %d to %d; the clock was read: %t", before, got, !armed.Load())
	})
}

// TestSnowflakeStoreLost: a process whose store does not know the number starts behind what one before it, with a
// store that was lost or is another one, can have run ahead of the clock: as far as a crash leaves its fence.
func TestSnowflakeStoreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Config{Layout: "41/16/2", MaxAhead: 100 * time.Millisecond}
		fences := usedFences(0)
		var all []uint64
		for range 2 {
			c.Fences = fences
			s := newTestSnowflake(t, c, new(testClock).clock())
			all = append(all, sourcetest.Fill(t, s, 400, 1)...)
			kill(s)
			fences.crash()
		}
		c.Fences = newFaultFences()
		s := newTestSnowflake(t, c, new(testClock).clock())
		for range 90 {
			all = append(all, sourcetest.Fill(t, s, 4, 1)...)
			time.Sleep(100 * time.Millisecond)
		}
		sourcetest.Once(t, all)
	})
}

// TestSnowflakeMadeAnew: a source with the number of one that was closed, and another store, whose fence is an older
// one, uses no time again.
func TestSnowflakeMadeAnew(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := Config{Layout: "41/16/2", MaxAhead: 100 * time.Millisecond, UsedTimes: &idsource.UsedTimes{}, Fences: usedFences(0)}
			s := newTestSnowflake(t, c, new(testClock).clock())
			all := sourcetest.Fill(t, s, 400, 1)
			assert.Must(t, s.Close(t.Context()))
			if forgets {
				c.UsedTimes = nil
			}
			c.Fences = usedFences(0)
			all = append(all, sourcetest.Fill(t, newTestSnowflake(t, c, new(testClock).clock()), 400, 1)...)
			if forgets {
				sourcetest.Twice(t, all, "a process that forgets")
			} else {
				sourcetest.Once(t, all)
			}
		})
	}
}
