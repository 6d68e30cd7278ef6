package config

import (
	"reflect"
	"slices"
	"strings"

	"idproxy/pattern"
)

// Diff lists by key path, in a fixed order, what differs between the configuration
// in force and a new one and cannot change while the program runs: any listener but for its account's password, its limits and allow,
// the definition of a store or source that exists, admin, ids, order, engine and log.format. An
// empty list means that new can be put in force: it differs at most in rules,
// limits, tcp, log.level, log.trace, drain, shutdown_timeout and in stores and sources that old does not
// have.
//
// Values are compared as they are after defaults and the environment, so a key
// written out at its default is no change. Where things stand in the file never is.
func Diff(old, new *Config) (needsRestart []string) {
	var d differ
	d.named("listeners", byName(withoutLive(old.Listeners)), byName(withoutLive(new.Listeners)))
	before := byName(old.Listeners)
	for _, l := range new.Listeners {
		if _, ok := before.get(l.Name); !ok {
			d.add("listeners."+l.Name, "added")
		}
	}
	d.named("stores", byName(old.Stores), byName(new.Stores))
	d.named("sources", byName(old.Sources), byName(new.Sources))
	d.compare("admin", reflect.ValueOf(old.Admin), reflect.ValueOf(new.Admin))
	d.compare("ids", reflect.ValueOf(old.IDs), reflect.ValueOf(new.IDs))
	d.compare("order", reflect.ValueOf(old.Order), reflect.ValueOf(new.Order))
	d.compare("engine", reflect.ValueOf(old.Engine), reflect.ValueOf(new.Engine))
	d.compare("log.format", reflect.ValueOf(old.Log.Format), reflect.ValueOf(new.Log.Format))
	return d.paths
}

// DiffHandover lists what differs so that a process with the new configuration must not give ids beside
// one with the old: a store or a source that both have, the order, and columns that get their ids from
// another source. A column is what rules say: listener, schema, table and name.
func DiffHandover(old, new *Config) (needsRestart []string) {
	var d differ
	d.both("stores", byName(old.Stores), byName(new.Stores))
	d.both("sources", byName(old.Sources), byName(new.Sources))
	d.compare("order", reflect.ValueOf(old.Order), reflect.ValueOf(new.Order))
	for i := range old.Listeners {
		for j := range new.Listeners {
			if was, is := &old.Listeners[i], &new.Listeners[j]; was.Name == is.Name || renamed(old, new, was, is) {
				d.moved(old.rulesOn(was.Name), new.rulesOn(is.Name))
			}
		}
	}
	return d.paths
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

// moved reports rules of which a column gets its ids from another source in the new list.
func (d *differ) moved(old, new []*Rule) {
	alike := func(a, b *Rule) bool { return a.String() == b.String() && a.Source == b.Source }
	if slices.EqualFunc(old, new, alike) { // not all are compared with all
		return
	}
	for i, was := range old {
		for j, is := range new {
			if was.Source != is.Source && was.meets(is) && !hidden(was, is, old[:i]) && !hidden(was, is, new[:j]) {
				d.add("rules."+was.String(), "source "+was.Source+", then "+is.Source)
			}
		}
	}
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

// withoutLive are listeners without what can change while they listen.
func withoutLive(all []Listener) []Listener {
	all = slices.Clone(all)
	for i := range all {
		all[i].Allow, all[i].Limits = nil, ListenerLimits{}
		if a := all[i].Account; a != nil {
			all[i].Account = &Account{User: a.User}
		}
	}
	return all
}

type differ struct{ paths []string }

// add is once for what is the same on several listeners.
func (d *differ) add(path, how string) {
	if text := path + " (" + how + ")"; !slices.Contains(d.paths, text) {
		d.paths = append(d.paths, text)
	}
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
	if a.Kind() != reflect.Struct || isScalar(a) {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			d.add(path, "changed")
		}
		return
	}
	for _, f := range fieldsOf(a.Type()) {
		d.compare(strings.Join([]string{path, f.tag.name}, "."), a.Field(f.index), b.Field(f.index))
	}
}
