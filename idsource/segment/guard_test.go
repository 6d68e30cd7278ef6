package segment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"idproxy/idsource"
	"idproxy/idsource/sourcetest"
	"idproxy/integration/assert"
)

// forget has a source forget where it saw its key stand.
func forget(s *Segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.high = 0
	s.cfg.HighWater.Set(s.cfg.Key, 0)
}

// guard says whether what a test is about is at work; without it the test must notice.
type guard bool

const (
	guarded guard = true
	bare    guard = false
)

// goBack uses a source, takes its store back as a restored backup does, uses it
// on, and returns what was issued and the error that ended it.
func goBack(t *testing.T, remembers guard) (ids []uint64, err error) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
		ids = append(ids, sourcetest.Fill(t, s, 50, 1)...)
		st.set(func(st *faultStore) { st.keys["order_id"] = idsource.Position{Next: 30, Used: true} })
		for range 5 {
			if !remembers {
				forget(s)
			}
			more := make([]uint64, 50)
			if err = s.Fill(t.Context(), more, 1); err != nil {
				return
			}
			ids = append(ids, more...)
			synctest.Wait()
		}
	})
	return ids, err
}

func TestSegmentHighWater(t *testing.T) {
	ids, err := goBack(t, guarded)
	sourcetest.Once(t, ids)
	sourcetest.WantKind(t, "store that went back", err, idsource.Behind)
	for _, want := range []string{"30", "101", "source set order_id", "order_id"} {
		assert.True(t, err != nil && strings.Contains(err.Error(), want), "error %q lacks %q", err, want)
	}
	// Negative control: a process that forgets issues ids twice.
	ids, err = goBack(t, bare)
	assert.NoError(t, err, "a process that forgets")
	sourcetest.Twice(t, ids, "a process that forgets")
}

func TestSegmentStaysBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed})
		sourcetest.Fill(t, s, 5, 1)
		st.set(func(st *faultStore) { st.keys["order_id"] = idsource.Position{Next: 1, Used: true} })
		sourcetest.Fill(t, s, 5, 1) // crosses the watermark
		synctest.Wait()
		for _, what := range []string{"at once", "again"} {
			sourcetest.WantKind(t, what, s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Behind)
		}
		sourcetest.WantKind(t, "Admit", s.Admit(t.Context(), "a.b.c", 0), idsource.Behind)
		before := len(st.calls())
		assert.NoError(t, s.Close(t.Context()), "Close")
		p := st.snapshot()["order_id"]
		assert.True(t, p.Next == 1 && len(st.calls()) == before, "the store stands at %d, want 1: nothing is reserved of, or given back to, a store that went back", p.Next)
	})
}

func TestSegmentAdmit(t *testing.T) {
	used := func(next uint64) *idsource.Position { return &idsource.Position{Next: next, Used: true} }
	for _, tt := range []struct {
		name    string
		store   *idsource.Position // nil: no such key
		start   uint64
		highest uint64
		kind    idsource.Kind // 0: admitted
		first   uint64
	}{
		{name: "new key, empty table", first: 1},
		{name: "new key, start", start: 500, first: 500},
		{name: "new key, rows", highest: 700, first: 701},
		{name: "new key, rows above start", start: 500, highest: 700, first: 701},
		{name: "new key, rows below start", start: 900, highest: 700, first: 900},
		{name: "key made, not used", store: &idsource.Position{Next: 1}, highest: 700, first: 701},
		{name: "key ahead", store: used(1000), highest: 999, first: 1000},
		{name: "key at the greatest", store: used(999), highest: 999, kind: idsource.Behind},
		{name: "key below", store: used(30), highest: 999, kind: idsource.Behind},
		{name: "key below, mended by start", store: used(30), start: 1000, highest: 999, first: 1000},
		{name: "start too low to mend", store: used(30), start: 999, highest: 999, kind: idsource.Behind},
		{name: "key ahead of start", store: used(1000), start: 10, first: 1000},
		{name: "table full", highest: 1 << 63, kind: idsource.Exhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			if tt.store != nil {
				st.keys["order_id"] = *tt.store
			}
			s := newTestSegment(t, Config{Store: st, Start: tt.start})
			err := s.Admit(t.Context(), "shop.orders.id", tt.highest)
			if tt.kind != 0 {
				sourcetest.WantKind(t, "Admit", err, tt.kind)
				return
			}
			assert.Must(t, err, "Admit")
			assert.Equal(t, "first id", sourcetest.Fill(t, s, 1, 1)[0], tt.first)
		})
	}
}

