package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills the structs from the syntax tree and collects every problem. It
// walks the tree itself because the library's decoder stops at its first error,
// names Go types, and knows no position for values of our own types.
type decoder struct {
	file string
	env  func(string) (string, bool)
	errs Errors
	keys map[string]Pos // key path, joined by "/": where the key stands
	vals map[string]Pos // the same for the value

	fields      map[reflect.Type][]field // of the types that were met
	failed      map[Pos]bool             // where errs are
	sources     map[string]*Source       // once all were read
	sourceNames []string
}

// slot is the place of one value: in the structs and in the file.
type slot struct {
	dst  reflect.Value
	path string // "listeners/0/tls/cert"
	key  Pos
	tag  tag
}

// name is how messages call the value: its key in quotes, or words for what has none.
func (s slot) name() string {
	if s.tag.words != "" {
		return s.tag.words
	}
	return strconv.Quote(s.tag.name)
}

// defaulter is a struct some of whose defaults are not the zero value. It is
// called before the keys of the file are read into it.
type defaulter interface{ setDefaults() }

func (d *decoder) fail(at Pos, format string, args ...any) {
	d.errs, d.failed[at] = append(d.errs, &Error{Pos: at, Message: fmt.Sprintf(format, args...)}), true
}

func (d *decoder) later(at Pos, format string, args ...any) {
	d.errs, d.failed[at] = append(d.errs, &Error{Pos: at, Message: fmt.Sprintf(format, args...), NotAvailable: true}), true
}

// value reads one node into its slot.
func (d *decoder) value(s slot, n ast.Node) {
	if s.dst.Kind() == reflect.Pointer {
		s.dst.Set(reflect.New(s.dst.Type().Elem()))
		s.dst = s.dst.Elem()
		setDefaults(s.dst)
	}
	at := d.start(n)
	switch n := n.(type) {
	case nil:
		at = s.key
	case *ast.NullNode:
		if n.GetToken().Value != "~" && n.GetToken().Value != "null" || n.GetToken().Type == token.ImplicitNullType {
			at = s.key // nothing is written there, so the key is the place to look at
		}
	}
	d.keys[s.path], d.vals[s.path] = s.key, at
	if n = d.plain(s, n, at); n == nil {
		return
	}
	switch {
	case isScalar(s.dst):
		d.scalar(s, n)
	case s.dst.Kind() == reflect.Struct:
		d.mapping(s, n)
	case s.dst.Kind() == reflect.Slice && s.tag.named:
		d.named(s, n)
	case s.dst.Kind() == reflect.Slice:
		d.list(s, n)
	}
}

// plain returns n, or nil after an error when n is none of the node kinds a
// configuration is made of.
func (d *decoder) plain(s slot, n ast.Node, at Pos) ast.Node {
	switch n.(type) {
	case nil, *ast.NullNode:
		switch {
		case s.path == "": // an empty file; the required keys are missed elsewhere
		case s.dst.Kind() == reflect.Struct && !isScalar(s.dst):
			d.fail(at, "%s has no value: write {} for its defaults, or remove it", s.name())
		default:
			d.fail(at, "%s has no value: give it one or remove it", s.name())
		}
		return nil
	case *ast.AnchorNode, *ast.AliasNode:
		d.fail(at, "YAML anchors (&) and aliases (*) are not supported: write the value out, or put it in quotes if it starts with & or *")
		return nil
	case *ast.TagNode:
		d.fail(at, "YAML tags (!) are not supported: remove the tag, or put the value in quotes if it starts with !")
		return nil
	}
	return n
}

// pair is one key of a mapping, after the checks all mappings share.
type pair struct {
	key   string
	at    Pos
	value ast.Node
}

// pairs lists the keys of a mapping; ok is false when n is none.
func (d *decoder) pairs(s slot, n ast.Node) (list []pair, ok bool) {
	m, ok := n.(ast.MapNode)
	if !ok {
		d.fail(d.start(n), "%s must be a mapping (key: value), got %s", s.name(), kindOf(n))
		return nil, false
	}
	first := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		at := d.start(it.Key())
		key, isText := keyText(it.Key())
		if !isText {
			d.fail(at, "a key must be a plain word: complex keys and merge keys (<<) are not supported")
			continue
		}
		if line, twice := first[key]; twice {
			d.fail(at, "key %s is given twice, first in line %d: remove one of them", quoteKey(key), line)
			continue
		}
		first[key] = at.Line
		list = append(list, pair{key: key, at: at, value: it.Value()})
	}
	return list, true
}

func (d *decoder) fieldsOf(t reflect.Type) []field {
	if d.fields[t] == nil {
		d.fields[t] = fieldsOf(t)
	}
	return d.fields[t]
}

// mapping reads the keys of a struct.
func (d *decoder) mapping(s slot, n ast.Node) {
	list, ok := d.pairs(s, n)
	if !ok {
		return
	}
	fields, meant := d.fieldsOf(s.dst.Type()), map[string]bool{}
	for _, p := range list {
		i := slices.IndexFunc(fields, func(f field) bool { return f.tag.name == p.key })
		if i < 0 {
			hint, name := suggest(p.key, fields)
			meant[name] = true
			d.fail(p.at, "unknown key %s: %s", quoteKey(p.key), hint)
			continue
		}
		f := fields[i]
		d.value(slot{dst: s.dst.Field(f.index), path: join(s.path, p.key), key: p.at, tag: f.tag}, p.value)
		if f.tag.later {
			d.later(p.at, "%q is not available yet: %s", p.key, f.tag.instead)
		}
	}
	for _, f := range fields {
		missing := !slices.ContainsFunc(list, func(p pair) bool { return p.key == f.tag.name })
		if f.tag.required && missing && !meant[f.tag.name] {
			d.fail(d.holder(s, list), "%q is missing and has no default: add it%s", f.tag.name, within(s))
		}
	}
}

// holder is where a mapping is said to lack a key: at its own key, or where an
// item of a list begins.
func (d *decoder) holder(s slot, list []pair) Pos {
	if s.key.Line > 0 {
		return s.key
	}
	if len(list) > 0 {
		return list[0].at
	}
	return d.vals[s.path]
}

// named reads a mapping whose keys are names of the user's own.
func (d *decoder) named(s slot, n ast.Node) {
	list, ok := d.pairs(s, n)
	if !ok {
		return
	}
	for _, p := range list {
		if !validName(p.key) {
			d.fail(p.at, "%s is not a name: use up to 64 letters, digits, \"_\", \"-\" and \".\", starting with a letter or digit", quoteKey(p.key))
		}
		one := reflect.New(s.dst.Type().Elem()).Elem()
		setDefaults(one)
		d.value(slot{dst: one, path: join(s.path, p.key), key: p.at, tag: tag{name: p.key}}, p.value)
		one.FieldByName("Name").SetString(p.key)
		one.FieldByName("Pos").Set(reflect.ValueOf(p.at))
		s.dst.Set(reflect.Append(s.dst, one))
	}
}

// list reads a sequence.
func (d *decoder) list(s slot, n ast.Node) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(d.start(n), "%s must be a list, got %s: start each item with \"- \"", s.name(), kindOf(n))
		return
	}
	if len(seq.Values) == 0 && s.tag.required {
		d.fail(d.start(n), "%s is empty: add at least one", s.name())
	}
	for i, item := range seq.Values {
		one := reflect.New(s.dst.Type().Elem()).Elem()
		setDefaults(one)
		at := d.start(item)
		d.value(slot{dst: one, path: fmt.Sprintf("%s/%d", s.path, i), key: at, tag: tag{words: "an item of " + s.name(), required: true}}, item)
		if f := one; f.Kind() == reflect.Struct && f.FieldByName("Pos").IsValid() {
			f.FieldByName("Pos").Set(reflect.ValueOf(at))
		}
		s.dst.Set(reflect.Append(s.dst, one))
	}
}

func setDefaults(v reflect.Value) {
	if !v.CanAddr() {
		return
	}
	if one, ok := v.Addr().Interface().(defaulter); ok {
		one.setDefaults()
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "/" + key
}
