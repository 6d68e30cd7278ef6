package initial

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"idproxy/cmd/idproxy/migrate"
	"idproxy/config"
	"idproxy/pattern"
	"idproxy/plural"
)

// Plan is what a configuration will say.
type Plan struct {
	Options
	survey   *Survey
	Sources  []Source
	Rules    []Rule
	LeftOut  []LeftOut
	Warnings []string // what the reader of the file must know of how it was read
	tables   int      // that get ids
}

// Source is a source with a series for each of its tables.
type Source struct {
	Name   string
	Start  uint64
	Last   uint64 // 0: any
	Tables int
	top    uint64 // the greatest id of all of them
	of     name   // the table that has it
}

// Rule is a rule of the file.
type Rule struct {
	Table, Column, Source string
	Listeners             []string // nil: all
	Tables                int      // that it matches
}

// LeftOut is a table without a rule.
type LeftOut struct {
	Table, Why string
	Unread     bool // because something of it could not be asked
}

// found is a table that gets ids.
type found struct {
	of      name
	column  column
	top     uint64
	servers []int // places of the shards that have it
}

// Plan decides what gets ids, and from where on.
func (s *Survey) Plan(o Options) *Plan {
	p := &Plan{Options: o, survey: s}
	s.unite()
	all := map[name]bool{}
	for _, server := range s.said {
		for of := range server.tables {
			all[of] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(all), name.compare)
	byRoom := map[room]*Source{}
	families := map[family]map[name]string{}
	for _, of := range names {
		t, out := s.compare(of, o)
		if out != nil {
			p.LeftOut = append(p.LeftOut, *out)
			continue
		}
		most, _ := o.limit(&t.column)
		at := room{startAbove(t.top, most), o.last(&t.column)}
		from := byRoom[at]
		if from == nil {
			from = &Source{Name: at.name(), Start: at.start, Last: at.last, top: t.top, of: of}
			byRoom[at] = from
		}
		if t.top > from.top {
			from.top, from.of = t.top, of
		}
		from.Tables++
		in := family{t.column.name, strings.Join(s.listeners(t), "\n")}
		if families[in] == nil {
			families[in] = map[name]string{}
		}
		families[in][of] = from.Name
		p.tables++
	}
	for _, at := range slices.SortedFunc(maps.Keys(byRoom), func(a, b room) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.last, b.last)) }) {
		p.Sources = append(p.Sources, *byRoom[at])
	}
	for _, in := range slices.SortedFunc(maps.Keys(families), func(a, b family) int {
		return cmp.Or(strings.Compare(a.column, b.column), strings.Compare(a.listeners, b.listeners))
	}) {
		p.Rules = append(p.Rules, in.rules(families[in], names, p.knows)...)
	}
	p.warn(families)
	return p
}

// room is where the ids of a source lie.
type room struct{ start, last uint64 }

func (r room) name() string {
	if r.last == 0 {
		return "ids_" + short(r.start)
	}
	return "ids_" + short(r.start) + "_" + short(r.last+1)
}

// limit is the greatest id that a source may give for a column, and what sets it.
func (o Options) limit(c *column) (most uint64, by string) {
	if last := o.last(c); last > 0 {
		return last, fmt.Sprintf("column %s is %s, and its source ends at last: %d, above which the servers' own counters go", c.name, c.declared(), last)
	}
	return c.most(), fmt.Sprintf("column %s is %s, which holds ids up to %d", c.name, c.declared(), c.most())
}

// last is the greatest id of a source for a column, above which the servers' own counters go while
// tables move; 0: there are none.
func (o Options) last(c *column) uint64 {
	if o.Switch == "" {
		return 0
	}
	return migrate.Last(c.most())
}

// listeners names those that have a table; nil: all.
func (s *Survey) listeners(t *found) (list []string) {
	if len(t.servers) == len(s.Shards) {
		return nil
	}
	for _, i := range t.servers {
		list = append(list, s.Shards[i].Name)
	}
	return list
}

