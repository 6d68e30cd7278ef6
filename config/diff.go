package config

import (
	"reflect"
	"slices"
	"strings"
)

// Diff lists by key path, in a fixed order, what differs between the configuration
// in force and a new one and cannot change while the program runs: any listener but for its account's password,
// the definition of a store or source that exists, admin, ids, order, engine and log.format. An
// empty list means that new can be put in force: it differs at most in rules,
// limits, tcp, log.level, log.trace, drain, shutdown_timeout and in stores and sources that old does not
// have.
//
// Values are compared as they are after defaults and the environment, so a key
// written out at its default is no change. Where things stand in the file never is.
func Diff(old, new *Config) (needsRestart []string) {
	var d differ
	d.named("listeners", byName(withoutPasswords(old.Listeners)), byName(withoutPasswords(new.Listeners)))
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

// withoutPasswords are listeners whose accounts have none.
func withoutPasswords(all []Listener) []Listener {
	all = slices.Clone(all)
	for i := range all {
		if a := all[i].Account; a != nil {
			all[i].Account = &Account{User: a.User}
		}
	}
	return all
}

type differ struct{ paths []string }

func (d *differ) add(path, how string) { d.paths = append(d.paths, path+" ("+how+")") }

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
