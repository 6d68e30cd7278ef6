package rewriter

import (
	"testing"

	"idproxy/rule"
)

// FuzzMayName: no way to write an INSERT hides the table that its head names.
func FuzzMayName(f *testing.F) {
	f.Add("orders", "INSERT INTO ORDERS VALUES (1)", uint8(0))
	f.Add("or`d*", "INSERT INTO `or``ders` VALUES (1)", uint8(1))
	f.Add("\u65e5?", "REPLACE \u65e5\u672c SET a=1", uint8(2))
	f.Fuzz(func(t *testing.T, pattern, text string, how uint8) {
		mode := Mode{ANSIQuotes: how&1 != 0, NoBackslashEscapes: how&2 != 0, MariaDB: how&4 != 0, Charset: Charset(how >> 3 % 5)}
		head, _ := ReadHead([]byte(text), mode)
		rules := rule.NewList([]rule.Rule{{Schema: "*", Table: pattern, Column: "id"}})
		for _, fold := range []bool{false, true} {
			if rules.Match(nil, head.Target.Table, fold) != nil && len(head.Target.Table) > 0 && !rules.MayName([]byte(text)) {
				t.Errorf("%q names %q, which %q matches", text, head.Target.Table, pattern)
			}
		}
	})
}
