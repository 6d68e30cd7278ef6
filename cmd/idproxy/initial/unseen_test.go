package initial

import (
	"strings"
	"testing"

	"idproxy/cmd/idproxy/upstream"
	"idproxy/integration/assert"
	"idproxy/pattern"
)

// letters says how a server takes the letters of names.
type letters bool

const (
	exact   letters = false
	folding letters = true
)

// numbered are shards of schemas with numbers, as they are mostly cut.
func numbered(r *upstream.Rights, fold letters, schemas ...string) *said {
	s := &said{tables: map[name]*table{}, Rights: r, fold: bool(fold)}
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
	all, narrow := upstream.ReadRights("'a'@'%'", upstream.Names{}, "GRANT SELECT ON *.* TO `a`@`%`"), upstream.ReadRights("'a'@'%'", upstream.Names{}, "GRANT SELECT ON `s_%`.* TO `a`@`%`")
	shards := []Shard{{Name: "a"}, {Name: "b"}}
	plan := func(o Options, said ...*said) *Plan { return (&Survey{Shards: shards[:len(said)], said: said}).Plan(o) }
	if p := plan(Options{}, numbered(all, exact, "s_1", "s_2", "s_3")); len(p.Rules) != 1 || p.Rules[0].Table != "s_*.o" {
		t.Errorf("all is seen: %q", ruled(p))
	} else if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "s_1.o and s_2.o have a series each, and get the same ids") {
		t.Errorf("of parts it says %q", p.Warnings)
	}
	if p := plan(Options{Schemas: []string{"s_1", "s_2", "s_3"}}, numbered(all, exact, "s_1", "s_2", "s_3")); len(p.Rules) != 3 {
		t.Errorf("some is read: %q", ruled(p))
	}
	if p := plan(Options{}, numbered(narrow, exact, "s_1", "s_2", "s_3")); len(p.Rules) != 3 {
		t.Errorf("some is seen: %q", ruled(p))
	}
	if p := plan(Options{}, numbered(all, exact, "s_1"), numbered(narrow, exact, "s_2")); len(p.Rules) != 2 || p.Partial() {
		t.Errorf("there is no other: %q, %+v", ruled(p), p.LeftOut)
	}
	p := plan(Options{}, numbered(all, exact, "s_1", "t"), numbered(narrow, exact, "s_1"))
	if len(p.Rules) != 1 || !p.Partial() || p.LeftOut[0].Why != "b may have it, too, and account 'a'@'%' cannot see that: GRANT SELECT ON `t`.* TO 'a'@'%' there, also where there is no such schema" {
		t.Errorf("there may be another: %q, %+v", ruled(p), p.LeftOut)
	}
}

// TestUnite: a table that one server has in capitals is that of another which knows none.
func TestUnite(t *testing.T) {
	all := upstream.ReadRights("", upstream.Names{}, "GRANT SELECT ON *.* TO `a`@`%`")
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
