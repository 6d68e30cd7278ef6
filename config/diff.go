package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"idproxy/pattern"
)

// Change is a key that differs between two configurations, or a part that came or went.
type Change struct {
	Section string // the first word of Path
	Name    string // of the listener, store, source or rule; empty in other sections
	Path    string // of the key
	How     string // added, removed, or from what to what; never the value of a secret
}

// String is one line for people.
func (c Change) String() string { return c.Path + ": " + c.How }

// Diff lists in a fixed order what differs between the configuration in force and a new one.
//
// Values are compared as they are after defaults and the environment, so a key
// written out at its default is no change. Where things stand in the file never is.
func Diff(old, new *Config) []Change {
	d := differ{values: true}
	d.lists("listeners", byName(old.Listeners), byName(new.Listeners))
	d.lists("stores", byName(old.Stores), byName(new.Stores))
	d.lists("sources", byName(old.Sources), byName(new.Sources))
	d.rules(old.Rules, new.Rules)
	was, is := reflect.ValueOf(*old), reflect.ValueOf(*new)
	for _, f := range fieldsOf(was.Type()) {
		if !slices.Contains([]string{"listeners", "stores", "sources", "rules"}, f.tag.name) {
			d.compare(f.tag.name, was.Field(f.index), is.Field(f.index))
		}
	}
	return d.changes
}

// NeedRestart returns those changes that cannot be put in force while the program runs.
func NeedRestart(old, new *Config, changes []Change) (some []Change) {
	for _, c := range changes {
		switch c.Section {
		case "instance", "admin", "ids", "order", "engine":
			some = append(some, c)
		case "log":
			if c.Path == "log.format" {
				some = append(some, c)
			}
		case "stores":
			if old.orders(c.Name) || new.orders(c.Name) || old.watches(c.Name) {
				some = append(some, c)
			}
		case "sources":
			if was, is := old.Source(c.Name), new.Source(c.Name); was.inOrder() || is.inOrder() {
				some = append(some, c)
			}
		}
	}
	return some
}

// orders reports whether a store says who gives the ids of series in one order.
func (c *Config) orders(store string) bool {
	return slices.ContainsFunc(c.Sources, func(s Source) bool { return s.inOrder() && s.Segment.Store == store })
}

// watches reports whether users and keys that other programs make are in a store.
func (c *Config) watches(store string) bool {
	ids := c.IDs
	return ids != nil && (ids.UsersIn == store || ids.Redis != nil && ids.Redis.CreateIn == store)
}

// inOrder reports whether the ids of a source are in one order over all processes; nil is none.
func (s *Source) inOrder() bool {
	return s != nil && s.Segment != nil && s.Segment.Order == OrderGlobal
}

// diffHandover lists what differs so that a process with the new configuration must not give ids beside
// one with the old: a store or a source that both have, the order, and columns that get their ids from
// another source, as Moves says.
func diffHandover(old, new *Config) (needsRestart []string) {
	var d differ
	d.both("stores", byName(old.Stores), byName(new.Stores))
	d.both("sources", byName(old.Sources), byName(new.Sources))
	d.compare("order", reflect.ValueOf(old.Order), reflect.ValueOf(new.Order))
	for _, m := range Moves(old, new) {
		d.add("rules."+m.Rule, "source "+m.From+", then "+m.To)
	}
	for _, c := range d.changes {
		needsRestart = append(needsRestart, c.Path+" ("+c.How+")")
	}
	return needsRestart
}

// Handover says why two processes cannot give ids at once, one with each configuration; nil: they can. In a
// process that moves a series past an explicit id, that does not reach what the other one holds of it.
func Handover(old, new *Config) error {
	if changed := diffHandover(old, new); len(changed) > 0 {
		return fmt.Errorf("a change of %s needs a restart without an upgrade: ids could come twice while two processes give them", strings.Join(changed, ", "))
	}
	for _, c := range []*Config{old, new} {
		for i := range c.Rules {
			r := &c.Rules[i]
			if s := c.Source(r.Source); r.Explicit == ExplicitAdvance && s != nil && s.Segment != nil {
				return fmt.Errorf("rule %s has explicit: advance, and an id that one process moves source %s past can be among those that the other holds: "+
					"restart without an upgrade, or have explicit: keep or reject until the process before has ended", r, r.Source)
			}
		}
	}
	return nil
}

// Move is a rule's column that gets its ids from another source.
type Move struct{ Rule, From, To string }

