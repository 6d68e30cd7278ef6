package proxy

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/rewriter"
	"idproxy/rule"
)

// A text that prepares from plain literals, and names no table with a rule, goes as it came where it is in doubt. What is known
// of the names in it is not believed any more.
func TestNamesPass(t *testing.T) {
	const doubted = `; SELECT "x"`
	for _, tt := range []struct{ name, text, want string }{
		{"a literal", "PREPARE s FROM 'SELECT 1'" + doubted, "forward"},
		{"names", "EXECUTE s; DROP PREPARE s" + doubted, "forward"},
		{"a filled name", "EXECUTE filled" + doubted, "need probe"},
		{"a variable", "PREPARE s FROM @x" + doubted, "need probe"},
		{"a table with a rule", "PREPARE s FROM 'INSERT INTO orders (a) VALUES (1)'" + doubted, "need probe"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newDeciding()
			x.named(t, "PREPARE s FROM 'INSERT INTO later (a) VALUES (1)'")
			x.named(t, "PREPARE kept FROM 'SELECT 2'")
			if strings.Contains(tt.text, "filled") {
				x.named(t, "PREPARE filled FROM 'INSERT INTO orders (a) VALUES (1)'")
			}
			x.c.state.known &^= knowQuotes
			if got := x.on(mysql.COM_QUERY, tt.text, true); got != tt.want {
				t.Fatalf("%s (%v), want %s", got, x.last, tt.want)
			}
			if tt.want != "forward" {
				return
			}
			if x.c.prepared.byName["kept"] == nil || x.c.prepared.byName["s"] != nil && rewriter.MentionsPrepare([]byte(tt.text)) {
				t.Errorf("names %v are known behind the text", x.c.prepared.byName)
			}
			later := rule.NewList([]rule.Rule{{Schema: "shop", Table: "later", Column: "id", Source: "s"}})
			if !x.c.prepared.passed.mayInsert(later) { // the text may have failed in front of its PREPARE
				t.Error("the statement that had the name is forgotten once a reload brings a rule for it")
			}
		})
	}
}

// What is kept of such texts is bounded, and what is not kept is no reason to refuse while the rules are the same.
func TestPassedTextsAreBounded(t *testing.T) {
	var p passedNames
	if p.mayInsert(rule.NewList([]rule.Rule{{Schema: "shop", Table: "*", Column: "id", Source: "s"}})) {
		t.Error("a rule for any table concerns texts that there are not")
	}
	rules := func() *rule.List {
		return rule.NewList([]rule.Rule{{Schema: "shop", Table: "orders", Column: "id", Source: "s"}})
	}
	same := rules()
	for n := range 1000 {
		p.add([]byte("PREPARE s FROM 'SELECT "+strings.Repeat("x", n)+"'"), same)
	}
	if len(p.texts) > maxPassed {
		t.Errorf("%d bytes are kept", len(p.texts))
	}
	if p.mayInsert(same) || !p.mayInsert(rules()) {
		t.Errorf("under the same rules: %t, after a reload: %t; want false, true", p.mayInsert(same), p.mayInsert(rules()))
	}
}
