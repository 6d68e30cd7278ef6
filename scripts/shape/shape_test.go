package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// TestShape measures a package whose figures can be counted by hand.
func TestShape(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module idproxy/example\n\ngo 1.26\n",
		"a.go":   "// Package example is small.\npackage example\n\ntype wide struct {\n\ta, b int\n\tc    int\n}\n\nfunc (w *wide) one() int { return two() }\n",
		"b.go":   "package example\n\nfunc two() int {\n\tfor range 3 {\n\t\tif w := (wide{}); w.a > 0 && w.b > 0 {\n\t\t\treturn w.one()\n\t\t}\n\t}\n\treturn 0\n}\n",
		"c.go":   "package example\n\nvar three = two()\n",
	} {
		assert.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	var out strings.Builder
	assert.Must(t, run(&out, []string{"./..."}))
	_, line, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	want := "example 3 17 6 8/8/8 4 0.0 17.6 wide 3 wide 1 2 of 3"
	assert.Equal(t, `strings.Join(strings.Fields(line), " ")`, strings.Join(strings.Fields(line), " "), want)
}

func TestCircle(t *testing.T) {
	for _, tt := range []struct {
		name string
		to   map[string][]string
		want int
	}{
		{"a line", map[string][]string{"a": {"b"}, "b": {"c"}}, 0},
		{"two", map[string][]string{"a": {"b"}, "b": {"a", "c"}}, 2},
		{"the larger of two", map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}, 3},
		{"one circle through another", map[string][]string{"a": {"b"}, "b": {"c", "a"}, "c": {"d"}, "d": {"b"}}, 4},
	} {
		assert.Equal(t, tt.name, circle(tt.to), tt.want)
	}
}