// Moves lists those that a new configuration brings. A column is what rules say: listener, schema, table
// and name.
func Moves(old, new *Config) (all []Move) {
	for i := range old.Listeners {
		for j := range new.Listeners {
			if was, is := &old.Listeners[i], &new.Listeners[j]; was.Name == is.Name || renamed(old, new, was, is) {
				all = moved(all, old.rulesOn(was.Name), new.rulesOn(is.Name))
			}
		}
	}
	return all
}

// renamed reports whether was is gone and is new, with a server of it.
func renamed(old, new *Config, was, is *Listener) bool {
	named := func(all []Listener, name string) bool {
		return slices.ContainsFunc(all, func(l Listener) bool { return l.Name == name })
	}
	return !named(new.Listeners, was.Name) && !named(old.Listeners, is.Name) &&
		slices.ContainsFunc(is.Servers(), func(a Addr) bool { return slices.Contains(was.Servers(), a) })
}

func (c *Config) rulesOn(listener string) (rules []*Rule) {
	for i := range c.Rules {
		if c.Rules[i].On(listener) {
			rules = append(rules, &c.Rules[i])
		}
	}
	return rules
}

// moved adds rules of which a column gets its ids from another source in the new list.
func moved(all []Move, old, new []*Rule) []Move {
	alike := func(a, b *Rule) bool { return a.String() == b.String() && a.Source == b.Source }
	if slices.EqualFunc(old, new, alike) { // not all are compared with all
		return all
	}
	for i, was := range old {
		for j, is := range new {
			if was.Source != is.Source && was.meets(is) && !hidden(was, is, old[:i]) && !hidden(was, is, new[:j]) {
				all = append(all, Move{was.String(), was.Source, is.Source})
			}
		}
	}
	return all
}

// meets reports whether both rules are for some column, in servers where the case of names says nothing.
func (r *Rule) meets(other *Rule) bool {
	small := func(r *Rule) pattern.Table {
		return pattern.Table{Schema: pattern.Fold(r.Schema), Name: pattern.Fold(r.Table)}
	}
	return strings.EqualFold(r.Column, other.Column) && small(r).Overlaps(small(other))
}

// hidden reports whether an earlier rule takes all columns that two rules have in common.
func hidden(a, b *Rule, earlier []*Rule) bool {
	return slices.ContainsFunc(earlier, func(r *Rule) bool {
		return r.Column == a.Column && (r.Pattern().Covers(a.Pattern()) || r.Pattern().Covers(b.Pattern()))
	})
}

type differ struct {
	changes       []Change
	section, name string // of what is compared
	values        bool   // changes have them
}

// add is once for what is the same on several listeners.
func (d *differ) add(path, how string) {
	c := Change{Section: d.section, Name: d.name, Path: path, How: how}
	if c.Section == "" {
		c.Section, _, _ = strings.Cut(path, ".")
	}
	if !slices.Contains(d.changes, c) {
		d.changes = append(d.changes, c)
	}
}

// rules compares rules by the columns that they name. Where several are of one column, on different
// listeners, and where the order alone is another one, it says no more than that.
func (d *differ) rules(old, new []Rule) {
	named := func(all []Rule) (s set) {
		s.places = map[string]int{}
		for i := range all {
			name := all[i].String()
			if _, twice := s.places[name]; twice {
				name += " on " + strings.Join(all[i].Listeners, ", ")
			}
			s.names, s.values = append(s.names, name), append(s.values, reflect.ValueOf(all[i]))
			s.places[name] = i
		}
		return s
	}
	was, is, before := named(old), named(new), len(d.changes)
	d.lists("rules", was, is)
	if len(d.changes) == before && !slices.Equal(was.names, is.names) {
		d.add("rules", "in another order")
	}
}

// lists compares two lists of named things.
func (d *differ) lists(section string, old, new set) {
	defer func() { d.section, d.name = "", "" }()
	d.section = section
	for i, name := range old.names {
		d.name = name
		if v, ok := new.get(name); ok {
			d.compare(section+"."+name, old.values[i], v)
		} else {
			d.add(section+"."+name, "removed")
		}
	}
	for _, name := range new.names {
		if _, ok := old.get(name); !ok {
			d.name = name
			d.add(section+"."+name, "added")
		}
	}
}

// how says what a key was and is.
func (d *differ) how(a, b reflect.Value) string {
	secret := reflect.TypeFor[Secret]()
	if !d.values || a.Type() == secret || a.Kind() == reflect.Slice && a.Type().Elem() == secret {
		return "changed"
	}
	return fmt.Sprintf("%s, then %s", shown(a), shown(b))
}

