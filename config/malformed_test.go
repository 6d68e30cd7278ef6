package config

import (
	"bytes"
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

// TestMalformed holds the whole text of every error: it is what `idproxy check`
// prints.
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
