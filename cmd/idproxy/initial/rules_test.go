package initial

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/integration/assert"
	"idproxy/pattern"
)

// TestRules: by the first rule that matches it, each table has its own column and source, and tables
// that are left out have none, whatever their names, and whether the
// servers compare these with regard to case or not.
func TestRules(t *testing.T) {
	wildcards := 0
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		schemas, words := []string{"shop", "shop_1", "Shop_2", "shop2"}, []string{"t", "order", "Orders_", "log_2", "item", "x1"}
		var all []name
		for range 60 {
			n := name{schemas[random.IntN(len(schemas))], fmt.Sprint(words[random.IntN(len(words))], random.IntN(12))}
			if !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
		families := map[family]map[name]string{{column: "id"}: {}, {column: "nr"}: {}, {column: "id", listeners: "a"}: {}}
		for _, n := range all {
			switch k := random.IntN(60); {
			case k < 5: // left out
			case k < 8:
				families[family{column: "id", listeners: "a"}][n] = "one"
			case k < 10:
				families[family{column: "nr"}][n] = "one"
			case k < 14:
				families[family{column: "id"}][n] = "two"
			default:
				families[family{column: "id"}][n] = "one"
			}
		}
		var list []Rule
		for in, tables := range families {
			list = append(list, in.rules(tables, all, func(pattern.Table) bool { return true })...)
		}
		for _, n := range all {
			want := ""
			for in, tables := range families {
				if tables[n] != "" {
					want = in.column + " " + tables[n] + " " + in.listeners
				}
			}
			for _, fold := range []bool{false, true} {
				got := firstOf(list, n, fold)
				assert.MustTrue(t, got == want, "seed %d: %s has %q, want %q, by %+v", seed, n, got, want, list)
			}
		}
		for _, r := range list {
			if r.Tables > 1 {
				wildcards++
			}
		}
	}
	assert.True(t, wildcards >= 300, "%d wildcards", wildcards)
}

// firstOf is what the first rule says that matches a table.
func firstOf(list []Rule, n name, fold bool) string {
	for _, r := range list {
		var schema, table string
		for i := range r.Table {
			if r.Table[i] == '.' {
				schema, table = r.Table[:i], r.Table[i+1:]
			}
		}
		if (pattern.Table{Schema: schema, Name: table}).Match(n.schema, n.table, fold) {
			listeners := ""
			for _, l := range r.Listeners {
				listeners += l
			}
			return r.Column + " " + r.Source + " " + listeners
		}
	}
	return ""
}

// TestStartAbove: a start has room below it, and is no more than a few times the greatest id.
func TestStartAbove(t *testing.T) {
	for _, tt := range []struct{ top, most, start uint64 }{
		{0, 1<<63 - 1, 200_000},
		{99_999, 1<<63 - 1, 200_000},
		{100_000, 1<<63 - 1, 500_000},
		{9_000_000, 1<<63 - 1, 10_000_000},
		{9_100_000, 1<<63 - 1, 20_000_000},
		{1 << 31, 1<<63 - 1, 5_000_000_000},
		{4e18, 1<<63 - 1, 5e18},
		{46e17, 1<<63 - 1, 51e17}, // 1e19 is too much
		{6e18, 1<<64 - 1, 1e19},
		{1e19, 1<<64 - 1, 12e18},
		{1_900_000_000, 1<<32 - 1, 2_100_000_000},
		{9_500_000, 1<<24 - 1, 11_000_000},
		{1, 32767, 0},
		{1 << 31, 1<<31 - 1, 0},
		{1<<63 - 1, 1<<63 - 1, 0},
		{1<<64 - 1, 1<<64 - 1, 0},
	} {
		assert.Equal(t, fmt.Sprintf("above %d, up to %d", tt.top, tt.most), startAbove(tt.top, tt.most), tt.start)
	}
}

// letters says how a server takes the letters of names.
type letters bool

const (
	exact   letters = false
	folding letters = true
)

// numbered are shards of schemas with numbers, as they are mostly cut.
func numbered(r *upstream.Rights, fold letters, schemas ...string) *said {
	of := *r
	of.Fold = bool(fold)
	s := &said{tables: map[name]*table{}, Rights: &of}
	for _, schema := range schemas {
		s.tables[name{schema, "o"}] = &table{kind: "BASE TABLE", columns: []column{{name: "id", kind: "bigint", auto: true}}, leads: []string{"id"}}
	}
	return s
}