func shown(v reflect.Value) string {
	if t, ok := v.Interface().(time.Time); ok {
		return t.Format(time.RFC3339)
	}
	text := fmt.Sprint(v.Interface())
	if text == "" || text == "[]" {
		return "none"
	}
	return text
}

// set is the elements of a list by their names, in the list's order.
type set struct {
	names  []string
	values []reflect.Value
	places map[string]int
}

func byName(list any) set {
	v := reflect.ValueOf(list)
	s := set{places: map[string]int{}}
	for i := range v.Len() {
		s.names = append(s.names, v.Index(i).FieldByName("Name").String())
		s.places[s.names[i]] = i
		s.values = append(s.values, v.Index(i))
	}
	return s
}

func (s set) get(name string) (reflect.Value, bool) {
	if i, ok := s.places[name]; ok {
		return s.values[i], true
	}
	return reflect.Value{}, false
}

// named compares what both have, and reports what the new one lacks.
func (d *differ) named(path string, old, new set) {
	for i, name := range old.names {
		if v, ok := new.get(name); ok {
			d.compare(path+"."+name, old.values[i], v)
		} else {
			d.add(path+"."+name, "removed")
		}
	}
}

// both compares what both have.
func (d *differ) both(path string, old, new set) {
	for i, name := range old.names {
		if v, ok := new.get(name); ok {
			d.compare(path+"."+name, old.values[i], v)
		}
	}
}

// compare goes down to the single keys, so that the list names what changed.
func (d *differ) compare(path string, a, b reflect.Value) {
	if a.Kind() == reflect.Pointer {
		switch {
		case a.IsNil() && b.IsNil():
		case a.IsNil():
			d.add(path, "added")
		case b.IsNil():
			d.add(path, "removed")
		default:
			d.compare(path, a.Elem(), b.Elem())
		}
		return
	}
	if a.Kind() == reflect.Slice && a.Type().Elem().Kind() == reflect.Struct && !isScalar(reflect.Zero(a.Type().Elem())) {
		old, new := byName(a.Interface()), byName(b.Interface())
		d.named(path, old, new)
		for _, name := range new.names {
			if _, ok := old.get(name); !ok {
				d.add(path+"."+name, "added")
			}
		}
		return
	}
	if was, ok := a.Interface().(Mode); ok { // what a switch says is no change
		if is, _ := b.Interface().(Mode); was.String() != is.String() {
			d.add(path, d.how(a, b))
		}
		return
	}
	if a.Kind() != reflect.Struct || isScalar(a) {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			d.add(path, d.how(a, b))
		}
		return
	}
	for _, f := range fieldsOf(a.Type()) {
		d.compare(strings.Join([]string{path, f.tag.name}, "."), a.Field(f.index), b.Field(f.index))
	}
}

// LikeStore returns the store that is defined as another one is, best one of its name; nil where there
// is none.
func (c *Config) LikeStore(other *Store) *Store {
	if same := c.Store(other.Name); same != nil && alike(*same, *other) {
		return same
	}
	for i := range c.Stores {
		if one := c.Stores[i]; alike(one, *other) {
			return &c.Stores[i]
		}
	}
	return nil
}

// Like reports whether two sources are defined alike.
func (s *Source) Like(other *Source) bool { return alike(*s, *other) }

// SameSeries reports whether the ids of two sources come from one series of a store, by the names of
// both.
func (s *Source) SameSeries(other *Source) bool {
	a, b := s.Segment, other.Segment
	return a != nil && b != nil && a.Store == b.Store && a.Key == b.Key && (a.Scramble == nil) == (b.Scramble == nil)
}

// Like reports whether two listeners are, but for what can change while they listen: what their
// accounts log in as, whom they let in, and limits.
func (l *Listener) Like(other *Listener) bool {
	a, b := *l, *other
	a.Allow, a.Limits = b.Allow, b.Limits
	if a.Account != nil && b.Account != nil {
		a.Account = b.Account
	}
	return alike(a, b)
}

// alike compares two parts but for their names.
func alike[T any](a, b T) bool {
	var d differ
	was, is := reflect.ValueOf(a), reflect.ValueOf(b)
	for _, f := range fieldsOf(was.Type()) {
		if f.tag.name != "name" {
			d.compare(f.tag.name, was.Field(f.index), is.Field(f.index))
		}
	}
	return len(d.changes) == 0
}
