package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
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

func TestPerTable(t *testing.T) {
	st := newFaultStore()
	var log bytes.Buffer
	p, err := NewPerTable(Config{
		Name: "ids", Store: st, Key: "ids_{schema}.{table}", Step: 10, StepPolicy: StepFixed, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	assert.Must(t, err)
	next := map[string]uint64{}
	for _, name := range [][2]string{{"shop", "orders"}, {"shop", "items"}, {"SHOP", "Orders"}, {"other", "orders"}, {"shop", "orders"}} {
		s := assert.Of(p.Series(name[0], name[1])).Must(t)
		key := s.(*Segment).cfg.Key
		next[key]++
		assert.Equal(t, fmt.Sprint("id of ", name), sourcetest.Fill(t, s, 1, 1)[0], next[key])
	}
	assert.True(t, len(next) == 3 && next["ids_shop.orders"] == 3, "series %v, want three, one of them of shop.orders by any spelling", next)
	assert.Equal(t, "two spellings of a name beyond ASCII", assert.Of(p.Series("shop", "BÜCHER")).Must(t) == assert.Of(p.Series("shop", "bücher")).Must(t), true)
	assert.Must(t, p.Close(t.Context()))
	for key, n := range next {
		assert.Equal(t, "the rest given back, Close leaves "+key+" at", st.snapshot()[key].Next, n+1)
	}
	text := log.String()
	assert.True(t, strings.Count(text, "id source closed") == 1 && strings.Contains(text, "given_back=true"), "the log at the end: %q, want one line for all series", text)
	_, err = p.Series("shop", "more")
	sourcetest.WantKind(t, "after Close", err, idsource.Closed)
}

func TestPerTableAtOnce(t *testing.T) {
	p := assert.Of(NewPerTable(Config{Name: "ids", Store: newFaultStore(), Key: "{table}"})).Must(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				s, err := p.Series("shop", fmt.Sprint("t", i%5))
				if err != nil {
					t.Error(err)
					return
				}
				id := sourcetest.Fill(t, s, 1, 1)[0]
				mu.Lock()
				name := fmt.Sprint(i%5, "/", id)
				assert.True(t, !seen[name], "id %s came twice", name)
				seen[name] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	assert.NoError(t, p.Close(t.Context()))
	assert.Equal(t, "series", len(*p.series.Load()), 5)
}

// A statement finds the series of its table without an allocation.
func TestPerTableAllocates(t *testing.T) {
	p := assert.Of(NewPerTable(Config{Name: "ids", Store: newFaultStore(), Key: "{schema}.{table}"})).Must(t)
	var first idsource.Series
	if n := testing.AllocsPerRun(100, func() {
		s, err := p.Series("shop", "Orders")
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = s
		}
		assert.MustTrue(t, s == first, "another series")
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	assert.NoError(t, p.Close(t.Context()))
}

// TestSegmentBegins: a series that was never used begins above the greatest id of all its columns;
// one that was used asks for none of them.
func TestSegmentBegins(t *testing.T) {
	const column = "shop.orders.id of listener a"
	other := Greatest{196607, "shop.orders.id of listener b"}
	for _, tt := range []struct {
		name  string
		at    *idsource.Position
		all   Greatest
		err   error
		last  uint64
		want  uint64 // the first id; 0: an error
		kind  idsource.Kind
		asked *Beginning
	}{
		{name: "no key", all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "less than the column of Admit", all: Greatest{5, "x"}, want: 131073, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "told below", at: &idsource.Position{Next: 7}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column, Told: true}},
		{name: "told above", at: &idsource.Position{Next: 200000}, all: other, want: 200000, asked: &Beginning{Key: "order_id", Column: column, Told: true}},
		{name: "unset", at: &idsource.Position{Next: 1, Unset: true}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "used", at: &idsource.Position{Next: 150000, Used: true}, want: 150000, asked: &Beginning{Key: "order_id", Column: column, Told: true, Used: true}},
		{name: "joined", at: &idsource.Position{Next: 150000, Used: true}, all: other, want: 196608, asked: &Beginning{Key: "order_id", Column: column, Told: true, Used: true}},
		{name: "not known", err: errors.New("listener b cannot be asked"), kind: idsource.NotReady, asked: &Beginning{Key: "order_id", Column: column}},
		{name: "no room", all: other, last: 196607, kind: idsource.Exhausted, asked: &Beginning{Key: "order_id", Column: column}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			st := newFaultStore()
			if tt.at != nil {
				st.keys["order_id"] = *tt.at
			}
			var asked *Beginning
			s := newTestSegment(t, Config{Store: st, Last: tt.last, Begin: func(_ context.Context, b Beginning) (Greatest, error) {
				asked = &b
				return tt.all, tt.err
			}})
			err := s.Admit(t.Context(), column, 131072)
			assert.True(t, (asked == nil) == (tt.asked == nil) && (asked == nil || *asked == *tt.asked), "asked with %+v, want %+v", asked, tt.asked)
			if tt.want == 0 {
				sourcetest.WantKind(t, "Admit", err, tt.kind)
				now := st.snapshot()
				assert.True(t, len(now) == 0, "the store has %v", now)
				return
			}
			assert.Must(t, err)
			assert.Equal(t, "the first id", sourcetest.Fill(t, s, 1, 1)[0], tt.want)
		})
	}
}

// TestOrdered: a call that begins after another has ended gets greater ids, however many either
// asks for and however the ranges lie. Without Ordered that is not so.
func TestOrdered(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		store := newFaultStore()
		s := newTestSegment(t, Config{Store: store, Step: 40, MaxStep: 80, StepPolicy: StepFixed, Ordered: ordered})
		var acknowledged atomic.Uint64 // the greatest id of a call that has ended
		var wrong atomic.Int64
		var wg sync.WaitGroup
		for c := range 4 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(uint64(c), 7))
				for range 3000 {
					ids := make([]uint64, 1+rnd.IntN(1<<rnd.IntN(7)))
					before := acknowledged.Load()
					if err := s.Fill(context.Background(), ids, 1); err != nil {
						t.Error(err)
						return
					}
					if ids[0] <= before {
						wrong.Add(1)
					}
					for last := ids[len(ids)-1]; ; {
						old := acknowledged.Load()
						if old >= last || acknowledged.CompareAndSwap(old, last) {
							break
						}
					}
					if rnd.IntN(100) == 0 { // another process takes a range: the next one does not follow the last
						_ = store.Advance(context.Background(), "order_id", acknowledged.Load()+200)
					}
				}
			})
		}
		wg.Wait()
		n := wrong.Load()
		assert.True(t, (n == 0) == ordered, "ordered %v: %d calls got ids below those of a call that had ended", ordered, n)
	}
}

