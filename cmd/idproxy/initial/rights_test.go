package initial

import (
	"strings"
	"testing"

	"idproxy/pattern"
)

// TestRights: of the grants of an account the most specific counts for a schema, and no right of
// another one. What is printed has its form.
func TestRights(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rows    []string
		schema  string
		sees    bool
		granted string
	}{
		{"nothing", []string{"GRANT USAGE ON *.* TO `a`@`%`"}, "shop_1", false, "`shop\\_1`"},
		{"a quote", nil, "a`b%", false, "`a``b\\%`"},
		{"everything", []string{"GRANT SELECT, INSERT ON *.* TO `a`@`%`"}, "shop", true, "`shop`"},
		{"all of it", []string{"GRANT ALL PRIVILEGES ON *.* TO `a`@`%` IDENTIFIED BY PASSWORD '*6' WITH GRANT OPTION"}, "shop", true, "`shop`"},
		{"all but one", []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "sh_p", false, "`sh\\_p`"},
		{"another of all but one", []string{"GRANT SELECT ON *.* TO `a`@`%`", "REVOKE SELECT ON `sh_p`.* FROM `a`@`%`"}, "shop", true, "`shop`"},
		{"as it is mostly written", []string{"GRANT SELECT ON `sh_p`.* TO `a`@`%`"}, "sh_p", true, "`sh_p`"},
		{"with a backslash", []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "sh_p", true, "`sh\\_p`"},
		{"of another, with a backslash", []string{"GRANT SELECT ON `sh\\_p`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of many", []string{"GRANT ALL PRIVILEGES ON `sh%p`.* TO `a`@`%`"}, "shoop", true, "`sh%p`"},
		{"the most specific selects not", []string{"GRANT SELECT ON `sh%`.* TO `a`@`%`", "GRANT INSERT ON `shop`.* TO `a`@`%`"}, "shop", false, "`shop`"},
		{"the most specific selects", []string{"GRANT INSERT ON `%`.* TO `a`@`%`", "GRANT SELECT ON `sho_`.* TO `a`@`%`"}, "shop", true, "`sho_`"},
		{"quoted otherwise", []string{`GRANT SELECT ON "a""b".* TO "a"@"%"`}, `a"b`, true, "`a\"b`"},
		{"not quoted", []string{"GRANT SELECT ON shop.* TO a@%"}, "shop", true, "`shop`"},
		{"of a table", []string{"GRANT SELECT ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of columns", []string{"GRANT SELECT (`a`, `b`) ON `shop`.`t` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"of a routine", []string{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `a`@`%`"}, "shop", false, "`shop`"},
		{"a role, a proxy and half a row", []string{"GRANT `r`@`%` TO `a`@`%`", "GRANT PROXY ON ''@'' TO 'a'@'%'", "GRANT SELECT ON `sho", "GRANT", ""}, "shop", false, "`shop`"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := &rights{}
			for _, row := range tt.rows {
				g.read(row)
			}
			if g.sees(tt.schema) != tt.sees || g.granted(tt.schema) != tt.granted {
				t.Errorf("sees %v, granted %s; want %v, %s: %+v", g.sees(tt.schema), g.granted(tt.schema), tt.sees, tt.granted, g)
			}
		})
	}
}

// numbered are shards of schemas with numbers, as they are mostly cut.
func numbered(r rights, schemas ...string) *said {
	s := &said{map[name]*table{}, r}
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
	all := rights{account: "'a'@'%'", global: true}
	narrow := rights{account: "'a'@'%'", schemas: []schemaGrant{{"s_%", true}}}
	shards := []Shard{{Name: "a"}, {Name: "b"}}
	plan := func(o Options, said ...*said) *Plan { return (&Survey{Shards: shards[:len(said)], said: said}).Plan(o) }
	if p := plan(Options{}, numbered(all, "s_1", "s_2", "s_3")); len(p.Rules) != 1 || p.Rules[0].Table != "s_*.o" {
		t.Errorf("all is seen: %q", ruled(p))
	} else if len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "s_1.o and s_2.o have a series each, and get the same ids") {
		t.Errorf("of parts it says %q", p.Warnings)
	}
	if p := plan(Options{Schemas: []string{"s_1", "s_2", "s_3"}}, numbered(all, "s_1", "s_2", "s_3")); len(p.Rules) != 3 {
		t.Errorf("some is read: %q", ruled(p))
	}
	if p := plan(Options{}, numbered(narrow, "s_1", "s_2", "s_3")); len(p.Rules) != 3 {
		t.Errorf("some is seen: %q", ruled(p))
	}
	if p := plan(Options{}, numbered(all, "s_1"), numbered(narrow, "s_2")); len(p.Rules) != 2 || p.Partial() {
		t.Errorf("there is no other: %q, %+v", ruled(p), p.LeftOut)
	}
	p := plan(Options{}, numbered(all, "s_1", "t"), numbered(narrow, "s_1"))
	if len(p.Rules) != 1 || !p.Partial() || p.LeftOut[0].Why != "b may have it, too, and account 'a'@'%' cannot see that: GRANT SELECT ON `t`.* TO 'a'@'%' there, also where there is no such schema" {
		t.Errorf("there may be another: %q, %+v", ruled(p), p.LeftOut)
	}
}

// TestUnite: a table that one server has in capitals is that of another which knows none.
func TestUnite(t *testing.T) {
	all := rights{global: true}
	folds := rights{global: true, fold: true}
	shards := []Shard{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	plan := func(said ...*said) *Plan { return (&Survey{Shards: shards[:len(said)], said: said}).Plan(Options{}) }
	if p := plan(numbered(folds, "shop"), numbered(all, "Shop"), numbered(folds, "SHOP")); len(p.Rules) != 1 || p.Rules[0].Table != "Shop.o" || p.Rules[0].Listeners != nil {
		t.Errorf("%+v", p.Rules)
	}
	if p := plan(numbered(folds, "shop"), numbered(folds, "SHOP")); len(p.Rules) != 1 || p.Rules[0].Table != "shop.o" {
		t.Errorf("%+v", p.Rules)
	}
	if p := plan(numbered(all, "shop"), numbered(all, "SHOP")); len(p.Rules) != 2 {
		t.Errorf("%+v", p.Rules)
	}
	if p := plan(numbered(all, "shop", "SHOP", "x"), numbered(folds, "shop", "x")); len(p.Rules) != 1 || p.Rules[0].Table != "x.o" || len(p.LeftOut) != 2 {
		t.Errorf("%+v, %+v", p.Rules, p.LeftOut)
	}
	if !(pattern.Table{Schema: "Shop", Name: "o"}).Match("shop", "o", true) {
		t.Error("the rule is for no table of the servers that fold")
	}
}
