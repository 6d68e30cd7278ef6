package decide

import (
	"testing"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rule"
)

// TestReshapes: the columns of a table count, whether the INSERT gets ids or not.
func TestReshapes(t *testing.T) {
	table := func(columns int) *catalog.Table {
		return &catalog.Table{Table: &rule.Table{Columns: make([]rule.Column, columns)}}
	}
	filled := func(columns int) *protocol.Stmt { return &protocol.Stmt{Kind: &filler{facts: table(columns)}} }
	goes := func(columns int) *protocol.Stmt { return &protocol.Stmt{Kind: &bare{facts: table(columns)}} }
	for name, tt := range map[string]struct {
		before, now *protocol.Stmt
		want        bool
	}{
		"the same":                 {filled(2), filled(2), false},
		"a column more":            {filled(2), filled(3), true},
		"a reload brings a rule":   {goes(2), filled(2), false},
		"a reload takes it away":   {filled(2), goes(2), false},
		"a rule and a column more": {goes(2), filled(3), true},
	} {
		if got := Reshapes(tt.before, tt.now); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
