package rewriter

import (
	"testing"

	"idproxy/integration/assert"
	"idproxy/rule"
)

// A column in which the server itself counts takes LAST_INSERT_ID() from the statement, unless it
// is the rule's own.
func TestOtherCounter(t *testing.T) {
	id, seq := rule.Column{Name: "id", Max: 1 << 62}, rule.Column{Name: "seq", AutoIncrement: true}
	counted := rule.Column{Name: "ID", Max: 1 << 62, AutoIncrement: true}
	tests := []struct {
		name  string
		table *rule.Table
		plain bool
	}{
		{"none", &rule.Table{Columns: []rule.Column{id, {Name: "a"}}}, false},
		{"the rule's", &rule.Table{Columns: []rule.Column{counted, {Name: "a"}}}, false},
		{"another", &rule.Table{Columns: []rule.Column{id, {Name: "a"}, seq}}, true},
		{"another, invisible", &rule.Table{Columns: []rule.Column{id, {Name: "a"}}, Invisible: []rule.Column{seq}}, true},
		{"no facts", nil, false},
	}
	for _, tt := range tests {
		var p Plan
		s := Statement{Text: []byte("INSERT INTO t (a) VALUES (1)"), Rules: []*rule.Rule{{Schema: "s", Table: "t", Column: "id"}}, Table: tt.table}
		err := p.Read(&s)
		assert.True(t, err == nil && p.Plain == tt.plain, "%s: plain %v, %v; want %v", tt.name, p.Plain, err, tt.plain)
	}
}
