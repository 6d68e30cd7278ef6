package lookup

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestTable(t *testing.T) {
	var answers Table[int]
	if _, ok := answers.Get([]byte("a")); ok {
		t.Error("an empty table answers")
	}
	for i, key := range []string{"", "a", "b", "ab", "shop\x00orders", "shop\x00order", strings.Repeat("x", 300)} {
		answers.Put(key, i)
		answers.Put(key, 2*i)
		if got, ok := answers.Get([]byte(key)); !ok || got != 2*i {
			t.Errorf("%q: %d, %v; want %d", key, got, ok, 2*i)
		}
		if _, ok := answers.Get([]byte(key + "\x00")); ok {
			t.Errorf("%q answers for another key", key)
		}
	}
}

// Names as tables have them do not push each other out while there are few.
func TestFewStay(t *testing.T) {
	var answers Table[int]
	const few = 200
	for i := range few {
		answers.Put(fmt.Sprintf("shop_%d\x00orders_2026_%02d", i/100, i%100), i)
	}
	for i := range few {
		if got, ok := answers.Get(fmt.Appendf(nil, "shop_%d\x00orders_2026_%02d", i/100, i%100)); !ok || got != i {
			t.Errorf("answer %d: %d, %v", i, got, ok)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	var answers Table[string]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 3 * Most {
				key := fmt.Sprint(i % (2 * Most))
				answers.Put(key, key)
				if got, ok := answers.Get([]byte(key)); ok && got != key {
					t.Errorf("%s: %s", key, got)
				}
			}
		})
	}
	wg.Wait()
}

func TestGetAllocatesNothing(t *testing.T) {
	var answers Table[int]
	key := []byte("shop\x00orders")
	answers.Put(string(key), 1)
	if n := testing.AllocsPerRun(100, func() { answers.Get(key) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
