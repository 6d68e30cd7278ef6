package segment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"idproxy/idsource"
	"idproxy/idsource/scramble"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

func scrambleOf(t testing.TB, key string, bits int) *scramble.Scramble {
	t.Helper()
	s := assert.Of(scramble.New([]byte(key), bits)).Must(t)
	return s
}

const (
	oneSecret   = "0123456789abcdef"
	otherSecret = "fedcba9876543210"
)

func newScrambled(t testing.TB, st *faultStore, s *scramble.Scramble, c Config) *Scrambled {
	t.Helper()
	c.Name, c.Store = "order_id", st
	one := assert.Of(NewScrambled(c, s, func(context.Context) ([]string, error) { return slices.Collect(maps.Keys(st.snapshot())), nil })).Must(t)
	t.Cleanup(func() { _ = one.Close(context.Background()) }) // some tests leave the store down
	return one
}

// TestScrambledFill: ids of two processes are those of the numbers of one series, none comes twice,
// and those of one call ascend.
func TestScrambledFill(t *testing.T) {
	st, by := newFaultStore(), scrambleOf(t, oneSecret, 53)
	var mu sync.Mutex
	var numbers []uint64
	var wg sync.WaitGroup
	for range 2 {
		s := newScrambled(t, st, by, Config{Step: 100, MaxStep: 100})
		for range 2 {
			wg.Go(func() {
				for n := 1; n <= 60; n++ {
					ids := sourcetest.Fill(t, s, n, 7)
					assert.True(t, slices.IsSorted(ids), "ids %d do not ascend", ids)
					mu.Lock()
					for _, id := range ids {
						number, ok := by.Number(id)
						assert.True(t, ok, "%d is no id", id)
						numbers = append(numbers, number)
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	slices.Sort(numbers)
	if n := len(numbers); n != 4*60*61/2 || len(slices.Compact(numbers)) != n || numbers[0] != 1 || numbers[n-1] > uint64(n)+4*60*100 {
		t.Errorf("%d numbers from %d to %d", n, numbers[0], numbers[n-1])
	}
	s := newScrambled(t, st, by, Config{})
	sourcetest.WantKind(t, "Blocks", s.Blocks(t.Context(), make([]uint64, 1), 4), idsource.BadConfig)
	sourcetest.WantKind(t, "Advance", s.Advance(t.Context(), by.First()), idsource.TooHigh)
	if _, ranges := any(s).(interface {
		Range(ctx context.Context, n uint64) (uint64, error)
	}); ranges {
		t.Error("programs can have ranges of numbers")
	}
}

// TestScrambledEnd: the numbers end where those of the Scramble do.
func TestScrambledEnd(t *testing.T) {
	by := scrambleOf(t, oneSecret, 48)
	s := newScrambled(t, newFaultStore(), by, Config{Start: by.First() - 2})
	ids := sourcetest.Fill(t, s, 2, 1)
	for _, id := range ids {
		number, ok := by.Number(id)
		assert.True(t, ok && number >= by.First()-2, "id %d is of number %d", id, number)
	}
	sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Exhausted)
}

// TestScrambledBegins: a series that was never used begins where no column can hold one of its ids.
func TestScrambledBegins(t *testing.T) {
	by := scrambleOf(t, oneSecret, 53)
	key := "order_id" + by.Name()
	for _, tt := range []struct {
		name    string
		at      map[string]idsource.Position
		highest uint64
		all     Greatest
		want    idsource.Kind // 0: admitted
		text    string
	}{
		{name: "empty"},
		{name: "ids of before", highest: by.First() - 1},
		{name: "its own ids, perhaps", highest: by.First(), want: idsource.Behind, text: "t.id holds 4503599627370496 already"},
		{name: "on another listener", highest: 7, all: Greatest{by.First() + 5, "elsewhere"}, want: idsource.Behind, text: "elsewhere holds"},
		{name: "used", at: map[string]idsource.Position{key: {Next: 500, Used: true}}, highest: 2*by.First() - 1},
		{name: "created by another column", at: map[string]idsource.Position{key: {Next: 1}}, highest: by.First(), want: idsource.Behind},
		{name: "told", at: map[string]idsource.Position{key: {Next: 5001}}, highest: by.First()},
		{name: "another secret", at: map[string]idsource.Position{"order_id" + scrambleOf(t, otherSecret, 53).Name(): {Next: 9, Used: true}}, want: idsource.BadConfig, text: "another scramble.key"},
		{name: "other bits", at: map[string]idsource.Position{"order_id" + scrambleOf(t, otherSecret, 52).Name(): {Next: 9, Used: true}}},
		{name: "not scrambled before", at: map[string]idsource.Position{"order_id": {Next: 1000, Used: true}}, highest: 999},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			st.keys[key] = idsource.Position{Next: 1}
			maps.Copy(st.keys, tt.at)
			before := len(st.keys)
			s := newScrambled(t, st, by, Config{Begin: func(_ context.Context, b Beginning) (Greatest, error) {
				assert.Equal(t, "begins", b.Key, "order_id")
				if b.Used {
					return Greatest{}, nil
				}
				return tt.all, nil
			}})
			err := s.Admit(t.Context(), "t.id", tt.highest)
			if tt.want == 0 {
				assert.NoError(t, err)
				return
			}
			sourcetest.WantKind(t, "Admit", err, tt.want)
			assert.True(t, strings.Contains(err.Error(), tt.text) && len(st.snapshot()) == before, "%v, want %q; the store has %v", err, tt.text, st.snapshot())
		})
	}
}

// TestScrambledJoins: a column that a reload brings may hold ids that other processes took from the
// series for it, and no others of its bits.
func TestScrambledJoins(t *testing.T) {
	by := scrambleOf(t, oneSecret, 53)
	ids := []uint64{499, 500}
	by.IDs(ids)
	for _, tt := range []struct {
		name string
		top  uint64
		want idsource.Kind // 0: admitted
	}{
		{name: "empty"},
		{name: "ids of before", top: by.First() - 1},
		{name: "given", top: ids[0]},
		{name: "not given", top: ids[1], want: idsource.Behind},
		{name: "of more bits", top: 2 * by.First(), want: idsource.Behind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			st.keys["order_id"+by.Name()] = idsource.Position{Next: 500, Used: true}
			s := newScrambled(t, st, by, Config{Begin: func(context.Context, Beginning) (Greatest, error) { return Greatest{tt.top, "t.id"}, nil }})
			err := s.Admit(t.Context(), "t.id", 0)
			if tt.want != 0 {
				sourcetest.WantKind(t, "Admit", err, tt.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestScrambledRivals: of a series that was made with two secrets, maybe at the same moment, no process gives ids.
func TestScrambledRivals(t *testing.T) {
	st := newFaultStore()
	for _, secret := range []string{oneSecret, otherSecret} {
		st.keys["order_id"+scrambleOf(t, secret, 63).Name()] = idsource.Position{Next: 1}
	}
	for _, secret := range []string{oneSecret, otherSecret} {
		sourcetest.WantKind(t, "Admit", newScrambled(t, st, scrambleOf(t, secret, 63), Config{}).Admit(t.Context(), "t.id", 0), idsource.BadConfig)
	}
}

// TestUnissued: the ids are those that come next by the store, not those that this process holds, and
// lie in several ranges.
func TestUnissued(t *testing.T) {
	st, by := newFaultStore(), scrambleOf(t, oneSecret, 53)
	s := newScrambled(t, st, by, Config{Step: 10, MaxStep: 10})
	sourcetest.Fill(t, s, 1, 1)
	next := st.snapshot()[s.Key()].Next
	ids, err := s.Unissued(t.Context())
	assert.MustTrue(t, err == nil && len(ids) == unissued, "%d ids, %v", len(ids), err)
	for i, id := range ids {
		want := next + uint64(i/8*10+i%8)
		number, ok := by.Number(id)
		assert.True(t, ok && number == want, "id %d is of number %d, want %d", id, number, want)
	}
	sourcetest.WantKind(t, "Holds", s.Holds("t.id", ids[0]), idsource.Behind)
	st.set(func(st *faultStore) { st.down = errors.New("down") })
	assert.Of(s.Unissued(t.Context())).ErrorIs(t, "Unissued", idsource.StoreDown)
}

func TestScrambledAllocates(t *testing.T) {
	s := newScrambled(t, newFaultStore(), scrambleOf(t, oneSecret, 63), Config{Step: 1 << 20, MaxStep: 1 << 20, StepPolicy: StepFixed})
	ids := make([]uint64, 8)
	sourcetest.Fill(t, s, 1, 1)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Fill(t.Context(), ids, 1); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScrambled(b *testing.B) {
	sourcetest.MeasureFill(b, newScrambled(b, newFaultStore(), scrambleOf(b, oneSecret, 63), Config{Step: 1 << 20, MaxStep: 1 << 24, Prefetch: 0.5}))
}
