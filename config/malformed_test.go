package config

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests got into testdata; review the difference like code")

// golden is one case of the files in testdata: a name after "# ", the lines of a
// configuration after "| ", then what Parse answers, line by line.
type golden struct{ name, in, want string }

func readGolden(t testing.TB, file string) []golden {
	t.Helper()
	data := assert.Of(os.ReadFile(file)).Must(t)
	var list []golden
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			list = append(list, golden{name: strings.TrimSpace(name)})
			continue
		}
		if len(list) == 0 {
			continue
		}
		last := &list[len(list)-1]
		if in, ok := strings.CutPrefix(line, "| "); ok {
			last.in += in
		} else if line != "\n" {
			last.want += line
		}
	}
	return list
}

func writeGolden(t *testing.T, file string, list []golden) {
	t.Helper()
	var b bytes.Buffer
	for i, g := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("# " + g.name + "\n")
		for line := range strings.Lines(g.in) {
			b.WriteString("| " + line)
		}
		b.WriteString(g.want)
	}
	assert.Must(t, os.WriteFile(file, b.Bytes(), 0o644))
}

// TestMalformed holds the whole text of every error: it is what `idproxy check` prints.
func TestMalformed(t *testing.T) {
	files, err := filepath.Glob("testdata/malformed-*.txt")
	assert.MustTrue(t, err == nil && len(files) != 0, "no testdata: %v", err)
	cases := 0
	for _, file := range files {
		cases += len(runGolden(t, file))
	}
	assert.True(t, cases >= 100, "got %d cases, want at least 100: is testdata still read?", cases)
}

// runGolden compares every case of a file and returns the errors.
func runGolden(t *testing.T, file string) []error {
	t.Helper()
	var errs []error
	list := readGolden(t, file)
	for i := range list {
		g := &list[i]
		c, err := Parse("c.yaml", []byte(g.in), testEnv)
		if err == nil || c != nil {
			t.Errorf("%s: %s: no error for\n%s", file, g.name, g.in)
			continue
		}
		errs = append(errs, err)
		got := err.Error() + "\n"
		assert.True(t, got == g.want || *rewrite, "%s: %s:\n%s got:\n%s want:\n%s", file, g.name, g.in, got, g.want)
		g.want = got
	}
	if *rewrite {
		writeGolden(t, file, list)
	}
	return errs
}

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
			assert.True(t, (s.Segment == nil || c.Store(s.Segment.Store) != nil) && (s.Snowflake == nil || c.Store(cmp.Or(s.Snowflake.Workers, s.Snowflake.Store)) != nil), "source %s has no store", s.Name)
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
