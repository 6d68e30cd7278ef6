package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"idproxy/integration/assert"
)

// object is an object of JSON.
type object = map[string]any

// schema makes the JSON schema of configurations: shapes from the structs, and words from their
// comments. What a key may be by another one it does not say: that is Parse's.
type schema struct {
	words map[string]string // comments, by Type and Type.Field
	defs  object
}

// reference is a value that comes from outside of the file, of whatever kind it is.
var reference = object{"type": "string", "pattern": `\$\{`}

// kinds have one key, which says what they are.
var kinds = []reflect.Type{reflect.TypeFor[Store](), reflect.TypeFor[Source]()}

// comments reads those of the package.
func comments(t *testing.T) map[string]string {
	t.Helper()
	words := map[string]string{}
	files := assert.Of(filepath.Glob("*.go")).Must(t)
	text := func(c *ast.CommentGroup) string {
		return strings.ReplaceAll(strings.Join(strings.Fields(c.Text()), " "), "[DefaultStore]", DefaultStore)
	}
	for _, name := range files {
		file := assert.Of(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)).Must(t)
		ast.Inspect(file, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				return true
			}
			for _, s := range d.Specs {
				of := s.(*ast.TypeSpec)
				words[of.Name.Name] = text(d.Doc)
				if structure, ok := of.Type.(*ast.StructType); ok {
					for _, f := range structure.Fields.List {
						for _, name := range f.Names {
							words[of.Name.Name+"."+name.Name] = text(f.Comment)
						}
					}
				}
			}
			return true
		})
	}
	return words
}

// of is the schema of a type. one is what its field says.
func (s *schema) of(typ reflect.Type, one tag) object {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ {
	case reflect.TypeFor[Secret](), reflect.TypeFor[Addr](), reflect.TypeFor[time.Time]():
		return object{"type": "string"}
	case reflect.TypeFor[time.Duration]():
		return object{"anyOf": []any{object{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}, reference}}
	case reflect.TypeFor[Span]():
		return object{"anyOf": []any{object{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}, object{"const": 0}, reference}}
	case reflect.TypeFor[Size]():
		return object{"anyOf": []any{object{"type": "string", "pattern": `^[0-9]+ *([KMG]i?)?B$`}, reference}}
	case reflect.TypeFor[Percent]():
		return object{"anyOf": []any{object{"type": "string", "pattern": `^[0-9]+%$`}, reference}}
	}
	switch typ.Kind() {
	case reflect.String:
		if one.oneof != nil {
			return object{"anyOf": []any{object{"enum": one.oneof}, reference}}
		}
		return object{"type": "string"}
	case reflect.Uint64:
		return object{"anyOf": []any{object{"type": "integer", "minimum": 0}, reference}}
	case reflect.Bool:
		return object{"anyOf": []any{object{"type": "boolean"}, reference}}
	case reflect.Slice:
		if one.named {
			return object{"type": "object", "propertyNames": object{"pattern": `^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`}, "additionalProperties": s.of(typ.Elem(), tag{})}
		}
		list := object{"type": "array", "items": s.of(typ.Elem(), tag{})}
		if one.required {
			list["minItems"] = 1
		}
		return list
	case reflect.Struct:
		if s.defs[typ.Name()] == nil {
			s.defs[typ.Name()] = object{} // it may hold itself
			s.defs[typ.Name()] = s.structure(typ)
		}
		return object{"$ref": "#/$defs/" + typ.Name()}
	}
	panic("config: no schema for " + typ.String())
}

