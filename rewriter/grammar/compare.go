package grammar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	driver "github.com/pingcap/tidb/pkg/parser/test_driver"

	"idproxy/rewriter"
	"idproxy/rule"
)

// comparison holds a statement and what became of it, as TiDB's parser reads them.
type comparison struct {
	s      *rewriter.Statement
	p      *rewriter.Plan
	ids    [][]uint64
	before *ast.InsertStmt
	after  *ast.InsertStmt

	names  []name // the columns before: those of the list, or the table's
	from   []int  // by position after, that before; -1: the column is new
	rules  []int  // by position after, the index of the rule; -1: no id goes there
	reader [2]int // row and position after of LAST_INSERT_ID(first); row -1: none
}

// differ returns how the statement after differs from that before in more than the ids that the
// plan speaks of.
func (c *comparison) differ() error {
	for _, check := range []func() error{c.frame, c.columns, c.rows, c.lastIDs, c.updates} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// frame compares all but columns and values.
func (c *comparison) frame() error {
	a, b, p := c.before, c.after, c.p
	switch {
	case restore(a.Table) != restore(b.Table) || a.IsReplace != b.IsReplace:
		return differ("another table")
	case a.Priority != b.Priority || a.IgnoreErr != b.IgnoreErr || a.Setlist != b.Setlist || !slices.Equal(a.PartitionNames, b.PartitionNames):
		return differ("other words in front of the values")
	case !slices.EqualFunc(a.TableHints, b.TableHints, func(x, y *ast.TableOptimizerHint) bool { return restore(x) == restore(y) }):
		return differ("other hints")
	case p.Rows != len(a.Lists) || len(a.Lists) != len(b.Lists):
		return differ("%d rows, not %d, and %d with ids", len(a.Lists), p.Rows, len(b.Lists))
	case p.Ignore != a.IgnoreErr:
		return differ("IGNORE")
	case p.Update != (len(a.OnDuplicate) > 0):
		return differ("ON DUPLICATE KEY UPDATE")
	case !p.ReadsLastID && readsLastID(a):
		return differ("it reads LAST_INSERT_ID")
	}
	return nil
}

// columns finds which column after is which before: first those of before in their order, but that
// of the first rule may be gone from its place; then those of rules that were not there, and the
// one that is gone.
func (c *comparison) columns() error {
	if err := c.columnsBefore(); err != nil {
		return err
	}
	after := listed(c.after)
	switch {
	case len(after) == 0 && len(c.before.Columns) > 0:
		return differ("no column list any more")
	case len(after) == 0:
		after = c.names
	}
	w := columnWalk{comparison: c, gone: -1}
	for _, n := range after {
		rule := c.rule(n)
		from, err := w.from(n, rule)
		if err != nil {
			return err
		}
		if rule >= 0 && slices.Contains(c.rules, rule) {
			return differ("a column twice")
		}
		c.from, c.rules = append(c.from, from), append(c.rules, rule)
	}
	if len(w.left()) > 0 || w.gone >= 0 {
		return differ("a column is lost")
	}
	return c.complete()
}

// columnWalk is the walk over the columns after.
type columnWalk struct {
	*comparison
	next int // the next column before
	gone int // the column before that is gone from its place; -1: none
}

// left returns the columns before that were not found yet.
func (w *columnWalk) left() []name { return w.names[w.next:] }

// from returns which column before is n, that of a rule; -1 for a new one.
func (w *columnWalk) from(n name, rule int) (int, error) {
	if left := w.left(); len(left) > 0 && !w.same(left[0], n, rule) && w.rule(left[0]) == 0 && w.gone < 0 {
		w.gone = w.next
		w.next++
	}
	if left := w.left(); len(left) > 0 {
		if !w.same(left[0], n, rule) {
			return -1, differ("columns lost or in another order")
		}
		w.next++
		return w.next - 1, nil
	}
	if rule < 0 {
		return -1, differ("a new column that has no rule")
	}
	if rule > 0 {
		return -1, nil
	}
	from := w.gone
	w.gone = -1
	return from, nil
}

func (c *comparison) columnsBefore() error {
	c.names = listed(c.before)
	if len(c.names) > 0 || len(c.before.Lists[0]) == 0 {
		return nil
	}
	if c.s.Table == nil {
		return differ("no column list")
	}
	for _, column := range c.s.Table.Columns {
		c.names = append(c.names, name{restore(&ast.ColumnName{Name: ast.NewCIStr(column.Name)}), column.Name})
	}
	return nil
}

// rule returns the index of the rule that a column has, or -1.
func (c *comparison) rule(n name) int {
	return slices.IndexFunc(c.s.Rules, func(r *rule.Rule) bool { return strings.EqualFold(r.Column, n.column) })
}

// same reports whether a column after, which has the rule, is that of before. With a rule it may
// lose the name of its table.
func (c *comparison) same(before, after name, rule int) bool {
	return before == after || rule >= 0 && strings.EqualFold(before.column, after.column)
}

// complete checks that no rule is left out, and that the id that may set LAST_INSERT_ID() is behind
// whatever reads it.
func (c *comparison) complete() error {
	for rule := range c.s.Rules {
		if !slices.Contains(c.rules, rule) {
			return differ("no column for a rule")
		}
	}
	first := slices.Index(c.rules, 0)
	// ids read nothing
	reader := slices.ContainsFunc(c.rules[first+1:], func(rule int) bool { return rule < 0 })
	if !c.p.Plain && reader && (c.from[first] < 0 || c.p.ReadsLastID && c.p.Columns[0].Generated > 0) {
		return differ("values behind the id that sets LAST_INSERT_ID()")
	}
	return nil
}

// name is a column as the statement names it, and without its table.
type name struct{ full, column string }

func listed(s *ast.InsertStmt) (names []name) {
	for _, c := range s.Columns {
		names = append(names, name{restore(c), c.Name.O})
	}
	return names
}

// rows compares the values, row by row.
func (c *comparison) rows() error {
	c.reader[0] = -1
	generated := make([]int, len(c.s.Rules))
	for row, b := range c.after.Lists {
		a := c.before.Lists[row]
		if len(b) != len(c.from) || len(a) != len(c.names) {
			return differ("rows of %d values, with ids %d", len(a), len(b))
		}
		for at, from := range c.from {
			var x ast.ExprNode
			if from >= 0 {
				x = a[from]
			}
			if err := c.value(x, row, at, generated); err != nil {
				return err
			}
		}
	}
	for rule, n := range generated {
		if f := c.p.Columns[rule]; n != f.Generated || c.p.Rows-n != f.Explicit+f.Texts+f.Bound {
			return differ("%d ids generated, not %d", n, f.Generated)
		}
	}
	return nil
}

// value compares a value before, nil when there was none, with that at a place after. generated
// counts the ids by rule.
func (c *comparison) value(x ast.ExprNode, row, at int, generated []int) error {
	y, rule := c.after.Lists[row][at], c.rules[at]
	if rule < 0 {
		if restore(x) != restore(y) {
			return differ("another value")
		}
		return nil
	}
	id := c.id
	if c.wide(rule) {
		id = c.wideID
	}
	filled, err := id(x, y, rule, generated[rule])
	if err != nil {
		return err
	}
	if filled {
		generated[rule]++
	}
	if !c.wide(rule) && strings.Contains(restore(y), "LAST_INSERT_ID(") && (filled || restore(x) != restore(y)) {
		if c.reader[0] >= 0 {
			return differ("LAST_INSERT_ID() set twice")
		}
		c.reader = [2]int{row, at}
	}
	return nil
}

// id compares a value for an id before, nil when there was none, with what it became. n ids of the
// rule stand before it.
func (c *comparison) id(x, after ast.ExprNode, rule, n int) (filled bool, err error) {
	may, y := c.generates(x, c.s.Rules[rule]), restore(after)
	if ids := c.ids[rule]; n < len(ids) && may != never {
		first, id := strconv.FormatUint(ids[0], 10), strconv.FormatUint(ids[n], 10)
		switch {
		case y == id:
			return true, nil
		case rule == 0 && n == 0 && y == c.function(first),
			rule == 0 && n > 0 && y == c.function(first)+"+"+strconv.Itoa(int(ids[n]-ids[0])):
			return true, nil
		}
	}
	switch {
	case may == always:
		return false, differ("no id where one is generated")
	case restore(x) == y, may == perhaps && c.said(y):
		return false, nil
	case rule == 0 && len(c.ids[0]) > 0 && y == number(x)+"+0*"+c.function(strconv.FormatUint(c.ids[0][0], 10)):
		return false, nil
	}
	return false, differ("another id")
}

// function is what sets LAST_INSERT_ID() to an id: on MySQL no constant, where it is read too.
func (c *comparison) function(id string) string {
	if c.p.ReadsLastID && !c.s.Mode.MariaDB {
		name := "`" + strings.ReplaceAll(c.s.Rules[0].Column, "`", "``") + "`"
		id += "*(" + name + "<=>" + name + ")"
	}
	return "LAST_INSERT_ID(" + id + ")"
}

// number returns the digits of the positive number that x is, also if it is written in quotes.
func number(x ast.ExprNode) string {
	text := restore(x)
	if v, ok := x.(*driver.ValueExpr); ok && v.Kind() == driver.KindString {
		text = v.GetString()
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, 64)
	if err != nil {
		return text
	}
	return strconv.FormatUint(n, 10)
}

// lastIDs checks which row sets LAST_INSERT_ID(): none of a plain plan; else the last one that gets
// an id, or the last of all, when it has its own and the statement reads the value from before.
func (c *comparison) lastIDs() error {
	row := c.reader[0]
	if c.p.Plain || c.p.Columns[0].Generated == 0 {
		if row >= 0 {
			return differ("LAST_INSERT_ID() is set")
		}
		return nil
	}
	if row < 0 {
		return differ("LAST_INSERT_ID() is not set")
	}
	at := c.reader[1]
	if strings.Contains(restore(c.after.Lists[row][at]), "+0*LAST_INSERT_ID(") {
		if row != c.p.Rows-1 {
			return differ("LAST_INSERT_ID() is set in front of the last row")
		}
		return nil
	}
	for later := row + 1; later < c.p.Rows; later++ {
		x, from := ast.ExprNode(nil), c.from[at]
		if from >= 0 {
			x = c.before.Lists[later][from]
		}
		if x == nil || restore(x) != restore(c.after.Lists[later][at]) {
			return differ("LAST_INSERT_ID() is set in front of the last id")
		}
		if c.p.ReadsLastID {
			return differ("rows that read LAST_INSERT_ID() behind the one that sets it")
		}
	}
	return nil
}

// updates compares the lists of ON DUPLICATE KEY UPDATE.
func (c *comparison) updates() error {
	a, b := c.before.OnDuplicate, c.after.OnDuplicate
	if c.p.Assigned {
		if len(b) == 0 {
			return differ("no assignment of the id")
		}
		last := b[len(b)-1]
		b = b[:len(b)-1]
		t, id := tableName(c.after).Name.O, c.s.Rules[0].Column
		if last.Column.Table.O != t || last.Column.Schema.O != "" || !strings.EqualFold(last.Column.Name.O, id) ||
			restore(last.Expr) != strings.ReplaceAll("IF(LAST_INSERT_ID(@), @, @)", "@", restore(last.Column)) {
			return differ("no assignment of the id at the end of the update")
		}
	}
	if !slices.EqualFunc(a, b, func(x, y *ast.Assignment) bool { return restore(x) == restore(y) }) {
		return differ("another update")
	}
	return nil
}

// said reports whether the server gave y as the value of an expression for an id.
func (c *comparison) said(y string) bool {
	return slices.ContainsFunc(c.s.Values, func(v rewriter.Value) bool {
		return v.Known && (y == strconv.FormatUint(v.Number, 10) || y == strconv.FormatInt(int64(v.Number), 10))
	})
}

// chance says whether a value for an id makes the server generate one.
type chance int

const (
	never chance = iota
	perhaps
	always
)

// generates returns what a value means for an id of the rule's column; nil is none.
func (c *comparison) generates(x ast.ExprNode, rule *rule.Rule) chance {
	switch x := x.(type) {
	case nil:
		return always
	case *ast.DefaultExpr:
		if x.Name == nil || strings.EqualFold(x.Name.Name.O, rule.Column) {
			return c.zero()
		}
	case *driver.ValueExpr:
		return c.literal(x)
	}
	return c.other()
}

// zero is generates for 0.
func (c *comparison) zero() chance {
	if c.s.Mode.NoAutoValueOnZero {
		return never
	}
	return always
}

// other is generates for what only the server can tell.
func (c *comparison) other() chance {
	if len(c.s.Values) > 0 {
		return perhaps
	}
	return never
}

func (c *comparison) literal(x *driver.ValueExpr) chance {
	text := restore(x)
	switch {
	case text == "NULL":
		return always
	case text == "TRUE", text == "FALSE":
		return c.other()
	}
	switch x.Kind() {
	case driver.KindInt64, driver.KindUint64:
		if text == "0" {
			return c.zero()
		}
		return never
	case driver.KindString:
		if x.GetString() == "0" && c.other() == never {
			return c.zero()
		}
	}
	return c.other()
}

// readsLastID reports whether some expression of the statement reads the session's last insert id.
func readsLastID(s *ast.InsertStmt) bool {
	v := new(lastIDVisitor)
	s.Accept(v)
	return v.found
}

type lastIDVisitor struct{ found bool }

// Enter implements ast.Visitor.
func (v *lastIDVisitor) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.FuncCallExpr:
		v.found = v.found || n.FnName.L == "last_insert_id"
	case *ast.VariableExpr:
		name := strings.ToLower(n.Name)
		v.found = v.found || n.IsSystem && (name == "last_insert_id" || name == "identity")
	}
	return n, v.found
}

// Leave implements ast.Visitor.
func (v *lastIDVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }
