package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// decoder fills the structs from the syntax tree and collects every problem. It
// walks the tree itself because the library's decoder stops at its first error,
// names Go types, and knows no position for values of our own types.
type decoder struct {
	*document
	outside *outside
	fields  map[reflect.Type][]field // of the types that were met
}

// slot is the place of one value: in the structs and in the file.
type slot struct {
	dst  reflect.Value
	path string
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

// value reads one node into its slot.
func (d *decoder) value(s slot, n ast.Node) {
	if s.dst.Kind() == reflect.Pointer {
		s.dst.Set(reflect.New(s.dst.Type().Elem()))
		s.dst = s.dst.Elem()
		setDefaults(s.dst)
	}
	at := start(d.file, n)
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
	case d.preset(s, n):
	case s.dst.Kind() == reflect.Struct:
		d.mapping(s, n)
	case s.dst.Kind() == reflect.Slice && s.tag.named:
		d.named(s, n)
	case s.dst.Kind() == reflect.Slice:
		d.list(s, n)
	}
}

// presets is a struct that can be written as one word, which stands for values of its keys.
type presets interface {
	presets() []string
	setPreset(name string)
}

// preset reads the word that a struct is written as; false: it is written with its keys.
func (d *decoder) preset(s slot, n ast.Node) bool {
	p, ok := s.dst.Addr().Interface().(presets)
	if _, scalar := n.(ast.ScalarNode); !ok || !scalar {
		return false
	}
	var name string
	s.dst, s.tag.oneof = reflect.ValueOf(&name).Elem(), p.presets()
	if d.scalar(s, n); name != "" {
		p.setPreset(name)
	}
	return true
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
		d.fail(start(d.file, n), "%s must be a mapping (key: value), got %s", s.name(), kindOf(n))
		return nil, false
	}
	first := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		at := start(d.file, it.Key())
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
			if name != "" {
				meant[name] = true
			}
			d.fail(p.at, "unknown key %s: %s", quoteKey(p.key), hint)
			continue
		}
		f := fields[i]
		d.value(slot{dst: s.dst.Field(f.index), path: join(s.path, p.key), key: p.at, tag: f.tag}, p.value)
	}
	for _, f := range fields {
		there := slices.ContainsFunc(list, func(p pair) bool { return p.key == f.tag.name || p.key == f.tag.or })
		if f.tag.required && !there && !meant[f.tag.name] && !meant[f.tag.or] {
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
		d.fail(start(d.file, n), "%s must be a list, got %s: start each item with \"- \"", s.name(), kindOf(n))
		return
	}
	if len(seq.Values) == 0 && s.tag.required {
		d.fail(start(d.file, n), "%s is empty: add at least one", s.name())
	}
	for i, value := range seq.Values {
		value = unspaced(value)
		one := reflect.New(s.dst.Type().Elem()).Elem()
		setDefaults(one)
		at := start(d.file, value)
		d.value(slot{dst: one, path: item(s.path, i), key: at, tag: tag{words: "an item of " + s.name(), required: true}}, value)
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

// scalar reads a value that is one word.
func (d *decoder) scalar(s slot, n ast.Node) {
	w, ok := d.word(s, n)
	if !ok {
		return
	}
	problem := ""
	switch p := s.dst.Addr().Interface().(type) {
	case *string: // one that is refused leaves the default
		if problem = checkText(w, s.tag); problem == "" {
			*p = w.text
		}
	case *Secret:
		if problem = wantText(w); problem == "" {
			*p = Secret(w.text)
		}
	case *uint64:
		*p, problem = readNumber(w)
	case *bool:
		*p, problem = readBool(w)
	case *time.Duration:
		*p, problem = readDuration(w)
	case *time.Time:
		*p, problem = readTime(w)
	case *Span:
		*p, problem = readSpan(w)
	case *Size:
		*p, problem = readSize(w)
	case *Percent:
		*p, problem = readPercent(w)
	case *Addr:
		*p, problem = readAddr(w, s.tag.name == "listen")
	default:
		panic("config: no reader for " + reflect.TypeOf(p).String()) // a struct of this package is wrong
	}
	if problem != "" {
		d.fail(w.at, "%s %s", s.name(), problem)
	}
}

// word takes the text of a scalar node and expands it.
func (d *decoder) word(s slot, n ast.Node) (word, bool) {
	w := word{at: start(d.file, n), kind: kindOf(n)}
	switch n := n.(type) {
	case *ast.StringNode:
		w.raw = n.Value
		t := n.GetToken().Type
		w.quoted = t == token.SingleQuoteType || t == token.DoubleQuoteType
	case *ast.LiteralNode:
		w.raw, w.quoted = n.Value.Value, true
	case ast.ScalarNode:
		w.raw = n.GetToken().Value
	default:
		d.fail(w.at, "%s must be a single value, got %s", s.name(), kindOf(n))
		return w, false
	}
	text, used, problems := d.outside.expand(w.raw)
	for _, problem := range problems {
		d.fail(w.at, "%s", problem)
	}
	w.text, w.quoted = text, w.quoted && !used
	return w, problems == nil
}

// within names what lacks a key, when its position alone could be any of several.
func within(s slot) string {
	switch {
	case strings.HasPrefix(s.path, "listeners/") && strings.Count(s.path, "/") == 1:
		return " to this listener"
	case strings.HasPrefix(s.path, "rules/") && strings.Count(s.path, "/") == 1:
		return " to this rule"
	case s.path == "":
		return " at the left margin"
	}
	return " to " + s.name()
}
