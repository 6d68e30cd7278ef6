package monitor

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"idproxy/integration/assert"
)

// answered are the types of what the API answers with. That of status is documented with the
// command of that name.
var answered = map[string]any{
	"/api/v1/sessions": []Session{}, "/api/v1/events": []Event{}, "/api/v1/refusals": []Refusal{}, "/api/v1/history": []Sample{}, "/readyz": Readiness{},
	"/api/v1/stream": struct {
		Readiness any    `json:"readiness"`
		LastEvent uint64 `json:"last_event"`
		Refusals  uint64 `json:"refusals"`
		Changes   bool   `json:"may_change"`
	}{},
}

// fieldsOf lists the names that a type has as JSON.
func fieldsOf(t reflect.Type, prefix string) (fields []string) {
	switch {
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return fieldsOf(t.Elem(), prefix+"[].")
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct:
		return fieldsOf(t.Elem(), prefix+".NAME.")
	case t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]():
		return []string{prefix}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			fields = append(fields, fieldsOf(f.Type, prefix)...)
		case prefix == "" || strings.HasSuffix(prefix, "."):
			fields = append(fields, fieldsOf(f.Type, prefix+name)...)
		default:
			fields = append(fields, fieldsOf(f.Type, prefix+"."+name)...)
		}
	}
	return fields
}

// TestAPIIsDocumented: docs/monitoring.md lists each field of the API, and no other.
func TestAPIIsDocumented(t *testing.T) {
	page := assert.Of(os.ReadFile("../docs/monitoring.md")).Must(t)
	documented := map[string][]string{}
	at := ""
	field := regexp.MustCompile("^\\| `([^`]*)` \\|")
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "#") {
			at = strings.TrimSpace(strings.TrimLeft(line, "# "))
		}
		if m := field.FindStringSubmatch(line); m != nil && strings.HasPrefix(at, "/") {
			documented[at] = append(documented[at], m[1])
		}
	}
	for path, of := range answered {
		got, want := documented[path], fieldsOf(reflect.TypeOf(of), "")
		assert.True(t, slices.Equal(got, want), "%s: documented are\n%q, and there are\n%q", path, got, want)
	}
	for path := range documented {
		_, ok := answered[path]
		assert.True(t, ok, "%s is documented, and is none", path)
	}
	// Tick has the fields of the state and those of the stream.
	stream := fieldsOf(reflect.TypeFor[Tick](), "")
	for _, name := range append(fieldsOf(reflect.TypeFor[State](), ""), "last_event", "refusals", "readiness.ready") {
		assert.True(t, slices.Contains(stream, name), "a tick lacks %s", name)
	}
	assert.Equal(t, "fields of a tick and those of the state", reflect.TypeFor[Tick]().NumField(), 1+len(documented["/api/v1/stream"]))
}