// compare compares a table of all servers, and returns it, or why it is left out.
func (s *Survey) compare(of name, o Options) (*found, *LeftOut) {
	t := &found{of: of}
	out := func(unread bool, format string, args ...any) (*found, *LeftOut) {
		return nil, &LeftOut{of.String(), fmt.Sprintf(format, args...), unread}
	}
	if why := s.unnameable(of, o); why != "" {
		return out(false, "%s", why)
	}
	reasons := map[string]string{} // why it has no id column, and the first shard that says so
	var unseen []int               // the shards that may have it without a word
	for i, server := range s.said {
		one := server.tables[of]
		if one == nil {
			if !server.On(of.schema, "SELECT") {
				unseen = append(unseen, i)
			}
			continue
		}
		c, why := one.id()
		if why != "" {
			reasons[why] = s.Shards[i].Name
			continue
		}
		if one.unread != nil {
			return out(true, "MAX(%s) on %s is not known: %v", c.name, s.Shards[i].Name, one.unread)
		}
		if len(t.servers) > 0 && (!strings.EqualFold(c.name, t.column.name) || c.declared() != t.column.declared()) {
			return out(false, "the servers differ: column %s %s on %s, %s %s on %s", t.column.name, t.column.declared(), s.Shards[t.servers[0]].Name,
				c.name, c.declared(), s.Shards[i].Name)
		}
		if t.servers = append(t.servers, i); len(t.servers) == 1 {
			t.column = c
		}
		t.top = max(t.top, one.top)
	}
	switch why := slices.Sorted(maps.Keys(reasons)); {
	case len(t.servers) == 0:
		return out(false, "%s", strings.Join(why, "; "))
	case len(why) > 0:
		return out(false, "the servers differ: column %s gets ids on %s, and on %s: %s", t.column.name, s.Shards[t.servers[0]].Name, reasons[why[0]], why[0])
	}
	if why := unwritable(t.column.name); why != "" {
		return out(false, "%s", why)
	}
	if len(unseen) > 0 {
		i := unseen[0]
		server := s.said[i]
		return out(true, "%s may have it, too, and account %s cannot see that: GRANT SELECT ON %s.* TO %s there, also where there is no such schema",
			s.Shards[i].Name, server.Account, server.Granted(of.schema), server.Account)
	}
	if o.Switch != "" && o.last(&t.column) == 0 {
		return out(false, "column %s is %s, which has no room for the servers' own counters above the ids of idproxy: make it BIGINT", t.column.name, t.column.declared())
	}
	if most, by := o.limit(&t.column); startAbove(t.top, most) == 0 {
		if t.column.kind == "bigint" {
			return out(false, "%s: above its %d and room for a tenth more, fewer than %d are left", by, t.top, uint64(leastLeft))
		}
		return out(false, "%s: above its %d and room for a tenth more, fewer than %d are left: make it BIGINT", by, t.top, uint64(leastLeft))
	}
	return t, nil
}

// unnameable says why no rule of a source can name a table.
func (s *Survey) unnameable(of name, o Options) (why string) {
	whole := of.schema + of.table
	switch {
	case of.schema == o.database():
		return "it is of the database that idproxy keeps its state in"
	case strings.ContainsAny(whole, ".*?"):
		return "its name has a dot or a wildcard, which rules do not have in names"
	case config.Quoted(of.schema) || config.Quoted(of.table):
		return "its name begins and ends with a quote, which rules do not have around names"
	case s.unclear[pattern.Fold(of.String())]:
		return "the servers differ: some take names in capitals for the same, and others have tables of both names"
	}
	return ""
}

// unwritable says why no rule can name a column.
func unwritable(column string) (why string) {
	if strings.ContainsAny(column, ".*?`") {
		return fmt.Sprintf("the name of column %s has a dot, a wildcard or a quote, which rules do not have in names", column)
	}
	return ""
}

const (
	leastRoom = 100_000   // ids between the greatest and the start, at least
	leastLeft = 1_000_000 // ids that a column must have left above the start
)

