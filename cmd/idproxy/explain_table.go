package main

import (
	"errors"
	"fmt"
	"slices"

	driver "github.com/go-sql-driver/mysql"

	"idproxy/proxy"
	"idproxy/rewriter"
	"idproxy/rule"
)

// concern is what rules mean to a table.
type concern struct {
	table *rule.Table  // nil: offline
	rules []*rule.Rule // those that concern it
	left  string       // why none does
	view  bool         // it is a view that lacks their columns: what it shows may have them
	said  bool         // what becomes of an INSERT was said
}

// concern asks for the columns of a table that rules name, and looks which of them concern it.
func (e *explainer) concern(sql []byte, t rewriter.Name, rules []*rule.Rule) (c concern, err error) {
	if e.describe == nil {
		return concern{rules: rules}, nil
	}
	schema := string(t.Schema)
	if schema == "" {
		schema = string(e.schema)
	}
	c.table, err = e.describe(schema, string(t.Table), rules)
	if refused, ok := errors.AsType[*driver.MySQLError](err); ok && proxy.NoTable(refused.Number) {
		return concern{left: "the server has no such table"}, nil
	}
	if err != nil {
		return c, fmt.Errorf("rule %s: columns of %s.%s: %w", rules[0], schema, t.Table, err)
	}
	c.apply(e, sql, rules)
	if c.rules != nil || c.said || !slices.ContainsFunc(rules, func(r *rule.Rule) bool { return c.table.Find(r.Column) == nil }) {
		return c, nil
	}
	text, err := e.view(schema, string(t.Table))
	if text != nil {
		c.rules, c.view = rules, true
	}
	return c, err
}

// apply sorts out the rules whose columns the table has.
func (c *concern) apply(e *explainer, sql []byte, rules []*rule.Rule) {
	for _, r := range rules {
		if why := r.Unfit(c.table); !r.Exact() && !why.None() {
			c.left = fmt.Sprintf("%v, and rule %s is a wildcard", why, r)
			continue
		}
		column, _, ok := c.table.Column(r.Column)
		why := ""
		switch {
		case !ok:
			why = "the table has no column " + r.Column
		case column.Form(r.IDs) != rule.FormNone:
		case r.IDs.Wide():
			why = "column " + r.Column + " has the type " + column.Type + ", which cannot hold the ids of source " + r.Source + " (" + r.IDs.Columns() + " can)"
		default:
			why = "the type of column " + r.Column + " cannot hold generated ids exactly"
		}
		switch {
		case why == "":
			c.rules = append(c.rules, r)
			continue
		case rules[0].Observe:
			e.say(sql, "forwarded; under enforce: REFUSED by rule %s, because %s", r, why)
		default:
			e.reject(r, why)
		}
		c.rules, c.said = nil, true
		return
	}
}
