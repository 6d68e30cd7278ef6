package config

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse states: Parse returns a Config or Errors, never both or neither; every
// error stands at a place inside the file and names it, sorted; a Config is whole
// (its names resolve) and has no difference to itself read again.
func FuzzParse(f *testing.F) {
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		for _, g := range readGolden(f, file) {
			f.Add([]byte(g.in))
		}
	}
	f.Add([]byte(diffBase))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data, testEnv)
		if (c == nil) == (err == nil) {
			t.Fatalf("Config %v with error %v", c, err)
		}
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
		again, err := Parse("c.yaml", data, testEnv)
		if err != nil {
			t.Fatalf("second time: %v", err)
		}
		if d := Diff(c, again); len(d) != 0 {
			t.Errorf("differs from itself: %v", d)
		}
	})
}

func checkErrors(t *testing.T, data []byte, list Errors) {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("Errors without an error")
	}
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	last := Pos{}
	for _, e := range list {
		p := e.Pos
		if p.File != "c.yaml" || p.Line < 1 || p.Column < 1 || p.Line > lines || e.Message == "" {
			t.Errorf("%v: no place in a file of %d lines, or no message", e, lines)
		}
		if p.Line < last.Line || p.Line == last.Line && p.Column < last.Column {
			t.Errorf("%v stands after %v", e, last)
		}
		last = p
	}
}