// structure is the schema of a struct.
func (s *schema) structure(typ reflect.Type) object {
	properties := object{}
	out := object{"type": "object", "additionalProperties": false, "properties": properties}
	if words := s.words[typ.Name()]; words != "" {
		out["description"] = words
	}
	if slices.Contains(kinds, typ) {
		out["minProperties"], out["maxProperties"] = 1, 1
	}
	var required []string
	for _, f := range fieldsOf(typ) {
		field := typ.Field(f.index)
		one := s.of(field.Type, f.tag)
		if words := s.words[typ.Name()+"."+field.Name]; words != "" {
			one["description"] = words
		}
		properties[f.tag.name] = one
		switch {
		case f.tag.required && f.tag.or != "":
			out["anyOf"] = []any{object{"required": []string{f.tag.name}}, object{"required": []string{f.tag.or}}}
		case f.tag.required:
			required = append(required, f.tag.name)
		}
	}
	if required != nil {
		out["required"] = required
	}
	if p, ok := reflect.New(typ).Interface().(presets); ok {
		return object{"anyOf": []any{object{"enum": p.presets()}, reference, out}}
	}
	return out
}

// TestSchema: schema.json is what the structs and their comments say.
func TestSchema(t *testing.T) {
	s := &schema{words: comments(t), defs: object{}}
	whole := s.structure(reflect.TypeFor[Config]())
	whole["$schema"], whole["title"], whole["$defs"] = "https://json-schema.org/draft/2020-12/schema", "idproxy configuration", s.defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	assert.Must(t, e.Encode(whole))
	if *rewrite {
		assert.Must(t, os.WriteFile("schema.json", b.Bytes(), 0o644))
	}
	is, err := os.ReadFile("schema.json")
	assert.True(t, err == nil && bytes.Equal(is, b.Bytes()), "schema.json is not what the structs say (%v): run go generate ./config", err)
}

var compile = sync.OnceValues(func() (*jsonschema.Schema, error) { return jsonschema.NewCompiler().Compile("schema.json") })

// validate reads a configuration by the schema.
func validate(t testing.TB, text string) error {
	t.Helper()
	compiled, err := compile()
	assert.Must(t, err)
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// TestSchemaOfFiles: each configuration of the repository is one by the schema, too, and with a
// wrong key none is.
func TestSchemaOfFiles(t *testing.T) {
	files := assert.Of(filepath.Glob("../examples/*/*.yaml")).Must(t)
	n := 0
	for _, name := range append(files, "example.yaml", "../deploy/package/idproxy.yaml") {
		data := assert.Of(os.ReadFile(name)).Must(t)
		text := string(data)
		if !regexp.MustCompile(`(?m)^listeners:`).MatchString(text) {
			continue
		}
		n++
		assert.NoError(t, validate(t, text), name)
		assert.Fails(t, name+": an unknown key is not found", validate(t, text+"\nnonsense: 1\n"), "")
	}
	assert.True(t, n >= 10, "%d configurations: are they still looked at?", n)
}

// TestSchemaOfKeys: an unknown key is found wherever it is, as are words and kinds that are none;
// and a reference may stand for each value.
func TestSchemaOfKeys(t *testing.T) {
	said := regexp.MustCompile(`unknown key|must be (a mapping|a list|a whole number|true or false|a duration with its unit|a size|a percentage)|has no default: add it( |$)|has (no|more than one) kind`)
	n := 0
	for _, file := range []string{"file", "listeners", "rules", "sources", "admin", "order"} {
		for _, g := range readGolden(t, "testdata/malformed-"+file+".txt") {
			if said.MatchString(g.want) && !strings.Contains(g.want, "not valid YAML") && !strings.Contains(g.in, "${") {
				n++
				assert.Fails(t, fmt.Sprintf("%s: %s\nis one by the schema, and not by Parse: %s", g.name, g.in, g.want), validate(t, g.in), "")
			}
		}
	}
	assert.True(t, n >= 40, "%d cases: are they still found?", n)
	for _, value := range []string{`limits: {sessions: "${N}", idle_timeout: "${N}", statement: "${N}"}`, `engine: "${N}"`, `tcp: {keepalive: 0}`, `drain: {delay: 1m30s}`} {
		assert.NoError(t, validate(t, fmt.Sprintf("listeners: [{listen: :1, upstreams: [\"db0:1\"]}]\n%s\n", value)), value)
	}
}
