package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

// tag is what a struct field says about its key:
//
//	yaml:"name,required,named"  the key; it must be there; a mapping of names
//	or:"b"                      key b does in its place, where it is required
//	oneof:"a|b"                 the words it can be
type tag struct {
	name            string
	words           string // instead of name where there is no key: "an item of ..."
	required, named bool
	or              string
	oneof           []string
}

type field struct {
	index int
	tag   tag
}

// fieldsOf lists the keys of a struct in their order.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || name == "" {
			continue
		}
		one := tag{
			name:     name,
			required: strings.Contains(options, "required"),
			named:    strings.Contains(options, "named"),
			or:       f.Tag.Get("or"),
		}
		if words := f.Tag.Get("oneof"); words != "" {
			one.oneof = strings.Split(words, "|")
		}
		list = append(list, field{index: i, tag: one})
	}
	return list
}

// isScalar reports whether the value is written as one word, although some are
// structs to Go.
func isScalar(v reflect.Value) bool {
	switch v.Interface().(type) {
	case Addr, time.Time:
		return true
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map, reflect.Pointer:
		return false
	}
	return true
}

// suggest ends the message about an unknown key with the known one that is
// nearest, which it also returns, or with all of them.
func suggest(key string, fields []field) (hint, nearest string) {
	word := leadingWord(key)
	names, best := make([]string, len(fields)), 3
	for i, f := range fields {
		names[i] = f.tag.name
		if far := distance(word, f.tag.name); far < best && far <= len(f.tag.name)/2 {
			best, nearest = far, f.tag.name
		}
	}
	switch {
	case nearest != "":
		return "did you mean \"" + nearest + "\"?", nearest
	case len(names) == 0:
		return "nothing can be set here", ""
	}
	return "known here are " + strings.Join(names, ", "), ""
}

// distance counts the letters to insert, delete or change between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// listOf joins words for a sentence: a, b or c.
func listOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// join is the path of a key.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "/" + key
}

// item is the path of an item of a list.
func item(path string, i int) string { return join(path, strconv.Itoa(i)) }
