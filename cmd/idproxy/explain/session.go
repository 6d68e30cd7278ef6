package explain

import (
	"errors"
	"fmt"
	"slices"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/proxy/decide"
	"idproxy/rewriter"
	"idproxy/rewriter/grammar"
	"idproxy/rule"
)

// session is what decides on the statements of a text besides themselves.
type session struct {
	schema []byte
	rules  *rule.List
	mode   rewriter.Mode // of the server; offline only what every server has
	// Offline these are nil.
	describe func(schema, table string, rules []*rule.Rule) (*rule.Table, error)
	view     func(schema, table string) (definition []byte, err error) // of a table nothing

	second  *grammar.Reader
	verbose bool
	text    []byte // all of it
	next    uint64 // id shown last
}

// rulesOf returns the rules of a table.
func (s *session) rulesOf(t rewriter.Name) []*rule.Rule {
	return s.rules.Match(s.schemaOf(t), t.Table, false)
}

func (s *session) schemaOf(t rewriter.Name) []byte {
	if len(t.Schema) == 0 {
		return s.schema
	}
	return t.Schema
}

// mayName reports whether a text that could not be read may name a table with a rule.
func (s *session) mayName(text []byte) bool {
	return s.rules.MayNameIn(text, s.schema, len(s.schema) > 0)
}

// concern is what rules mean to a table.
type concern struct {
	table *rule.Table  // nil: offline
	rules []*rule.Rule // those that concern it
	left  string       // why none does
	view  bool         // it is a view that lacks their columns: what it shows may have them
	unfit *unfit       // the rule that cannot be in force
}

// unfit is a rule whose column cannot have its ids.
type unfit struct {
	rule *rule.Rule
	why  string
}

// say says what becomes of a statement into a table with such a rule.
func (u *unfit) say(o *Outcome, sql []byte, rules []*rule.Rule) {
	if rules[0].Observe {
		o.forward(sql, "forwarded; under enforce: REFUSED by rule %s, because %s", u.rule, u.why)
		return
	}
	o.reject(u.rule, u.why)
}

// concern asks for the columns of a table that rules name, and looks which of them concern it.
func (s *session) concern(t rewriter.Name, rules []*rule.Rule) (c concern, err error) {
	if s.describe == nil {
		return concern{rules: rules}, nil
	}
	schema := string(s.schemaOf(t))
	c.table, err = s.describe(schema, string(t.Table), rules)
	if refused, ok := errors.AsType[*driver.MySQLError](err); ok && decide.NoTable(refused.Number) {
		return concern{left: "the server has no such table"}, nil
	}
	if err != nil {
		return c, fmt.Errorf("rule %s: columns of %s.%s: %w", rules[0], schema, t.Table, err)
	}
	c.apply(rules)
	if c.rules != nil || c.unfit != nil || !slices.ContainsFunc(rules, func(r *rule.Rule) bool { return c.table.Find(r.Column) == nil }) {
		return c, nil
	}
	text, err := s.view(schema, string(t.Table))
	if text != nil {
		c.rules, c.view = rules, true
	}
	return c, err
}

// apply sorts out the rules whose columns the table has.
func (c *concern) apply(rules []*rule.Rule) {
	for _, r := range rules {
		if why := r.Unfit(c.table); !r.Exact() && !why.None() {
			c.left = fmt.Sprintf("%v, and rule %s is a wildcard", why, r)
			continue
		}
		if why := cannotHold(c.table, r); why != "" {
			c.rules, c.unfit = nil, &unfit{r, why}
			return
		}
		c.rules = append(c.rules, r)
	}
}

// cannotHold says why the column of a rule cannot have its ids, and "" when it can.
func cannotHold(table *rule.Table, r *rule.Rule) string {
	column, _, ok := table.Column(r.Column)
	switch {
	case !ok:
		return "the table has no column " + r.Column
	case column.Form(r.IDs) != rule.FormNone:
		return ""
	case r.IDs.Wide():
		return "column " + r.Column + " has the type " + column.Type + ", which cannot hold the ids of source " + r.Source + " (" + r.IDs.Columns() + " can)"
	}
	return "the type of column " + r.Column + " cannot hold generated ids exactly"
}
