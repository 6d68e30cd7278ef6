package config

import (
	"slices"
	"strings"
)

// splitTables takes the pattern of every rule apart at its dot.
func (d *decoder) splitTables(c *Config) {
	for i := range c.Rules {
		r := &c.Rules[i]
		at := d.vals[item("rules", i)+"/table"]
		pattern := r.Table
		schema, table, dot := strings.Cut(pattern, ".")
		r.Schema, r.Table = schema, table
		switch {
		case pattern == "":
			continue // missing or refused
		case strings.ContainsAny(pattern, "`\"'"):
			d.fail(at, "\"table\" must be written without quotes around the names, got %s", quote(pattern))
		case !dot:
			d.fail(at, "\"table\" must be schema.table such as shop.orders or \"*.orders\", got %s", quote(pattern))
		case schema == "" || table == "" || strings.Contains(table, "."):
			d.fail(at, "\"table\" must be one schema and one table with one dot between them such as shop.orders, got %s", quote(pattern))
		default:
			continue
		}
		r.Schema, r.Table = "", ""
	}
}

func (d *decoder) checkRules(c *Config) {
	for i := range c.Rules {
		r, path := &c.Rules[i], item("rules", i)
		if r.Source != "" && c.Source(r.Source) == nil {
			d.fail(d.vals[path+"/source"], "there is no source %s: %s", quote(r.Source), available("sources", sourceNames(c)))
		}
		if strings.ContainsAny(r.Column, "*?.`") {
			d.fail(d.vals[path+"/column"], "\"column\" must be the plain name of one column, without wildcards, dots and quotes, got %s", quote(r.Column))
		}
		if r.Gene != nil {
			d.checkGene(c, r, path)
		}
		d.checkAdvance(c, r, path)
		d.checkRuleListeners(c, r, path)
		if r.Schema != "" {
			d.checkEarlier(c, i)
		}
	}
}

// checkAdvance refuses to move a source on that has no order to move in.
func (d *decoder) checkAdvance(c *Config, r *Rule, path string) {
	s := c.Source(r.Source)
	if r.Explicit != ExplicitAdvance || s == nil {
		return
	}
	inOrder := s.UUIDv7 == nil && s.ObjectID == nil
	if s.Snowflake != nil {
		l, ok := parseLayout(s.Snowflake.Layout)
		inOrder = !ok || l.ascends
	}
	if !inOrder {
		d.fail(d.vals[path+"/explicit"], "\"explicit\" cannot be advance here: the ids of source %s are in no order that it could be moved along; use keep or reject", quote(r.Source))
	}
}

func (d *decoder) checkRuleListeners(c *Config, r *Rule, path string) {
	if d.has(path+"/listeners") && len(r.Listeners) == 0 && d.sound(path+"/listeners") {
		d.fail(d.vals[path+"/listeners"], "\"listeners\" is empty: name at least one, or remove the key for all")
	}
	var known []string
	for _, l := range c.Listeners {
		known = append(known, l.Name)
	}
	for j, name := range r.Listeners {
		switch at := d.vals[item(path+"/listeners", j)]; {
		case name == "": // refused
		case !slices.Contains(known, name):
			d.fail(at, "there is no listener %s: %s", quote(name), available("listeners", known))
		case slices.Contains(r.Listeners[:j], name):
			d.fail(at, "listener %s is named twice: remove one", quote(name))
		}
	}
}

// checkEarlier compares a rule with those before it: it must be able to apply.
func (d *decoder) checkEarlier(c *Config, i int) {
	r, at := &c.Rules[i], d.vals[item("rules", i)+"/table"]
	for j := range c.Rules[:i] {
		e := &c.Rules[j]
		if e.Schema == "" || e.Column == "" || r.Column == "" || !e.overlaps(r, c.Listeners) {
			continue
		}
		if strings.EqualFold(e.Column, r.Column) && covers(e.Schema, r.Schema) && covers(e.Table, r.Table) && e.everywhere(r, c.Listeners) {
			d.fail(at, "this rule can never apply: the rule in line %d comes first and matches the same; remove one of them, or put the narrower first", e.Pos.Line)
			return
		}
	}
}

// overlaps reports whether some listener has both rules.
func (r *Rule) overlaps(other *Rule, all []Listener) bool {
	return slices.ContainsFunc(all, func(l Listener) bool { return r.On(l.Name) && other.On(l.Name) })
}

// everywhere reports whether every listener that has the other rule has this one.
func (r *Rule) everywhere(other *Rule, all []Listener) bool {
	return !slices.ContainsFunc(all, func(l Listener) bool { return other.On(l.Name) && !r.On(l.Name) })
}

// covers reports whether every name that narrow matches is matched by wide: the
// glob wide run over the text of narrow, whose own * only a * of wide may take, and
// whose ? only a * or ?.
func covers(wide, narrow string) bool {
	star, mark := -1, 0 // the last * of wide, and how far of narrow it has taken
	w, n := 0, 0
	for n < len(narrow) {
		switch {
		case w < len(wide) && wide[w] == '*':
			star, mark = w, n
			w++
		case w < len(wide) && narrow[n] != '*' && (wide[w] == '?' || wide[w] == narrow[n]):
			w, n = w+1, n+1
		case star >= 0:
			mark++
			w, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(wide[w:], "*") == ""
}

func sourceNames(c *Config) []string {
	var names []string
	for _, s := range c.Sources {
		names = append(names, s.Name)
	}
	return names
}