// TestTaken: how long numbers last is reckoned by where the store stands, which all processes move.
func TestTaken(t *testing.T) {
	var rate taken
	began := time.Now()
	at := func(after time.Duration) time.Time { return began.Add(after) }
	wants := func(what string, after time.Duration, next uint64, want float64) {
		t.Helper()
		got := rate.lasts(at(after), next, 1_000_000)
		assert.True(t, !(math.Abs(got-want) > 1e-6) || got == want, "%s: %v s, want %v", what, got, want)
	}
	wants("no range came", 0, 0, math.Inf(1))
	rate.came(at(0), 1, false)
	wants("nothing was taken", time.Minute, 1, math.Inf(1))
	wants("a burst counts over ten seconds", time.Second, 101, (1_000_000-101)/10.)
	wants("this process alone", 100*time.Second, 101, 1_000_000-101)
	rate.came(at(100*time.Second), 9001, false) // others took 8,900
	wants("all processes", 100*time.Second, 10_001, (1_000_000-10_001)/100.)
	wants("the last one", time.Hour, 1_000_001, 0)
	rate.came(at(200*time.Second), 500_001, true)
	wants("moved by this process", 200*time.Second, 500_001, math.Inf(1))
	for i := range 1000 {
		rate.came(at(200*time.Second+time.Duration(i)*time.Minute), 500_001+uint64(i), false)
	}
	assert.Equal(t, "positions kept, those of an hour and one before", len(rate.from), 62)
}

// TestPerTableStanding: a series that is about to begin is no reason to call the source without ids, as
// long as others give some.
func TestPerTableStanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newFaultStore()
		p := assert.Of(NewPerTable(Config{Name: "ids", Store: st, Key: "{table}", Step: 10, StepPolicy: StepFixed})).Must(t)
		defer p.Close(t.Context()) //nolint:errcheck // its store may be down
		fill := func(table string) error {
			s := assert.Of(p.Series("shop", table)).Must(t)
			return s.Fill(t.Context(), make([]uint64, 1), 1)
		}
		st.set(func(s *faultStore) { s.down = errors.New("away") })
		sourcetest.WantKind(t, "without its store", fill("new"), idsource.StoreDown)
		now := p.Standing()
		assert.True(t, now.Problem != nil && now.Failing != nil, "no series has ids: %+v", now)
		st.set(func(s *faultStore) { s.down = nil })
		assert.Must(t, fill("old"))
		st.set(func(s *faultStore) { s.down = errors.New("away") })
		_ = fill("newer")
		now = p.Standing()
		assert.True(t, now.Problem == nil && now.Failing != nil, "a series of two has ids: %+v", now)
	})
}

func TestKeyOf(t *testing.T) {
	long := strings.Repeat("订", 64)
	for _, tt := range []struct{ schema, table, want string }{
		{"shop", "Orders", "shop.orders"},
		{"shop", "my orders", "shop.my%20orders"},
		{"crm", "订单", "crm.%e8%ae%a2%e5%8d%95"},
		{"Größe", "a-b", "gr%c3%b6%c3%9fe.a-b"},
		{"shop", "it's", "shop.it's"},
		{"shop", "a\tb\x7f", "shop.a%09b%7f"},
		{strings.Repeat("A", 64), strings.Repeat("b", 64), strings.Repeat("a", 64) + "." + strings.Repeat("b", 64)}, // keys that stores have
		{"shop", long, "shop." + strings.Repeat("%e8%ae%a2", 7) + "~b81a8ffdd5efd7ecf6de112f64c989d6"},
	} {
		assert.Equal(t, tt.table, KeyOf("{schema}.{table}", tt.schema, tt.table), tt.want)
	}
	assert.True(t, KeyOf("{table}", "", long) != KeyOf("{table}", "", long[3:]+"単"), "long names that differ at their ends share a key")
	assert.True(t, len(KeyOf(strings.Repeat("k", 50)+"{schema}.{table}", long, long)) <= 255, "the longest key is longer than a MySQL store has it")
}