func ruled(p *Plan) (tables []string) {
	for _, r := range p.Rules {
		tables = append(tables, r.Table)
	}
	return tables
}

// TestUnseen: a wildcard matches nothing that may be there unread, and a table that a server may have
// without a word is left out.
func TestUnseen(t *testing.T) {
	all, narrow := upstream.ReadRights(upstream.Facts{Account: "'a'@'%'"}, "GRANT SELECT ON *.* TO `a`@`%`"), upstream.ReadRights(upstream.Facts{Account: "'a'@'%'"}, "GRANT SELECT ON `s_%`.* TO `a`@`%`")
	shards := []Shard{{Name: "a"}, {Name: "b"}}
	plan := func(o Options, said ...*said) *Plan { return (&Survey{Shards: shards[:len(said)], said: said}).Plan(o) }
	p := plan(Options{}, numbered(all, exact, "s_1", "s_2", "s_3"))
	assert.True(t, slices.Equal(ruled(p), []string{"s_*.o"}), "all is seen: %q", ruled(p))
	assert.True(t, len(p.Warnings) == 1 && strings.HasPrefix(p.Warnings[0], "s_1.o and s_2.o have a series each, and get the same ids"), "of parts it says %q", p.Warnings)
	p = plan(Options{Schemas: []string{"s_1", "s_2", "s_3"}}, numbered(all, exact, "s_1", "s_2", "s_3"))
	assert.True(t, len(p.Rules) == 3, "some is read: %q", ruled(p))
	p = plan(Options{}, numbered(narrow, exact, "s_1", "s_2", "s_3"))
	assert.True(t, len(p.Rules) == 3, "some is seen: %q", ruled(p))
	p = plan(Options{}, numbered(all, exact, "s_1"), numbered(narrow, exact, "s_2"))
	assert.True(t, len(p.Rules) == 2 && !p.Partial(), "there is no other: %q, %+v", ruled(p), p.LeftOut)
	p = plan(Options{}, numbered(all, exact, "s_1", "t"), numbered(narrow, exact, "s_1"))
	assert.MustTrue(t, len(p.Rules) == 1 && p.Partial(), "there may be another: %q, %+v", ruled(p), p.LeftOut)
	assert.Equal(t, "why it is left out", p.LeftOut[0].Why, "b may have it, too, and account 'a'@'%' cannot see that: GRANT SELECT ON `t`.* TO 'a'@'%' there, also where there is no such schema")
}

// TestUnite: a table that one server has in capitals is that of another which knows none.
func TestUnite(t *testing.T) {
	all := upstream.ReadRights(upstream.Facts{}, "GRANT SELECT ON *.* TO `a`@`%`")
	shards := []Shard{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	plan := func(said ...*said) *Plan { return (&Survey{Shards: shards[:len(said)], said: said}).Plan(Options{}) }
	p := plan(numbered(all, folding, "shop"), numbered(all, exact, "Shop"), numbered(all, folding, "SHOP"))
	assert.True(t, len(p.Rules) == 1 && p.Rules[0].Table == "Shop.o" && p.Rules[0].Listeners == nil, "%+v", p.Rules)
	p = plan(numbered(all, folding, "shop"), numbered(all, folding, "SHOP"))
	assert.True(t, len(p.Rules) == 1 && p.Rules[0].Table == "shop.o", "%+v", p.Rules)
	p = plan(numbered(all, exact, "shop"), numbered(all, exact, "SHOP"))
	assert.True(t, len(p.Rules) == 2, "%+v", p.Rules)
	p = plan(numbered(all, exact, "shop", "SHOP", "x"), numbered(all, folding, "shop", "x"))
	assert.True(t, len(p.Rules) == 1 && p.Rules[0].Table == "x.o" && len(p.LeftOut) == 2, "%+v, %+v", p.Rules, p.LeftOut)
	assert.True(t, (pattern.Table{Schema: "Shop", Name: "o"}).Match("shop", "o", true), "the rule is for no table of the servers that fold")
}