func TestSegmentAdmitMessage(t *testing.T) {
	st := newFaultStore()
	st.keys["k"] = idsource.Position{Next: 30, Used: true}
	s := newTestSegment(t, Config{Store: st, Key: "k"})
	const want = `id source "order_id": behind: shop.orders.id holds 999 already, the store stands at 30 (key "k"); ` +
		`set start: 1000 for source order_id in the configuration and restart`
	assert.Equal(t, "Admit", fmt.Sprint(s.Admit(t.Context(), "shop.orders.id", 999)), want)
}

// Another process may have used later ranges than the one held here.
func TestSegmentAdmitLater(t *testing.T) {
	st := newFaultStore()
	a := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
	b := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
	sourcetest.Fill(t, a, 10, 1)
	sourcetest.Fill(t, b, 10, 1) // up to 110
	sourcetest.WantKind(t, "an id held and not issued", a.Admit(t.Context(), "shop.orders.id", 11), idsource.Behind)
	assert.NoError(t, a.Admit(t.Context(), "shop.orders.id", 10), "Admit of what this process issued")
	ids := sourcetest.Fill(t, a, 1, 1)
	assert.True(t, ids[0] == 11, "id %d behind that, want 11: nothing is in the way", ids[0])
	assert.NoError(t, a.Admit(t.Context(), "shop.orders.id", 110), "Admit of what another process issued")
}

func TestSegmentClose(t *testing.T) {
	for _, tt := range []struct {
		name  string
		later bool // another process has reserved since
		want  uint64
	}{{"newest", false, 8}, {"not the newest", true, 201}} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			s := newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, Prefetch: 1})
			sourcetest.Fill(t, s, 7, 1)
			if tt.later {
				assert.Must(t, sourcetest.ErrorOf(st.Reserve(t.Context(), idsource.Ask{Key: "order_id", Count: 100, Floor: 1, Last: 1000})))
			}
			assert.Must(t, s.Close(t.Context()), "Close")
			assert.Equal(t, "the store stands at", st.snapshot()["order_id"].Next, tt.want)
			sourcetest.WantKind(t, "Fill", s.Fill(t.Context(), make([]uint64, 1), 1), idsource.Closed)
			sourcetest.WantKind(t, "Admit", s.Admit(t.Context(), "a.b.c", 0), idsource.Closed)
			assert.NoError(t, s.Close(t.Context()), "second Close")
		})
	}
}

// Sources come and go under load; what one gives back another issues.
func TestSegmentCloseUnderLoad(t *testing.T) {
	st := newFaultStore()
	var mu sync.Mutex
	var all []uint64
	for range 30 {
		s := newTestSegment(t, Config{Store: st, Step: 64})
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var mine []uint64
				for {
					ids := make([]uint64, 1+g)
					if err := s.Fill(context.Background(), ids, 1); err != nil {
						sourcetest.WantKind(t, "Fill", err, idsource.Closed)
						break
					}
					if mine = append(mine, ids...); len(mine) > 300 && g == 0 {
						assert.NoError(t, s.Close(context.Background()), "Close")
					}
				}
				mu.Lock()
				all = append(all, mine...)
				mu.Unlock()
			})
		}
		wg.Wait()
	}
	sourcetest.Once(t, all)
}

// TestSegmentAdmitAnother: a column of more ids than this process holds is not given those. Another
// process, a command or, at the very first use, another column may have moved the store meanwhile.
func TestSegmentAdmitAnother(t *testing.T) {
	next := func(s *Segment) uint64 {
		t.Helper()
		var ids [1]uint64
		assert.Must(t, s.Fill(t.Context(), ids[:], 1))
		return ids[0]
	}
	t.Run("moved by another", func(t *testing.T) {
		st := newFaultStore()
		s := newTestSegment(t, Config{Name: "ids", Store: st, StepPolicy: StepFixed})
		assert.Must(t, s.Admit(t.Context(), "shop.empty.id", 0))
		next(s)
		sourcetest.WantKind(t, "Admit of a column that holds more", s.Admit(t.Context(), "shop.full.id", 1999), idsource.Behind)
		assert.Must(t, st.Advance(t.Context(), "ids", 2000))
		assert.Must(t, s.Admit(t.Context(), "shop.full.id", 1999))
		assert.Greater(t, "the next id, where the column holds 1999", next(s), 1999)
	})
	t.Run("two columns at once", func(t *testing.T) {
		st := &slowPosition{faultStore: newFaultStore()}
		s := newTestSegment(t, Config{Name: "ids", Store: st, StepPolicy: StepFixed})
		st.behind = func() { // the other column is first, when the store has answered
			st.behind = nil
			assert.NoError(t, s.Admit(t.Context(), "shop.empty.id", 0))
			next(s)
		}
		assert.Must(t, s.Admit(t.Context(), "shop.full.id", 1999))
		assert.Greater(t, "the next id, where the column holds 1999", next(s), 1999)
	})
}

// slowPosition does something between the store's answer and its arrival.
type slowPosition struct {
	*faultStore
	behind func()
}

