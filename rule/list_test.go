package rule

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"idproxy/integration/assert"
	"idproxy/lookup"
)

func TestMatch(t *testing.T) {
	rules := NewList([]Rule{
		{Schema: "shop", Table: "orders", Column: "id", Source: "a"},
		{Schema: "shop_*", Table: "events_?", Column: "id", Source: "b"},
		{Schema: "shop_*", Table: "*", Column: "ID", Source: "c"},
		{Schema: "shop_*", Table: "*", Column: "event", Source: "d"},
		{Schema: "*", Table: "Users", Column: "id", Source: "e"},
	})
	tests := []struct {
		schema, table string
		fold          bool
		want          string
	}{
		{"shop", "orders", false, "a"},
		{"shop", "ORDERS", false, ""},
		{"Shop", "ORDERS", true, "a"},
		{"shop_1", "events_2", false, "bd"},
		{"shop_1", "events_é", false, "bd"},
		{"shop_1", "events_22", false, "cd"},
		{"shop_", "x", false, "cd"},
		{"shop", "users", false, ""},
		{"any", "users", true, "e"},
		{"", "Users", false, "e"},
		{"shop.orders", "", false, ""},
		{"shop.", "orders", false, ""},
	}
	for range 2 { // the second time from the cache
		for _, tt := range tests {
			got := ""
			for _, r := range rules.Match([]byte(tt.schema), []byte(tt.table), tt.fold) {
				got += r.Source
			}
			assert.Equal(t, fmt.Sprintf("%s.%s fold=%v matches", tt.schema, tt.table, tt.fold), got, tt.want)
		}
	}
	assert.True(t, NewList(nil).Match([]byte("a"), []byte("b"), true) == nil, "no rules match")
	some := NewList([]Rule{{Schema: "shop", Table: "o*s", Column: "id"}})
	for table, want := range map[string]bool{"orders": true, "os": true, "Orders": false, "order": false} {
		assert.Equal(t, fmt.Sprintf("MayMatch(%q)", table), some.MayMatch([]byte(table), false), want)
	}
}

func TestMatchIsShared(t *testing.T) {
	rules := NewList([]Rule{{Schema: "s", Table: "*", Column: "id"}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2 * lookup.Most {
				assert.True(t, rules.Match([]byte("s"), fmt.Appendf(nil, "t%d", i), i%2 == 0) != nil, "no match")
			}
		})
	}
	wg.Wait()
	for size, want := range map[int]bool{maxKey - len("\x00s\x00"): true, maxKey: false} {
		table := strings.Repeat("x", size)
		rules.Match([]byte("s"), []byte(table), false)
		_, kept := rules.answers.Get([]byte("\x00s\x00" + table))
		assert.True(t, kept == want, "the answer for a name of %d bytes is kept: %v", size, kept)
	}
}

// BenchmarkMatchNew finds rules of tables that were not asked for before.
func BenchmarkMatchNew(b *testing.B) {
	for _, n := range []int{100, 10000} {
		b.Run(fmt.Sprintf("%d rules", n), func(b *testing.B) {
			list := make([]Rule, n)
			for i := range list {
				list[i] = Rule{Schema: "shop", Table: fmt.Sprintf("t%d", i), Column: "id"}
			}
			rules := NewList(list)
			for b.Loop() {
				if rules.find("shop", "t77", false, false).rules == nil {
					b.Fatal("no match")
				}
			}
		})
	}
}

func TestRuleNames(t *testing.T) {
	r := Rule{Schema: "shop", Table: "orders", Column: "id"}
	assert.True(t, r.String() == "shop.orders.id" && r.Exact(), "%s, exact %v", &r, r.Exact())
	r.Table = "o?ders"
	assert.True(t, !r.Exact(), "a wildcard is exact")
}

func TestKeyspace(t *testing.T) {
	rules := NewList([]Rule{{Schema: "shop", Table: "orders", Column: "id"}})
	for _, c := range []struct {
		list   *List
		schema string
		want   string // nothing: it has no rules
	}{
		{rules.Packet(), "shop", "shop"},
		{rules.Packet(), "shop@primary", "shop"},
		{rules.Packet(), "@primary", ""},
		{rules.Packet(), "shop:-80@primary", ""},
		{rules, "shop@primary", ""}, // another schema there
	} {
		got := ""
		if c.list.Match([]byte(c.schema), []byte("orders"), false) != nil {
			got = string(c.list.Schema([]byte(c.schema)))
		}
		assert.Equal(t, "the table in "+c.schema+" is taken for one of", got, c.want)
	}
}
