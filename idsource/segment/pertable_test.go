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
)

func TestPerTable(t *testing.T) {
	st := newFaultStore()
	var log bytes.Buffer
	p, err := NewPerTable(Config{
		Name: "ids", Store: st, Key: "ids_{schema}.{table}", Step: 10, StepPolicy: StepFixed, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]uint64{}
	for _, name := range [][2]string{{"shop", "orders"}, {"shop", "items"}, {"SHOP", "Orders"}, {"other", "orders"}, {"shop", "orders"}} {
		s, err := p.Series(name[0], name[1])
		if err != nil {
			t.Fatal(err)
		}
		key := s.(*Segment).cfg.Key
		next[key]++
		if got := sourcetest.Fill(t, s, 1, 1)[0]; got != next[key] {
			t.Errorf("%s.%s: id %d, want %d", name[0], name[1], got, next[key])
		}
	}
	if len(next) != 3 || next["ids_shop.orders"] != 3 {
		t.Errorf("series %v, want three, one of them of shop.orders by any spelling", next)
	}
	_, err = p.Series("shop", "bücher")
	sourcetest.WantKind(t, "a name beyond ASCII", err, idsource.BadConfig)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, n := range next {
		if got := st.snapshot()[key].Next; got != n+1 {
			t.Errorf("%s stands at %d after Close, want %d: the rest was not given back", key, got, n+1)
		}
	}
	if text := log.String(); strings.Count(text, "id source closed") != 1 || !strings.Contains(text, "given_back=true") {
		t.Errorf("the log at the end: %q, want one line for all series", text)
	}
	_, err = p.Series("shop", "more")
	sourcetest.WantKind(t, "after Close", err, idsource.Closed)
}

func TestPerTableAtOnce(t *testing.T) {
	p, err := NewPerTable(Config{Name: "ids", Store: newFaultStore(), Key: "{table}"})
	if err != nil {
		t.Fatal(err)
	}
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
				if seen[name] {
					t.Errorf("id %s came twice", name)
				}
				seen[name] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(*p.series.Load()); n != 5 {
		t.Errorf("%d series, want 5", n)
	}
}

// A statement finds the series of its table without an allocation.
func TestPerTableAllocates(t *testing.T) {
	p, err := NewPerTable(Config{Name: "ids", Store: newFaultStore(), Key: "{schema}.{table}"})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