func (s *slowPosition) Position(ctx context.Context, key string) (idsource.Position, error) {
	p, err := s.faultStore.Position(ctx, key)
	if s.behind != nil {
		s.behind()
	}
	return p, err
}

// TestSegmentMadeAnew: a source in place of one that was closed, as a reload makes it, notices that the store
// went back meanwhile, unless it is to start above all that was given.
func TestSegmentMadeAnew(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start uint64
		kind  idsource.Kind // 0: it gives ids
		alone bool          // it knows nothing of the one before
	}{
		{name: "negative control", start: 1, alone: true}, // an id twice
		{name: "as it was", start: 1, kind: idsource.Behind},
		{name: "start raised, not far enough", start: 180, kind: idsource.Behind},
		{name: "start raised above what was given", start: 1000},
	} {
		st, high := newFaultStore(), &idsource.HighWater{}
		c := Config{Name: "ids", Store: st, Step: 100, StepPolicy: StepFixed, HighWater: high}
		before := st.snapshot()
		s := assert.Of(New(c)).Must(t)
		sourcetest.Fill(t, s, 250, 1)
		assert.Must(t, s.Close(t.Context()))
		st.set(func(s *faultStore) { s.keys = before })
		if c.Start = tt.start; tt.alone {
			c.HighWater = nil
		}
		s = assert.Of(New(c)).Must(t)
		ids := make([]uint64, 1)
		switch err := s.Fill(t.Context(), ids, 1); {
		case tt.kind != 0:
			sourcetest.WantKind(t, tt.name, err, tt.kind)
		default:
			assert.Must(t, err)
			assert.Equal(t, tt.name+", the first id", ids[0], tt.start)
		}
		assert.Must(t, s.Close(t.Context()))
	}
}

// TestIssued: what a process is told stays below where the store stands, although ids come back and the source
// gives back what it has left.
func TestIssued(t *testing.T) {
	st := newFaultStore()
	s := assert.Of(New(Config{Name: "ids", Store: st, Step: 100, StepPolicy: StepFixed})).Must(t)
	assert.Equal(t, "of no id", Issued(s)["ids"], 0)
	ids := sourcetest.Fill(t, s, 40, 1)
	assert.Equal(t, "of 40 ids", Issued(s)["ids"], 41)
	s.Return(ids[30], ids[39]+1)
	assert.Must(t, s.Close(t.Context()))
	assert.Equal(t, "the store stands at", st.snapshot()["ids"].Next, 41)
	assert.Equal(t, "of a source that is closed", Issued(s)["ids"], 41)
}

// TestGivenBackByTwo: two processes give their newest ranges back whole, first the one that had its own last. Then a source in
// place of that one's does not take the store to have gone back.
func TestGivenBackByTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		var highs [2]idsource.HighWater
		open := func(n int) *Segment {
			return newTestSegment(t, Config{Store: st, Step: 100, StepPolicy: StepFixed, HighWater: &highs[n]})
		}
		one, two := open(0), open(1)
		for _, n := range []int{1, 98} { // the last ids but one: another range comes
			for _, s := range []*Segment{one, two} {
				sourcetest.Fill(t, s, n, 1)
				synctest.Wait()
			}
		}
		assert.Equal(t, "the store stands at", st.snapshot()["order_id"].Next, 401)
		for _, s := range []*Segment{two, one} {
			assert.Must(t, s.Close(t.Context()))
		}
		assert.Equal(t, "the store stands at", st.snapshot()["order_id"].Next, 201)
		sourcetest.Fill(t, open(1), 1, 1)
		// Negative control: a store below the end of what two has used went back.
		assert.Equal(t, "two knows", highs[1].Of("order_id"), 301)
		st.set(func(st *faultStore) { st.keys["order_id"] = idsource.Position{Next: 150, Used: true} })
		sourcetest.WantKind(t, "two", open(1).Fill(t.Context(), make([]uint64, 1), 1), idsource.Behind)
	})
}

// TestClosedWhileItBegins: a reload closes a source whose first id waits for where the series begins. The INSERT is told so, and
// asks the source in its place.
func TestClosedWhileItBegins(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *Segment) error
		kind idsource.Kind
	}{
		{name: "closed", end: func(s *Segment) error { return s.Close(t.Context()) }, kind: idsource.Closed},
		{name: "in force", end: func(*Segment) error { return nil }, kind: idsource.NotReady},
	} {
		var s *Segment
		s = newTestSegment(t, Config{Store: newFaultStore(), Begin: func(context.Context, Beginning) (Greatest, error) {
			return Greatest{}, errors.Join(errors.New("not known"), tt.end(s))
		}})
		sourcetest.WantKind(t, tt.name, s.Admit(t.Context(), "shop.orders.id", 0), tt.kind)
	}
}
