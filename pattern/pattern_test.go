package pattern

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// parts are patterns of every shape over two letters.
func parts() (all []string) {
	all = []string{""}
	for from := 0; len(all[from]) < 4; from++ {
		for _, c := range []string{"a", "b", "*", "?"} {
			all = append(all, all[from]+c)
		}
	}
	return all
}

// names are those that a pattern of four characters can tell apart.
func names() (all []string) {
	all = []string{""}
	for from := 0; len(all[from]) < 6; from++ {
		for _, c := range []string{"a", "b", "c"} {
			all = append(all, all[from]+c)
		}
	}
	return all
}

// TestCoversAndOverlaps compares with what the patterns match.
func TestCoversAndOverlaps(t *testing.T) {
	all, words := parts(), names()
	matched := map[string][]bool{}
	for _, p := range all {
		for _, w := range words {
			matched[p] = append(matched[p], Match(p, w, false))
		}
	}
	for i := 0; i < len(all); i += 3 {
		for j := range all {
			a, b := all[i], all[j]
			subset, both := true, false
			for k := range words {
				subset = subset && (matched[a][k] || !matched[b][k])
				both = both || matched[a][k] && matched[b][k]
			}
			got := covers(a, b)
			assert.True(t, !got || subset, "%q covers %q: it does not", a, b)
			assert.Equal(t, fmt.Sprintf("%q overlaps %q", a, b), overlap(a, b), both)
		}
	}
}

// TestIndexFindsAll: what matches, or covers, is among what is found.
func TestIndexFindsAll(t *testing.T) {
	all := parts()
	var x Index
	var tables []Table
	for i := range all {
		tables = append(tables, Table{all[i], all[(i*7)%len(all)]})
		x.Add(tables[i], i)
	}
	look := func(schema, name string, wanted func(Table) bool) {
		t.Helper()
		found := x.Find(nil, schema, name)
		for i, p := range tables {
			assert.True(t, !wanted(p) || slices.Contains(found, i), "%v is not found for %s.%s", p, schema, name)
		}
	}
	words := names()
	for i := 0; i < len(words); i += 5 {
		schema, name := words[i], words[(i*11)%len(words)]
		look(schema, name, func(p Table) bool { return p.Match(schema, name, false) })
		look(strings.ToUpper(schema), name, func(p Table) bool { return p.Match(strings.ToUpper(schema), name, true) })
	}
	for i := 0; i < len(tables); i += 3 {
		look(tables[i].Schema, tables[i].Name, func(p Table) bool { return p.Covers(tables[i]) })
	}
}

// TestIndexFindsFew: how many patterns are looked at for a name does not grow with how many
// there are.
func TestIndexFindsFew(t *testing.T) {
	for _, form := range []string{"shop.t%d", "shop%d.t", "shop_*.t%d_*", "*.*_%d", "*.events_*_%d", "s%d_*.*", "*_%d.t"} {
		const n = 10000
		var x Index
		for i := range n {
			x.Add(split(fmt.Sprintf(form, i)), i)
		}
		compared := 0
		for i := range n {
			name := split(strings.NewReplacer("*", "x", "?", "y").Replace(fmt.Sprintf(form, i)))
			found := x.Find(nil, name.Schema, name.Name)
			assert.MustTrue(t, slices.Contains(found, i), "%s: %v is not found", form, name)
			compared += len(found)
		}
		assert.True(t, compared <= 6*n, "%s: %d patterns compared with %d names", form, compared, n)
	}
}

func split(text string) Table {
	schema, name, _ := strings.Cut(text, ".")
	return Table{schema, name}
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		wide, narrow string
		want         bool
	}{
		{"orders", "orders", true},
		{"orders", "order", false},
		{"order", "orders", false},
		{"*", "", true},
		{"*", "a*?", true},
		{"?", "*", false},
		{"?", "?", true},
		{"a", "?", false},
		{"a*c", "abc", true},
		{"a*c", "ab", false},
		{"shop_*", "shop_?", true},
		{"shop_?", "shop_*", false},
		{"*_x_*", "a_x_*", true},
		{strings.Repeat("*a", 30) + "b", strings.Repeat("a", 60), false},
		{"*", "*", true},
		{"a**", "a", true},
	} {
		assert.Equal(t, fmt.Sprintf("covers(%q, %q)", tt.wide, tt.narrow), covers(tt.wide, tt.narrow), tt.want)
	}
}

func TestNames(t *testing.T) {
	for text, exact := range map[string]bool{"shop.orders": true, "shop.o?ders": false, "*.orders": false} {
		assert.Equal(t, text+": exact", split(text).Exact(), exact)
	}
	p := split("shop.*")
	assert.True(t, p.Overlaps(split("*.orders")) && !p.Overlaps(split("other.*")), "%v overlaps wrongly", p)
}

func BenchmarkFind(b *testing.B) {
	var x Index
	for i := range 10000 {
		x.Add(split(fmt.Sprintf("shop.t%d", i)), i)
	}
	b.ReportAllocs()
	for b.Loop() {
		x.Find(nil, "shop", "t777")
	}
}
