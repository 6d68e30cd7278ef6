package segment

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// tunedStore is a store in memory that keeps how its one series is tuned.
type tunedStore struct {
	*faultStore
	to    idsource.Tuning
	asked int
	fails error
}

func (s *tunedStore) Tuning(context.Context, string) (idsource.Tuning, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.to, s.fails
}

func (s *tunedStore) Tune(context.Context, string, idsource.Tuning) error { return nil }

// counts are the sizes of the ranges that were asked for.
func (s *tunedStore) counts() (all []uint64) {
	for _, a := range s.calls() {
		if n := len(all); n == 0 || all[n-1] != a.Count {
			all = append(all, a.Count)
		}
	}
	return all
}

// TestTuned: how a series is tuned in the store is obeyed from the first range on, and a change
// within a minute; what is taken back leaves the configuration.
func TestTuned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &tunedStore{faultStore: newFaultStore(), to: idsource.Tuning{Step: 50, Policy: "fixed"}}
		s := newTestSegment(t, Config{Store: st, Step: 10, MaxStep: 1000})
		draw := func(d time.Duration) {
			for range int(d / time.Second) {
				sourcetest.Fill(t, s, 5, 1)
				time.Sleep(time.Second)
			}
		}
		draw(time.Minute)
		st.set(func(*faultStore) { st.to = idsource.Tuning{Step: 7, MaxStep: 30, Policy: "fixed"} })
		draw(time.Minute)
		st.set(func(*faultStore) { st.to = idsource.Tuning{Step: 200, MaxStep: 20, Policy: "rate"} })
		draw(time.Minute)
		got := st.counts()
		assert.True(t, slices.Equal(got, []uint64{50, 7, 200}), "ranges of %d ids", got)
		st.set(func(f *faultStore) { st.to, f.reserves = idsource.Tuning{}, nil })
		draw(10 * time.Minute)
		got = st.counts()
		assert.True(t, got[len(got)-1] == 1000, "ranges of %d ids, want those of the configuration in the end", got)
		assert.True(t, st.asked <= 2*13+1, "asked %d times in 13 minutes", st.asked)
	})
}

// TestTunedToFixed: a step that has grown is that of the configuration again, once it is to be fixed.
func TestTunedToFixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &tunedStore{faultStore: newFaultStore()}
		s := newTestSegment(t, Config{Store: st, Step: 10, MaxStep: 1000})
		draw := func() {
			for range 60 {
				sourcetest.Fill(t, s, 5, 1)
				time.Sleep(time.Second)
			}
		}
		draw()
		got := st.counts()
		assert.MustTrue(t, got[len(got)-1] >= 20, "ranges of %d ids did not grow", got)
		st.set(func(*faultStore) { st.to = idsource.Tuning{Policy: "fixed"} })
		draw()
		got = st.counts()
		assert.True(t, got[len(got)-1] == 10, "ranges of %d ids, want 10 in the end", got)
	})
}

// TestTunedTooLarge: a step that somebody wrote into the table, larger than a command takes, is as large as that.
func TestTunedTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const geneBits = 8
		st := &tunedStore{faultStore: newFaultStore(), to: idsource.Tuning{Step: 1<<56 + 1, MaxStep: 1 << 60, Policy: "fixed"}}
		s := newTestSegment(t, Config{Store: st, Rows: func(rows uint64) uint64 { return rows << geneBits }})
		sourcetest.Fill(t, s, 1, 1)
		synctest.Wait()
		got := st.counts()
		assert.True(t, slices.Equal(got, []uint64{MostStep << geneBits}), "ranges of %d ids", got)
	})
}

// TestTuningFails: a store that does not say how its series are tuned gives its ranges all the same, and is
// asked again 5 s later.
func TestTuningFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &tunedStore{faultStore: newFaultStore(), to: idsource.Tuning{Step: 50, Policy: "fixed"}, fails: errors.New("denied")}
		s := newTestSegment(t, Config{Store: st, Step: 10, MaxStep: 10})
		sourcetest.Fill(t, s, 9, 1)
		st.set(func(*faultStore) { st.fails = nil })
		sourcetest.Fill(t, s, 9, 1)
		time.Sleep(6 * time.Second)
		sourcetest.Fill(t, s, 9, 1)
		synctest.Wait()
		got := st.counts()
		assert.True(t, slices.Equal(got, []uint64{10, 50}), "ranges of %d ids", got)
	})
}

// spacedStore is a store in memory of which a series has every fourth id.
type spacedStore struct{ *faultStore }

func (s spacedStore) Spacing(context.Context, string) (idsource.Spacing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return idsource.Spacing{Every: 4, Remainder: 3}, s.down
}

// TestSpaced: ids have the remainder of the series, none comes twice, and what needs consecutive ones is refused.
func TestSpaced(t *testing.T) {
	st := spacedStore{newFaultStore()}
	s := newTestSegment(t, Config{Store: st, Step: 30, Start: 6})
	var all []uint64
	for i := range 200 {
		ids := sourcetest.Fill(t, s, 1+i%5, []uint64{1, 2, 3, 4, 8}[i%5])
		apart := uint64(4)
		if i%5 == 4 {
			apart = 8 // a multiple of 4 is kept
		}
		for j := 1; j < len(ids); j++ {
			assert.True(t, ids[j]-ids[j-1] == apart, "ids %v, want them %d apart", ids, apart)
		}
		all = append(all, ids...)
	}
	assert.True(t, all[0] == 7 && slices.IsSorted(all), "the first id is %d", all[0])
	for _, id := range all {
		assert.True(t, id%4 == 3, "id %d is not of the series", id)
	}
	sourcetest.Once(t, all)
	sourcetest.Advance(t, s, 5001)
	ids := sourcetest.Fill(t, s, 1, 1)
	assert.True(t, ids[0] >= 5001 && ids[0]%4 == 3, "behind 5001 comes %d", ids[0])
	sourcetest.WantKind(t, "Blocks", s.Blocks(t.Context(), make([]uint64, 2), 4), idsource.BadConfig)
	assert.Of(s.Range(t.Context(), 2)).Fails(t, "two consecutive ids were given", "")
	id, err := s.Range(t.Context(), 1)
	assert.True(t, err == nil && id%4 == 3, "a single id: %d, %v", id, err)
}

// TestSpacingWithoutKey: a store that has no such key has answered, and the series of other tables go on.
func TestSpacingWithoutKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := spacedStore{newFaultStore()}
		st.down = idsource.ErrNoKey
		s := newTestSegment(t, Config{Store: st})
		for range 3 {
			sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.BadConfig)
			time.Sleep(3 * time.Second)
		}
		_, ok := s.cfg.patience.Begin()
		assert.True(t, ok, "no call waits for the store, which answers")
	})
}

// TestSpacingUnknown: without a store that says which ids the series has there are none.
func TestSpacingUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := spacedStore{newFaultStore()}
		st.down = sourcetest.ErrDown
		s := newTestSegment(t, Config{Store: st})
		sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.StoreDown)
		st.set(func(f *faultStore) { f.down = nil })
		time.Sleep(3 * time.Second)
		assert.Equal(t, "the first id", sourcetest.Fill(t, s, 1, 1)[0], 3)
	})
}
