package config

import (
	"slices"
	"strings"

	"idproxy/pattern"
)

// Quoted reports whether a name has quotes around it.
func Quoted(name string) bool {
	return len(name) > 1 && strings.IndexByte("`\"'", name[0]) >= 0 && name[len(name)-1] == name[0]
}

// splitTables takes the pattern of every rule apart at its dot.
func splitTables(d *document, c *Config) {
	for i := range c.Rules {
		r := &c.Rules[i]
		at := d.vals[item("rules", i)+"/table"]
		pattern := r.Table
		schema, table, dot := strings.Cut(pattern, ".")
		r.Schema, r.Table = schema, table
		switch {
		case pattern == "":
			continue // missing or refused
		case Quoted(pattern) || Quoted(schema) || Quoted(table):
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

func checkRules(d *document, c *Config) {
	sources := map[string]*Source{}
	var names []string
	for i := range c.Sources {
		sources[c.Sources[i].Name] = &c.Sources[i]
		names = append(names, c.Sources[i].Name)
	}
	before := newEarlierRules(c.Listeners)
	for i := range c.Rules {
		r, path := &c.Rules[i], item("rules", i)
		source := sources[r.Source]
		if r.Source != "" && source == nil {
			d.fail(d.vals[path+"/source"], "there is no source %s: %s", quote(r.Source), available("sources", names))
		}
		if strings.ContainsAny(r.Column, "*?.`") {
			d.fail(d.vals[path+"/column"], "\"column\" must be the plain name of one column, without wildcards, dots and quotes, got %s", quote(r.Column))
		}
		if r.Gene != nil {
			checkGene(d, c, r, source, path)
		}
		checkAdvance(d, r, source, path)
		checkSwitch(d, c, r, source, path)
		checkRuleListeners(d, c, r, path)
		if first := before.add(r); first != nil {
			d.fail(d.vals[path+"/table"], "this rule can never apply: the rule in line %d comes first and matches the same; remove one of them, or put the narrower first", first.Pos.Line)
		}
	}
}

// checkSwitch looks whether a store keeps the switch of a rule: that of the rule's source, and one for
// all rules that have it.
func checkSwitch(d *document, c *Config, r *Rule, s *Source, path string) {
	at, name := d.vals[path+"/mode/switch"], r.Mode.Switch
	if name == "" || s == nil || d.failedAt(at) {
		return
	}
	st := c.Store(s.StoreName())
	switch {
	case !validName(name):
		d.fail(at, "%s is not a name: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit", quote(name))
	case s.StoreName() == "":
		d.fail(at, "source %s has no store that could keep switch %s: use enforce or observe", quote(s.Name), quote(name))
	case st != nil && !st.KeepsSwitches():
		d.fail(at, "store %s of source %s keeps no switches: a mysql store of one dsn and without \"table\", an etcd and a file store do", quote(st.Name), quote(s.Name))
	case st != nil && c.SwitchStore(name) != st:
		d.fail(at, "switch %s is in store %s already, by a rule above: rules of one switch need sources of one store; choose another name", quote(name), quote(c.SwitchStore(name).Name))
	}
}

// checkAdvance refuses to move a source on that has no order to move in.
func checkAdvance(d *document, r *Rule, s *Source, path string) {
	if r.Explicit == ExplicitAdvance && s != nil && !s.ordered() {
		d.fail(d.vals[path+"/explicit"], "\"explicit\" cannot be advance here: the ids of source %s are in no order that it could be moved along; use keep or reject", quote(r.Source))
	}
}

func checkRuleListeners(d *document, c *Config, r *Rule, path string) {
	if d.has(path+"/listeners") && len(r.Listeners) == 0 && d.sound(path+"/listeners") {
		d.fail(d.vals[path+"/listeners"], "\"listeners\" is empty: name at least one, or remove the key for all")
	}
	if len(r.Listeners) == 0 {
		return
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

// earlierRules are the rules in front of one. It must be able to apply beside them.
type earlierRules struct {
	rules     []earlierRule
	listeners map[string]int            // their places in the file
	all       []uint64                  // of the listeners, a bit for each
	byColumn  map[string]*pattern.Index // of rules, by columns in small letters
	compared  int                       // rules with one another, which must not be all with all
}

type earlierRule struct {
	*Rule
	places []uint64 // of the listeners that have it, a bit for each
}

func newEarlierRules(listeners []Listener) *earlierRules {
	e := &earlierRules{listeners: map[string]int{}, all: make([]uint64, len(listeners)/64+1), byColumn: map[string]*pattern.Index{}}
	for i := range listeners {
		e.listeners[listeners[i].Name] = i
		e.all[i/64] |= 1 << (i % 64)
	}
	return e
}

// add adds a rule and returns an earlier one that leaves nothing to it: one of the same
// column that matches all its tables on all its listeners.
func (e *earlierRules) add(r *Rule) (first *Rule) {
	if r.Schema == "" || r.Column == "" { // refused
		return nil
	}
	added := earlierRule{r, e.places(r)}
	column := strings.ToLower(r.Column)
	index := e.byColumn[column]
	if index == nil {
		index = &pattern.Index{}
		e.byColumn[column] = index
	}
	near := index.Find(nil, r.Schema, r.Table)
	slices.Sort(near)
	for _, i := range near {
		e.compared++
		if before := e.rules[i]; before.Pattern().Covers(r.Pattern()) && before.everywhere(added) {
			first = before.Rule
			break
		}
	}
	index.Add(r.Pattern(), len(e.rules))
	e.rules = append(e.rules, added)
	return first
}

func (e *earlierRules) places(r *Rule) []uint64 {
	if len(r.Listeners) == 0 {
		return e.all
	}
	bits := make([]uint64, len(e.all))
	for _, name := range r.Listeners {
		if i, known := e.listeners[name]; known {
			bits[i/64] |= 1 << (i % 64)
		}
	}
	return bits
}

// everywhere reports whether the other rule holds somewhere, and this one wherever it does.
func (r earlierRule) everywhere(other earlierRule) bool {
	some := false
	for i, bits := range other.places {
		if bits&^r.places[i] != 0 {
			return false
		}
		some = some || bits != 0
	}
	return some
}
