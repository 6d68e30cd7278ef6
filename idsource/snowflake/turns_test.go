package snowflake

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// TestTurns: two sources of one worker number take turns, and give no id twice. One that does not
// share keeps the other from its number.
func TestTurns(t *testing.T) {
	fences := newFaultFences()
	flake := func() *Snowflake {
		return newTestSnowflake(t, Config{Fences: fences, Worker: 5, Wait: sourcetest.Waits(20 * time.Second)}, Clock{})
	}
	old := flake()
	all := sourcetest.Fill(t, old, 10, 1)
	next := flake()
	next.Share(true)
	old.Share(true)
	var mu sync.Mutex
	var drawing sync.WaitGroup
	for _, s := range []*Snowflake{old, next, old, next} {
		drawing.Go(func() {
			for range 200 {
				ids := make([]uint64, 3)
				if err := s.Fill(t.Context(), ids, 1); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				all = append(all, ids...)
				mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	drawing.Wait()
	sourcetest.Once(t, all)
	assert.Equal(t, "ids", len(all), 10+4*600)
	assert.NoError(t, next.Standing().Problem, "in turns")
	assert.NoError(t, old.Close(t.Context()))
	next.Share(false)
	last := sourcetest.Fill(t, next, 1000, 1)
	sourcetest.Once(t, append(all, last...))
	hasty := newTestSnowflake(t, Config{Fences: fences, Worker: 5, Wait: sourcetest.Waits(100 * time.Millisecond)}, Clock{})
	hasty.Share(true)
	assert.ErrorIs(t, "beside one that does not share", hasty.Fill(t.Context(), make([]uint64, 1), 1), idsource.NotReady)
}

// TestTurnsWithoutFence is the negative control: where the fence of a turn is forgotten, ids come twice.
func TestTurnsWithoutFence(t *testing.T) {
	fences := newFaultFences()
	fences.forget = true
	frozen := Clock{Wall: func() int64 { return DefaultEpoch.UnixNano() + int64(time.Hour) }, Mono: hostClock().Mono}
	var all []uint64
	for range 2 {
		s := newTestSnowflake(t, Config{Fences: fences, Worker: 5, Sequence: "zero", Wait: sourcetest.Waits(20 * time.Second)}, frozen)
		s.Share(true)
		all = append(all, sourcetest.Fill(t, s, 10, 1)...)
		time.Sleep(4 * turnTime) // its turn is over
	}
	sourcetest.Twice(t, all, "without a fence")
}

// TestTurnsBesideAHolder: a number that another process holds, which does not share it yet, is no
// problem of a source that takes turns, whenever it began to. It takes its turn when the number is free.
func TestTurnsBesideAHolder(t *testing.T) {
	for _, first := range []string{"Share", "keep"} {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fences, clk := newFaultFences(), (&testClock{}).clock()
				c := Config{Fences: fences, Worker: 5}
				old := newTestSnowflake(t, c, clk)
				sourcetest.Fill(t, old, 1, 1)
				next := newTestSnowflake(t, c, clk)
				if first == "keep" {
					time.Sleep(3 * time.Second)
					assert.ErrorIs(t, "without turns", next.Standing().Problem, idsource.Held)
				}
				next.Share(true)
				for range 50 {
					stand := next.Standing()
					assert.MustTrue(t, stand.Problem == nil && stand.Failing == nil, "in turns: %v, %v", stand.Problem, stand.Failing)
					time.Sleep(100 * time.Millisecond)
				}
				filled := make(chan error, 1)
				go func() { filled <- next.Fill(t.Context(), make([]uint64, 1), 1) }()
				time.Sleep(turnWait + 500*time.Millisecond)
				assert.NoError(t, next.Standing().Problem, "while ids are asked for")
				old.Share(true)
				assert.NoError(t, <-filled, "when the other one shares")
				time.Sleep(time.Second)
				fences.set(func(s *faultFences) { s.down = errors.New("no disk") })
				assert.Fails(t, "ids without a store", next.Fill(t.Context(), make([]uint64, 1), 1), "")
				assert.Fails(t, "a store that is down is no problem", next.Standing().Problem, "")
				fences.set(func(s *faultFences) { s.down = nil })
			})
		})
	}
}
