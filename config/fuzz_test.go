package config

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
)

// FuzzParse states: Parse returns a Config or Errors, never both or neither; every
// error stands at a place inside the file and names it, sorted; a Config is whole
// (its names resolve) and has no difference to itself read again.
func FuzzParse(f *testing.F) {
	example := assert.Of(os.ReadFile("example.yaml")).Must(f)
	f.Add(example)
	files := assert.Of(filepath.Glob("testdata/*.txt")).Must(f)
	for _, file := range files {
		for _, g := range readGolden(f, file) {
			f.Add([]byte(g.in))
		}
	}
	f.Add([]byte(diffBase))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data, testEnv)
		assert.MustTrue(t, (c == nil) != (err == nil), "Config %v with error %v", c, err)
		if err != nil {
			checkErrors(t, data, problems(t, err))
			return
		}
		for _, s := range c.Sources {
			if s.Segment != nil && c.Store(s.Segment.Store) == nil || s.Snowflake != nil && c.Store(cmp.Or(s.Snowflake.Workers, s.Snowflake.Store)) == nil {
				t.Errorf("source %s has no store", s.Name)
			}
		}
		for _, r := range c.Rules {
			if c.Source(r.Source) == nil || r.Schema == "" || r.Table == "" || r.Column == "" {
				t.Errorf("rule %s of %s is not whole", r.String(), r.Source)
			}
		}
		again := assert.Of(Parse("c.yaml", data, testEnv)).Must(t, "second time")
		d := Diff(c, again)
		assert.True(t, len(d) == 0, "differs from itself: %v", d)
	})
}

func checkErrors(t *testing.T, data []byte, list Errors) {
	t.Helper()
	assert.MustTrue(t, len(list) != 0, "Errors without an error")
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	last := Pos{}
	for _, e := range list {
		p := e.Pos
		assert.True(t, p.File == "c.yaml" && p.Line >= 1 && p.Column >= 1 && p.Line <= lines && e.Message != "", "%v: no place in a file of %d lines, or no message", e, lines)
		assert.True(t, p.Line >= last.Line && (p.Line != last.Line || p.Column >= last.Column), "%v stands after %v", e, last)
		last = p
	}
}
