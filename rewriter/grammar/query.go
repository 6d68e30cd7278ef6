package grammar

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"idproxy/rewriter"
)

// noLimit is what a query gets that stands inside another.
const noLimit = " LIMIT 18446744073709551615"

// numbering is a made-up one for each rule of a statement.
func numbering(p *rewriter.Plan) *rewriter.Numbering {
	n := &rewriter.Numbering{LastID: 5}
	for i := range p.Columns {
		run := rewriter.Run{First: firstID + uint64(i)*perRule, Count: 1000}
		n.Columns = append(n.Columns, rewriter.Numbers{Runs: []rewriter.Run{run}, Stride: 1})
	}
	return n
}

// compareQuery compares a statement whose rows come from a query with each way to number these.
func compareQuery(s *rewriter.Statement, p *rewriter.Plan, before *ast.InsertStmt) error {
	can, must := p.CanBeside()
	for _, beside := range []bool{false, true} {
		if beside && !can || !beside && must {
			continue
		}
		n := numbering(p)
		n.Beside = beside
		after, err := parse(string(p.AppendSelect(nil, s.Text, n)), s.Mode)
		// TiDB's grammar lacks much of what may stand in a query; what the servers cannot read they
		// refuse
		if err != nil {
			return errUnread
		}
		c := comparison{s: s, p: p, before: before, after: after}
		for _, check := range []func() error{c.frame, c.queryColumns, c.updates} {
			if err := check(); err != nil {
				return err
			}
		}
		if beside {
			err = c.beside()
		} else {
			err = c.around()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// queryColumns finds which column of the statement is of which rule: those of before in their
// order, then those of rules that were not there.
func (c *comparison) queryColumns() error {
	c.names = listed(c.before)
	if len(c.names) == 0 {
		if c.s.Table == nil {
			return differ("no column list")
		}
		for _, column := range c.s.Table.Columns {
			c.names = append(c.names, name{column: column.Name})
		}
	}
	after := listed(c.after)
	if len(after) == 0 {
		after = c.names
	}
	if len(after) < len(c.names) {
		return differ("fewer columns")
	}
	for i, n := range after {
		rule := c.rule(n)
		switch {
		case i < len(c.names) && !strings.EqualFold(c.names[i].column, n.column):
			return differ("columns lost or in another order")
		case i >= len(c.names) && rule < 0:
			return differ("a new column that has no rule")
		case rule >= 0 && slices.Contains(c.rules, rule):
			return differ("a column twice")
		}
		c.rules = append(c.rules, rule)
	}
	for rule := range c.s.Rules {
		if !slices.Contains(c.rules, rule) {
			return differ("no column for a rule")
		}
	}
	return nil
}

// around checks WITH d(a,b) AS (query) SELECT a,b,id FROM (SELECT a,b,counter FROM d) AS e: the
// query is that of before, and each column of it goes where it went.
func (c *comparison) around() error {
	outer, layer, query, err := c.layers()
	if err != nil {
		return err
	}
	given := query.ColNameList
	if len(given) != len(c.names) || len(outer.Fields.Fields) != len(c.rules) || len(layer.Fields.Fields) != len(given)+1 {
		return differ("other columns of the query")
	}
	for i, n := range given {
		if columnOf(layer.Fields.Fields[i]) != n.L {
			return differ("columns of the query in another order")
		}
	}
	for i, rule := range c.rules {
		switch field := outer.Fields.Fields[i]; {
		case rule < 0 && columnOf(field) != given[i].L:
			return differ("another value")
		case rule >= 0 && !hasID(field, rule):
			return differ("no id where one is generated")
		}
	}
	return nil
}

// layers returns the query around all, that inside it, and the statement's own.
func (c *comparison) layers() (outer, layer *ast.SelectStmt, query *ast.CommonTableExpression, err error) {
	outer, ok := c.after.Select.(*ast.SelectStmt)
	if !ok || outer.With == nil || len(outer.With.CTEs) != 1 {
		return nil, nil, nil, differ("another query around that of the statement")
	}
	query = outer.With.CTEs[0]
	if unwrapped(query.Query.Query) != unwrapped(c.before.Select) {
		return nil, nil, nil, differ("another query")
	}
	layer, ok = outer.From.TableRefs.Left.(*ast.TableSource).Source.(*ast.SelectStmt)
	if !ok {
		return nil, nil, nil, differ("other columns of the query")
	}
	return outer, layer, query, nil
}

// hasID reports whether a field has the first id of a rule in it.
func hasID(f *ast.SelectField, rule int) bool {
	return strings.Contains(restore(f), strconv.FormatUint(firstID+uint64(rule)*perRule, 10))
}

// columnOf returns the column that a field is, or nothing.
func columnOf(f *ast.SelectField) string {
	if column, ok := f.Expr.(*ast.ColumnNameExpr); ok {
		return column.Name.Name.L
	}
	return ""
}

// unwrapped prints a query without the parentheses around all of it, and without the LIMIT that it
// got.
func unwrapped(query ast.ResultSetNode) string {
	text := restore(query)
	if i := strings.LastIndex(text, noLimit); i >= 0 {
		text = text[:i] + text[i+len(noLimit):]
	}
	for strings.HasPrefix(text, "(") && closes(text) == len(text)-1 {
		text = text[1 : len(text)-1]
	}
	return text
}

// closes returns the index of the parenthesis that closes the one text begins with.
func closes(text string) int {
	depth, quote := 0, rune(0)
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '`' || c == '\'':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// beside checks SELECT a,b,id FROM ..: what is added to the query are the ids.
func (c *comparison) beside() error {
	query, ok := c.after.Select.(*ast.SelectStmt)
	was, ok2 := c.before.Select.(*ast.SelectStmt)
	if !ok || !ok2 {
		return differ("another query")
	}
	added := len(query.Fields.Fields) - len(was.Fields.Fields)
	if added != len(c.rules)-len(c.names) {
		return differ("other values")
	}
	for i, field := range query.Fields.Fields[len(was.Fields.Fields):] {
		rule := c.rules[len(c.names)+i]
		if !hasID(field, rule) {
			return differ("no id where one is generated")
		}
	}
	query.Fields.Fields = query.Fields.Fields[:len(was.Fields.Fields)]
	query.WindowSpecs = nil
	if unwrapped(query) != unwrapped(was) {
		return differ("another query")
	}
	return nil
}
