package snowflake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// fakePool gives numbers 1, 2, ... from a clock of its own.
type fakePool struct {
	skew atomic.Int64 // of its clock, in nanoseconds
	gave []uint64
	last []int64 // what each Revoke said
	none error
	far  bool // the first number starts an hour ahead, as when the clock went back since it was taken

	swapped func() // called while a number is being changed
}

func (p *fakePool) now() int64 { return time.Now().Add(time.Duration(p.skew.Load())).UnixMilli() }

func (p *fakePool) Keep(ctx context.Context, t idsource.Tenant) {
	worker := uint64(0)
	fresh := true
	for ctx.Err() == nil {
		if p.none != nil {
			t.Report(p.none)
		} else {
			if fresh {
				worker++
				p.gave = append(p.gave, worker)
			}
			ahead := int64(0)
			if p.far && worker == 1 {
				ahead = time.Hour.Milliseconds()
			}
			t.Grant(idsource.Term{Worker: worker, Start: p.now() + ahead, Fence: p.now() + ahead + 8000, Now: p.now(), Fresh: fresh})
			t.Report(nil)
			fresh = false
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		case <-t.Swap():
			if p.swapped != nil {
				p.swapped()
			}
			p.last = append(p.last, t.Revoke())
			fresh = true
		}
	}
	p.last = append(p.last, t.Revoke())
}

func pooled(t *testing.T, p *fakePool, back ClockBack) (*Snowflake, *testClock) {
	t.Helper()
	clk := &testClock{}
	return newTestSnowflake(t, Config{Pool: p, ClockBack: back}, clk.clock()), clk
}

// TestPoolClock sets the clock of the host back and forth: ids follow the pool's.
func TestPoolClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, clk := pooled(t, &fakePool{}, BackError)
		synctest.Wait()
		all := sourcetest.Fill(t, s, 10, 1)
		for _, jump := range []time.Duration{-10 * time.Millisecond, -3 * time.Second, -time.Hour, 2 * time.Hour, 24 * time.Hour} {
			clk.jump(jump)
			ids := sourcetest.Fill(t, s, 10, 1)
			at := testEpoch.Add(time.Duration(s.layout.Decode(ids[0]).Time) * time.Millisecond)
			off := time.Until(at)
			assert.True(t, off.Abs() <= 10*time.Millisecond, "after a jump of %v ids are %v off the pool's clock", jump, off)
			all = append(all, ids...)
			time.Sleep(3 * time.Second)
		}
		sourcetest.Once(t, all)
	})
}

// TestPoolSwap sets the pool's clock back: another number goes on from there.
func TestPoolSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakePool{}
		s, _ := pooled(t, p, BackSwap)
		synctest.Wait()
		all := sourcetest.Fill(t, s, 10, 1)
		last := s.layout.Decode(all[9])
		p.skew.Store(-int64(time.Minute))
		time.Sleep(2100 * time.Millisecond) // the next renewal brings the news
		all = append(all, sourcetest.Fill(t, s, 10, 1)...)
		next := s.layout.Decode(all[10])
		assert.True(t, next.Worker == 2 && next.Time < last.Time, "after the clock went back: %+v behind %+v, want worker 2 and an earlier time", next, last)
		synctest.Wait()
		got, least := p.last[0], testEpoch.UnixMilli()+int64(last.Time)
		assert.True(t, got >= least, "the number was given back with last timestamp %d, it used %d", got, least)
		sourcetest.Once(t, all)
	})
}

// TestPoolSwapGoesOn: a number that cannot be used yet is changed for another one, if that is what
// clock_back says.
func TestPoolSwapGoesOn(t *testing.T) {
	for _, back := range []ClockBack{BackSwap, BackError, BackBorrow} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakePool{far: true}
			s, _ := pooled(t, p, back)
			synctest.Wait()
			ids := make([]uint64, 10)
			err := s.Fill(t.Context(), ids, 1)
			if back != BackSwap {
				e, ok := errors.AsType[*idsource.Error](err)
				assert.True(t, ok && e.Kind == idsource.Fenced, "clock_back %d: %v", back, err)
				return
			}
			assert.True(t, err == nil && s.layout.Decode(ids[0]).Worker == 2, "%v, the first of %d; want the second number", err, ids)
		})
	}
}

// TestPoolSwapOnce: who asks for another number while it is being changed does not have it changed
// again.
func TestPoolSwapOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakePool{}
		s, _ := pooled(t, p, BackSwap)
		synctest.Wait()
		sourcetest.Fill(t, s, 10, 1)
		p.swapped = sync.OnceFunc(func() { s.swapNow("a test") })
		s.swapNow("a test")
		time.Sleep(5 * time.Second)
		sourcetest.Fill(t, s, 10, 1)
		synctest.Wait()
		assert.True(t, len(p.gave) == 2, "numbers given: %d, want two", p.gave)
	})
}

// TestPoolBack refuses where no swap was asked for.
func TestPoolBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakePool{}
		s, _ := pooled(t, p, BackError)
		synctest.Wait()
		sourcetest.Fill(t, s, 10, 1)
		p.skew.Store(-int64(time.Minute))
		time.Sleep(2100 * time.Millisecond)
		sourcetest.WantKind(t, "clock back", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Fenced)
		synctest.Wait()
		assert.True(t, len(p.gave) == 1, "numbers given: %d", p.gave)
	})
}

func TestPoolWithoutNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled(t, &fakePool{none: errors.New("no number is free")}, BackSwap)
		err := s.Fill(t.Context(), make([]uint64, 1), 1)
		sourcetest.WantKind(t, "no number", err, idsource.NotReady)
		assert.NoError(t, s.Close(t.Context()))
		sourcetest.WantKind(t, "closed", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Closed)
	})
}

// TestPoolAdvance moves past an id of any worker.
func TestPoolAdvance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled(t, &fakePool{}, BackSwap)
		synctest.Wait()
		id := s.layout.compose(s.time.now()<<s.layout.Sequence|7, 900)
		assert.Must(t, s.Advance(t.Context(), id))
		assert.Greater(t, "the next id behind Advance", sourcetest.Fill(t, s, 1, 1)[0], id)
	})
}

// TestPoolHandover: what a tenant says it used bounds what it did use, whatever
// the unit of its time.
func TestPoolHandover(t *testing.T) {
	for _, layout := range []string{"41/10/12", "39x10ms/16/8", "32s/8/13"} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakePool{}
			clk := &testClock{}
			s := newTestSnowflake(t, Config{Pool: p, Layout: layout}, clk.clock())
			var last uint64
			for range 50 {
				last = s.layout.Decode(sourcetest.Fill(t, s, 3, 1)[2]).Time
				time.Sleep(37 * time.Millisecond)
			}
			assert.Must(t, s.Close(t.Context()))
			end := testEpoch.Add(time.Duration(last+1) * s.layout.Unit).UnixMilli()
			assert.GreaterOrEqual(t, layout+": last timestamp of ids", p.last[0], end-1)
			// The next holder starts above, in whole units.
			next := newTestSnowflake(t, Config{Pool: &fakePool{none: sourcetest.ErrDown}, Layout: layout}, clk.clock())
			tenant{next}.Grant(idsource.Term{Start: p.last[0] + 1, Fence: p.last[0] + 8000, Now: p.now(), Fresh: true})
			g := next.words.grant.Load()
			assert.True(t, g.start > last, "%s: the next holder starts at %d, %d was used", layout, g.start, last)
		})
	}
}

// Nobody waits for a worker number that is known to come too late.
func TestPatienceWithAPool(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration // 0: not known
		want  map[time.Duration]int
	}{
		{16 * time.Second, map[time.Duration]int{0: 10}},
		{time.Second, map[time.Duration]int{2 * time.Second: 10}}, // it was wrong, and the wait goes to its end
		{0, map[time.Duration]int{0: 9, 2 * time.Second: 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			none := errors.New("no worker number")
			if tt.after > 0 {
				none = &idsource.LaterError{For: tt.after, Err: none}
			}
			s, _ := pooled(t, &fakePool{none: none}, BackBorrow)
			synctest.Wait()
			fill := func() error { return s.Fill(t.Context(), make([]uint64, 1), 1) }
			if tt.after == 0 {
				times, err := sourcetest.Took(10, fill, idsource.NotReady)
				assert.True(t, err == nil && times[idsource.DefaultWait] == 10, "first calls took %v, %v", times, err)
			}
			times, err := sourcetest.Took(10, fill, idsource.NotReady)
			assert.True(t, err == nil && fmt.Sprint(times) == fmt.Sprint(tt.want), "a number in %v: calls took %v, %v; want %v", tt.after, times, err, tt.want)
		})
	}
}
