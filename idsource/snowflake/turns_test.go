package snowflake

import (
	"errors"
	"sync"
	"testing"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
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
	if id, twice := sourcetest.Repeated(all); twice || len(all) != 10+4*600 {
		t.Errorf("%d ids, id %d is among them twice: %v", len(all), id, twice)
	}
	if problem := next.Standing().Problem; problem != nil {
		t.Errorf("in turns: %v", problem)
	}
	if err := old.Close(t.Context()); err != nil {
		t.Error(err)
	}
	next.Share(false)
	last := sourcetest.Fill(t, next, 1000, 1)
	if id, twice := sourcetest.Repeated(append(all, last...)); twice {
		t.Errorf("id %d came again", id)
	}
	hasty := newTestSnowflake(t, Config{Fences: fences, Worker: 5, Wait: sourcetest.Waits(100 * time.Millisecond)}, Clock{})
	hasty.Share(true)
	if err := hasty.Fill(t.Context(), make([]uint64, 1), 1); !errors.Is(err, idsource.NotReady) {
		t.Errorf("beside one that does not share: %v", err)
	}
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
	if _, twice := sourcetest.Repeated(all); !twice {
		t.Errorf("no id came twice: the test finds nothing in %v", all)
	}
}
