package config

import (
	"fmt"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// manyRules are files of 10,000 rules, of the kinds that differ in how rules are compared.
func manyRules(tb testing.TB, n int) map[string][]byte {
	tb.Helper()
	kinds := map[string]struct {
		sources, listeners int
		rule               string // %[1]d is its number
	}{
		"exact":            {1, 1, "{table: shop.t%[1]d, column: id, source: s0}"},
		"wild":             {1, 1, `{table: "shop_*.t%[1]d_*", column: id, source: s0}`},
		"wild at the head": {1, 1, `{table: "*.*_%[1]d", column: id, source: s0}`},
		"sources":          {n, 1, "{table: shop.t%[1]d, column: id, source: s%[1]d}"},
		"listeners":        {1, 64, "{table: shop.t%[1]d, column: id, source: s0}"},
		"own listener":     {1, 64, "{table: shop.t%[1]d, column: id, source: s0, listeners: [l%[2]d]}"},
		"columns":          {1, 1, "{table: shop.t, column: c%[1]d, source: s0}"},
	}
	files := map[string][]byte{}
	for name, k := range kinds {
		var text strings.Builder
		text.WriteString("listeners:\n")
		for i := range k.listeners {
			fmt.Fprintf(&text, "  - {name: l%d, listen: 127.0.0.1:%d, upstream: 127.0.0.1:1}\n", i, 10000+i)
		}
		text.WriteString("sources:\n")
		for i := range k.sources {
			fmt.Fprintf(&text, "  s%d: {segment: {}}\n", i)
		}
		text.WriteString("rules:\n")
		for i := range n {
			text.WriteString("  - " + strings.SplitN(fmt.Sprintf(k.rule, i, i%64), "%!", 2)[0] + "\n")
		}
		files[name] = []byte(text.String())
	}
	return files
}

// TestRulesAreComparedWithFew: how many rules a rule is compared with does not grow with
// how many there are.
func TestRulesAreComparedWithFew(t *testing.T) {
	const n = 3000
	for name, text := range manyRules(t, n) {
		c := assert.Of(Parse("idproxy.yaml", text, nil)).Must(t)
		before := newEarlierRules(c.Listeners)
		for i := range c.Rules {
			first := before.add(&c.Rules[i])
			assert.MustTrue(t, first == nil, "%s: rule %d can never apply because of %v", name, i, first)
		}
		assert.True(t, before.compared <= 6*n, "%s: %d rules were compared %d times", name, n, before.compared)
	}
}

func BenchmarkManyRules(b *testing.B) {
	for name, text := range manyRules(b, 10000) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("idproxy.yaml", text, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
