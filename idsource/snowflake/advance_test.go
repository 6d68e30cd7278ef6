package snowflake

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// idAt composes an id whose time is off from the source's clock.
func idAt(s *Snowflake, off time.Duration, worker, sequence uint64) uint64 {
	ts := uint64(int64(s.time.now()) + int64(off/s.layout.Unit))
	return s.layout.compose(ts<<s.layout.Sequence|sequence, worker)
}

func TestSnowflakeAdvance(t *testing.T) {
	for _, tt := range []struct {
		name             string
		off              time.Duration
		worker, sequence uint64
		kind             idsource.Kind
		stays            bool // nothing needs to move
	}{
		{name: "an hour ago", off: -time.Hour, worker: 5, sequence: 7, stays: true},
		{name: "an hour ago, another worker", off: -time.Hour, worker: 900, stays: true},
		{name: "now, own", worker: 5, sequence: 4000},
		{name: "now, lower worker", worker: 4, sequence: 4095, stays: true},
		{name: "now, higher worker", worker: 6},
		{name: "ahead, own", off: 2 * time.Second, worker: 5, sequence: 4095},
		{name: "ahead, lower worker", off: 2 * time.Second, worker: 0, sequence: 1},
		{name: "ahead, higher worker", off: 2 * time.Second, worker: 1023, sequence: 1},
		{name: "as far as allowed", off: DefaultMaxAhead, worker: 5},
		{name: "too far", off: DefaultMaxAhead + time.Millisecond, worker: 5, kind: idsource.TooHigh},
		{name: "a day", off: 24 * time.Hour, worker: 5, kind: idsource.TooHigh},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fences := newFaultFences()
				s := newTestSnowflake(t, Config{Fences: fences, Worker: 5, Sequence: "zero"}, new(testClock).clock())
				time.Sleep(time.Minute)
				sourcetest.Fill(t, s, 10, 1)
				id, word := idAt(s, tt.off, tt.worker, tt.sequence), s.words.last.Load()
				err := s.Advance(t.Context(), id)
				if tt.kind != 0 {
					sourcetest.WantKind(t, "Advance", err, tt.kind)
				} else if err != nil {
					t.Fatal(err)
				}
				moved := s.words.last.Load() != word
				assert.True(t, moved != (tt.stays || tt.kind != 0), "the word moved: %v", moved)
				next := sourcetest.Fill(t, s, 1, 1)[0]
				assert.True(t, tt.kind != 0 || next > id, "id %d was issued behind Advance(%d)", next, id)
				kill(s) // the next owner must know, too
				fences.crash()
				s = newTestSnowflake(t, Config{Fences: fences, Worker: 5, Sequence: "zero"}, new(testClock).clock())
				again := sourcetest.Fill(t, s, 1, 1)[0]
				assert.True(t, (tt.kind != 0 || again > id) && again > next, "id %d was issued after a crash, behind %d and Advance(%d)", again, next, id)
			})
		})
	}
}

func TestSnowflakeAdvanceTooHigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSnowflake(t, Config{Fences: newFaultFences(), Layout: "40/10/12"}, new(testClock).clock())
		sourcetest.Fill(t, s, 1, 1)
		for _, id := range []uint64{math.MaxInt64, 1 << 62, 1 << 63, math.MaxUint64} {
			start := time.Now()
			sourcetest.WantKind(t, "Advance", s.Advance(t.Context(), id), idsource.TooHigh)
			assert.Equal(t, "the answer took", time.Since(start), 0)
		}
		sourcetest.Fill(t, s, 1, 1)
	})
}

// Without its worker number the source cannot promise anything; a fence that
// cannot be raised holds Advance up, too.
func TestSnowflakeAdvanceNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fences := newFaultFences()
		fences.held[0] = true
		s := newTestSnowflake(t, Config{Fences: fences}, new(testClock).clock())
		sourcetest.WantKind(t, "no worker number", s.Advance(t.Context(), 1), idsource.NotReady)
		fences.crash()
		sourcetest.Advance(t, s, 1)
		fences.set(func(f *faultFences) { f.down = sourcetest.ErrDown })
		time.Sleep(7 * time.Second)
		sourcetest.WantKind(t, "at the fence", s.Advance(t.Context(), idAt(s, DefaultMaxAhead, 0, 0)), idsource.Fenced)
		fences.set(func(f *faultFences) { f.down = nil })
		time.Sleep(idsource.MaxPause)
		sourcetest.Advance(t, s, idAt(s, DefaultMaxAhead, 0, 0))
		assert.Must(t, s.Close(t.Context()))
		sourcetest.WantKind(t, "Advance", s.Advance(t.Context(), idAt(s, time.Second, 0, 0)), idsource.Closed)
	})
}

// advanceUnderLoad lets owners of a worker number follow each other while goroutines take ids and
// move past others, and counts ids that Advance had excluded.
func advanceUnderLoad(t *testing.T, does guard) (wrong int64) {
	fences := newFaultFences()
	var clk testClock
	slow := clk.clock()
	wall := slow.Wall
	slow.Wall = func() int64 {
		now := wall()
		runtime.Gosched() // the grant may be taken away here
		return now
	}
	var bad atomic.Int64
	var past atomic.Uint64
	for range 30 {
		s := newTestSnowflake(t, Config{Fences: fences, Layout: "41/10/3", Sequence: "zero"}, slow)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for r := range 200 {
					before := past.Load()
					ids := make([]uint64, 1)
					if err := s.Fill(context.Background(), ids, 1); err != nil {
						return
					}
					if ids[0] <= before {
						bad.Add(1)
					}
					id := ids[0] + 1<<14 // two units ahead
					if r%10 == 0 && (!does || s.Advance(context.Background(), id) == nil) {
						sourcetest.Raise(&past, id)
					}
					if r == 150 && g == 0 {
						assert.NoError(t, s.Close(context.Background()), "Close")
					}
				}
			})
		}
		wg.Wait()
		assert.NoError(t, s.Close(context.Background()), "Close")
	}
	return bad.Load()
}

func TestSnowflakeAdvanceConcurrent(t *testing.T) {
	assert.Equal(t, "ids reach below an Advance that had returned", advanceUnderLoad(t, guarded), 0)
	assert.True(t, advanceUnderLoad(t, bare) != 0, "an Advance that does nothing is not noticed: the test proves nothing")
}
