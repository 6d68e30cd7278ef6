package grammar

import (
	"bytes"
	"strings"

	"idproxy/rule"

	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// wide reports whether the ids of a rule are no numbers.
func (c *comparison) wide(rule int) bool { return c.s.Rules[rule].IDs.Wide() }

// wideID is id for those: NULL, DEFAULT and no value at all get one, a literal or a parameter
// stays, and what may be NULL becomes IFNULL of itself and an id.
func (c *comparison) wideID(x, y ast.ExprNode, rule, n int) (filled bool, err error) {
	must, maybe := x == nil, false
	switch x := x.(type) {
	case nil, ast.ParamMarkerExpr:
	case *ast.DefaultExpr:
		must = x.Name == nil || strings.EqualFold(x.Name.Name.O, c.s.Rules[rule].Column)
		maybe = !must
	case *driver.ValueExpr:
		must = x.Kind() == driver.KindNull
	default:
		maybe = true
	}
	wrapped, isCall := y.(*ast.FuncCallExpr)
	switch {
	case must && c.isWide(y, rule, n):
		return true, nil
	case must:
		return false, differ("no id where one is generated")
	case isCall && wrapped.FnName.L == "ifnull" && len(wrapped.Args) == 2 && restore(wrapped.Args[0]) == restore(x) && c.isWide(wrapped.Args[1], rule, n):
		return true, nil
	case !maybe && restore(x) == restore(y):
		return false, nil
	}
	return false, differ("another id")
}

// isWide reports whether y is the n-th id of a rule.
func (c *comparison) isWide(y ast.ExprNode, k, n int) bool {
	v, ok := y.(*driver.ValueExpr)
	if !ok || 2*n+1 >= len(c.ids[k]) {
		return false
	}
	id := [2]uint64{c.ids[k][2*n], c.ids[k][2*n+1]}
	for form := rule.FormUUID; form <= rule.FormBytes12; form++ {
		if form.Binary() == (v.Kind() == driver.KindBinaryLiteral) && bytes.Equal(v.GetBytes(), form.AppendValue(nil, id)) {
			return true
		}
	}
	return false
}
