package lookup

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"idproxy/integration/assert"
)

func TestTable(t *testing.T) {
	var answers Table[int]
	_, ok := answers.Get([]byte("a"))
	assert.True(t, !ok, "an empty table answers")
	for i, key := range []string{"", "a", "b", "ab", "shop\x00orders", "shop\x00order", strings.Repeat("x", 300)} {
		answers.Put(key, i)
		answers.Put(key, 2*i)
		got, ok := answers.Get([]byte(key))
		assert.True(t, ok && got == 2*i, "%q: %d, %v; want %d", key, got, ok, 2*i)
		_, ok = answers.Get([]byte(key + "\x00"))
		assert.True(t, !ok, "%q answers for another key", key)
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
		got, ok := answers.Get(fmt.Appendf(nil, "shop_%d\x00orders_2026_%02d", i/100, i%100))
		assert.True(t, ok && got == i, "answer %d: %d, %v", i, got, ok)
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
				got, ok := answers.Get([]byte(key))
				assert.True(t, !ok || got == key, "%s: %s", key, got)
			}
		})
	}
	wg.Wait()
}

func TestGetAllocatesNothing(t *testing.T) {
	var answers Table[int]
	key := []byte("shop\x00orders")
	answers.Put(string(key), 1)
	assert.Equal(t, "allocations", testing.AllocsPerRun(100, func() { answers.Get(key) }), 0)
}
