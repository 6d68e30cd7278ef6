package decide

import (
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// A text that prepares from plain literals, and names no table with a rule, goes as it came where
// it is in doubt. What is known of the names in it is not believed any more.
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
			x.is(func(s *protocol.Vars) { s.Known &^= protocol.KnowQuotes })
			if got := x.on(mysql.COM_QUERY, tt.text, true); got != tt.want {
				t.Fatalf("%s (%v), want %s", got, x.last, tt.want)
			}
			if tt.want != "forward" {
				return
			}
			if x.c.Prepared.ByName["kept"] == nil || x.c.Prepared.ByName["s"] != nil && rewriter.MentionsPrepare([]byte(tt.text)) {
				t.Errorf("names %v are known behind the text", x.c.Prepared.ByName)
			}
			later := rule.NewList([]rule.Rule{{Schema: "shop", Table: "later", Column: "id", Source: "s"}})
			if !x.c.Prepared.Passed.MayInsert(later) { // the text may have failed in front of its PREPARE
				t.Error("the statement that had the name is forgotten once a reload brings a rule for it")
			}
		})
	}
}
