package config

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

func TestExampleLoads(t *testing.T) {
	c := assert.Of(Load("example.yaml")).Must(t)
	assert.Equal(t, "listeners", len(c.Listeners), 2)
	assert.Equal(t, "second rule", c.Rules[1].String(), "shop_*.events_*.event_id")
}

// TestExampleShowsDefaults holds the "(default ...)" remarks of the example to the
// truth: without its optional keys the file means the same.
func TestExampleShowsDefaults(t *testing.T) {
	full := assert.Of(Load("example.yaml")).Must(t)
	bare := parseOK(t, `
listeners: [{name: shard0, listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}, {name: shard1, listen: 127.0.0.1:3308, upstream: 127.0.0.1:3316}]
stores: {local: {file: {dir: idproxy-data}}}
sources: {order_id: {segment: {}}, event_id: {snowflake: {worker: 7}}, public_id: {uuidv7: {}}, doc_id: {objectid: {}}}
`)
	bare.Rules = full.Rules
	got := Diff(full, bare)
	assert.True(t, len(got) == 0, "example and defaults differ in %v", got)
}

// TestExampleHasEveryKey walks the structs: a key that is new there must be
// explained in the example.
func TestExampleHasEveryKey(t *testing.T) {
	data := assert.Of(os.ReadFile("example.yaml")).Must(t)
	text := string(data)
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[Addr]() || typ.PkgPath() == "time" {
			return
		}
		for _, f := range fieldsOf(typ) {
			key := f.tag.name
			assert.True(t, strings.Contains(text, key+":") || strings.Contains(text, "# ca, cert, key, server_name"), "%s: the example does not show it", key)
			for _, word := range f.tag.oneof {
				assert.True(t, strings.Contains(text, word), "%s: the example does not name %s", key, word)
			}
			walk(typ.Field(f.index).Type)
		}
	}
	walk(reflect.TypeFor[Config]())
}

// TestExampleComments loads what the example has commented out: each of those keys is known.
func TestExampleComments(t *testing.T) {
	data, err := os.ReadFile("example.yaml")
	assert.Must(t, err)
	commented := regexp.MustCompile(`(?m)^( *)# ( *(?:- )?[a-z_0-9]+:(?: [^ ].*| +#.*)?)$`)
	prose := regexp.MustCompile(`(?m)^ *# (?:(?:listeners|account|tls|upstream_tls|proxy_protocol|stores|sources|segment|snowflake|rules|admin|ids|order|tcp): |(?:allow|limits): [a-z]).*$`)
	text := string(data)
	head := strings.Index(text, "\n# listeners: one")
	text = commented.ReplaceAllString(prose.ReplaceAllString(text[head:], ""), "$1$2")
	env := func(name string) (string, bool) {
		if strings.HasSuffix(name, "TOKEN") {
			return "0123456789abcdef", true
		}
		if name == "SCRAMBLE_KEY" {
			return "0123456789abcdef0123456789abcdef", true
		}
		return "9", name != ""
	}
	_, err = Parse("example.yaml", []byte(text), env)
	forms := 0
	for _, e := range problems(t, err) {
		assert.True(t, strings.Contains(e.Message, "must have the form"), "%v", e) // "..." stands for one
		forms++
	}
	assert.True(t, forms >= 2, "got %d values that stand for a form, want at least 2: are the comments still read?", forms)
}
