package segment

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

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
		got := sourcetest.Fill(t, s, 1, 1)[0]
		assert.True(t, got == next[key], "%s.%s: id %d, want %d", name[0], name[1], got, next[key])
	}
	assert.True(t, len(next) == 3 && next["ids_shop.orders"] == 3, "series %v, want three, one of them of shop.orders by any spelling", next)
	_, err = p.Series("shop", "bücher")
	sourcetest.WantKind(t, "a name beyond ASCII", err, idsource.BadConfig)
	assert.Must(t, p.Close(t.Context()))
	for key, n := range next {
		got := st.snapshot()[key].Next
		assert.True(t, got == n+1, "%s stands at %d after Close, want %d: the rest was not given back", key, got, n+1)
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
		if s != first {
			t.Fatal("another series")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	assert.NoError(t, p.Close(t.Context()))
}