// startAbove is where series begin above an id. There is room for a tenth of all ids, and at least
// leastRoom: rows that are stored while the proxies come into use. The start is rounded up to 1, 2 or
// 5 and zeros, so that few sources are enough, or to two or three digits, or not
// at all, where a column that holds most has no room for that. It is 0 where there is no room.
func startAbove(top, most uint64) uint64 {
	least := top + max(top/10, leastRoom)
	if least < top || most < leastLeft {
		return 0
	}
	unit := uint64(1)
	for unit <= least/10 {
		unit *= 10
	}
	for _, to := range []struct{ digit, unit uint64 }{{2, unit}, {5, unit}, {10, unit}, {least/(unit/10) + 1, unit / 10}, {least/(unit/100) + 1, unit / 100}, {least + 1, 1}} {
		if to.digit > math.MaxUint64/to.unit {
			continue
		}
		if start := to.digit * to.unit; start > least && start <= most-leastLeft {
			return start
		}
	}
	return 0
}

// short writes a start as part of a name: 200k, 5m.
func short(n uint64) string {
	for _, unit := range []struct {
		of   uint64
		name string
	}{{1e15, "p"}, {1e12, "t"}, {1e9, "g"}, {1e6, "m"}, {1e3, "k"}} {
		if n%unit.of == 0 {
			return strconv.FormatUint(n/unit.of, 10) + unit.name
		}
	}
	return strconv.FormatUint(n, 10)
}

// Tables is how many tables get ids.
func (p *Plan) Tables() int { return p.tables }

// Partial reports whether something could not be asked.
func (p *Plan) Partial() bool {
	return slices.ContainsFunc(p.LeftOut, func(l LeftOut) bool { return l.Unread })
}

// knows reports whether all tables that a pattern matches were read.
func (p *Plan) knows(t pattern.Table) bool {
	if len(p.Schemas) > 0 && strings.ContainsAny(t.Schema, "*?") {
		return false
	}
	return !slices.ContainsFunc(p.survey.said, func(s *said) bool { return !s.Sees(t) })
}

// warn says what may have been missed, and what the file needs.
func (p *Plan) warn(families map[family]map[name]string) {
	if len(p.Schemas) > 0 {
		p.Warnings = append(p.Warnings, fmt.Sprintf("only tables of schemas %s were read: those of others have no rule", strings.Join(p.Schemas, ", ")))
	}
	for _, schema := range p.Schemas {
		if !slices.ContainsFunc(p.survey.said, func(s *said) bool { return s.has(schema) }) {
			p.Warnings = append(p.Warnings, fmt.Sprintf("no server shows a table of schema %s", schema))
		}
	}
	for i, server := range p.survey.said {
		if !server.Everywhere("SELECT") {
			p.Warnings = append(p.Warnings, fmt.Sprintf("on %s, account %s has no SELECT ON *.*: tables that it may not see were not read, and have no rule",
				p.survey.Shards[i].Name, server.Account))
		}
	}
	p.warnOfParts(families)
	if p.tables == 0 && !p.Partial() {
		p.Warnings = append(p.Warnings, "no table gets ids: no server shows one with an AUTO_INCREMENT column that could, or, with --integer-keys, an integer as its primary key")
	}
}

// warnOfParts says of tables whose names differ by numbers only that each has a series: they may be
// parts of one table.
func (p *Plan) warnOfParts(families map[family]map[name]string) {
	parts := map[string][]name{}
	for _, tables := range families {
		for of := range tables {
			without := digits.ReplaceAllString(of.String(), "0")
			parts[without] = append(parts[without], of)
		}
	}
	first, n := "", 0
	for of, tables := range parts {
		if len(tables) > 1 {
			n++
			if first == "" || of < first {
				first = of
			}
		}
	}
	if n == 0 {
		return
	}
	some := slices.SortedFunc(slices.Values(parts[first]), name.compare)
	p.Warnings = append(p.Warnings, fmt.Sprintf("%s and %s have a series each, and get the same ids. So have all tables whose names differ by numbers, of %s in all. "+
		"Where these are parts of one table, give their rule a source of its own, with key: NAME instead of {schema} and {table}, and start above the greatest id of all parts", some[0], some[1], plural.Of(n, "name")))
}

var digits = regexp.MustCompile(`[0-9]+`)
