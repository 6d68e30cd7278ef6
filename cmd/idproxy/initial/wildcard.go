package initial

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"idproxy/pattern"
)

const (
	// leastGroup is how many tables a wildcard is for, at least: fewer are named one by one.
	leastGroup = 3
	// mostExceptions is how many tables of other sources a wildcard has at most, as a share of its
	// own: one in so many. They have rules in front of it.
	mostExceptions = 4
)

// family are tables whose ids are in columns of one name, on the same listeners. Rules of several
// families never match the same table, because a table has one id column.
type family struct {
	column, listeners string
}

// rules makes the rules of a family: tables that are named one by one come first, then wildcards.
// all are the tables of all servers, and a wildcard matches none that is not of the family. knows is
// whether all that a wildcard matches are among them.
func (f family) rules(sources map[name]string, all []name, knows func(pattern.Table) bool) (list []Rule) {
	g := &grouping{sources: sources, all: all, knows: knows, left: maps.Clone(sources), single: map[name]bool{}}
	var wild []Rule
	candidates := g.candidates()
	for _, exceptions := range []bool{false, true} {
		for _, c := range candidates {
			if source, n := g.take(c, exceptions); n > 0 {
				wild = append(wild, f.rule(c, source, n))
			}
		}
	}
	for n := range g.left {
		g.single[n] = true
	}
	for _, n := range slices.SortedFunc(maps.Keys(g.single), name.compare) {
		list = append(list, f.rule(pattern.Table{Schema: n.schema, Name: n.table}, sources[n], 1))
	}
	return append(list, wild...)
}

func (f family) rule(t pattern.Table, source string, tables int) Rule {
	r := Rule{Table: t.Schema + "." + t.Name, Column: f.column, Source: source, Tables: tables}
	if f.listeners != "" {
		r.Listeners = strings.Split(f.listeners, "\n")
	}
	return r
}

// grouping covers the tables of a family with patterns.
type grouping struct {
	sources map[name]string
	all     []name
	knows   func(pattern.Table) bool
	left    map[name]string // those without a rule yet
	single  map[name]bool   // those that are named, in front of a wildcard that matches them
}

// candidates are patterns for several tables, the one for most first, of two the narrower.
func (g *grouping) candidates() []pattern.Table {
	counts := map[pattern.Table]int{}
	for n := range g.sources {
		for _, c := range candidates(n) {
			counts[c]++
		}
	}
	list := slices.DeleteFunc(slices.Collect(maps.Keys(counts)), func(t pattern.Table) bool { return counts[t] < leastGroup || !g.knows(t) })
	slices.SortFunc(list, func(a, b pattern.Table) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(literal(b), literal(a)),
			strings.Compare(a.Schema, b.Schema), strings.Compare(a.Name, b.Name))
	})
	return list
}

// literal is how many characters of a pattern are no wildcards.
func literal(t pattern.Table) int { return len(strings.ReplaceAll(t.Schema+t.Name, "*", "")) }

// take uses a pattern for the tables left that it matches, if they are enough and of one source, but
// for exceptions where there may be some. It returns the source, and how many tables get it.
func (g *grouping) take(c pattern.Table, exceptions bool) (source string, n int) {
	bySource := map[string][]name{}
	matched := 0
	var unsure []name // that it matches on servers alone which compare names without regard to case
	for of, source := range g.left {
		switch {
		case c.Match(of.schema, of.table, false):
			bySource[source] = append(bySource[source], of)
		case c.Match(of.schema, of.table, true):
			unsure = append(unsure, of)
			matched++
		}
	}
	for of, tables := range bySource {
		matched += len(tables)
		if len(tables) > n || len(tables) == n && of < source {
			source, n = of, len(tables)
		}
	}
	other := matched - n
	if n < leastGroup || other*mostExceptions > n || other > 0 && !exceptions || slices.ContainsFunc(g.all, func(of name) bool {
		return g.sources[of] == "" && c.Match(of.schema, of.table, true)
	}) {
		return "", 0
	}
	for _, t := range unsure {
		delete(g.left, t)
		g.single[t] = true
	}
	for of, tables := range bySource {
		for _, t := range tables {
			delete(g.left, t)
			if of != source {
				g.single[t] = true
			}
		}
	}
	return source, n
}

// candidates are the patterns that a table may be one of many of. No pattern is for all schemas:
// the next one may be anybody's.
func candidates(n name) (list []pattern.Table) {
	for _, schema := range append(beginnings(n.schema), n.schema) {
		for _, table := range append(beginnings(n.table), n.table, "*") {
			if c := (pattern.Table{Schema: schema, Name: table}); !c.Exact() {
				list = append(list, c)
			}
		}
	}
	return list
}

// beginnings are the parts of a name that end in "_", or before digits, with a wildcard behind.
func beginnings(s string) (list []string) {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	for i := 1; i < len(s); i++ {
		if s[i-1] == '_' || digit(s[i]) && !digit(s[i-1]) {
			list = append(list, s[:i]+"*")
		}
	}
	return list
}
