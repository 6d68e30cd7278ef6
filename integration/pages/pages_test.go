package pages

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"idproxy/config"
	"idproxy/integration/harness"
	"idproxy/integration/width"
)

const root = "../.."

// block is what stands indented in a page: a configuration, commands, statements, or what is printed.
type block struct {
	page string
	line int
	text string
}

// blocks are those of README.md and of all pages in docs.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/semantics/*.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range found {
			name, _ := filepath.Rel(root, page)
			pages = append(pages, name)
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, blocksOf(page, string(text))...)
	}
	return all
}

// blocksOf are the blocks of a page: indented by four spaces, behind an empty line.
func blocksOf(page, text string) (all []block) {
	before := ""
	var open *block
	for i, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case open != nil && indented:
			open.text += code + "\n"
		case open != nil && strings.TrimSpace(line) == "":
			open.text += "\n"
		case indented && strings.TrimSpace(before) == "":
			all = append(all, block{page, i + 1, code + "\n"})
			open = &all[len(all)-1]
		default:
			open = nil
		}
		before = line
	}
	return all
}

// base is what a configuration has where a page shows only a part of one.
var base = map[string]string{
	"listeners": "listeners: [{listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}]",
	"stores":    "stores: {main: {mysql: {dsn: \"u:p@tcp(h:3306)/d\"}}}",
	"sources":   "sources: {order_id: {segment: {}}, user_id: {segment: {}}}",
	"rules":     "rules: [{table: shop.orders, column: id, source: order_id}]",
}

// keys are those of a configuration.
func keys(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config/example.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:# )?([a-z_]+):`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// configuration returns the configuration that a block begins with, empty where it has none.
func configuration(text string, keys []string) string {
	first, _, _ := strings.Cut(text, "\n\n")
	switch {
	case isConfiguration(text, keys):
		return text
	case isConfiguration(first, keys): // what is behind it is something else
		return first + "\n"
	}
	return ""
}

// isConfiguration reports whether a block is one, or a part of one.
func isConfiguration(text string, keys []string) bool {
	var sections map[string]any
	if yaml.Unmarshal([]byte(text), &sections) != nil || len(sections) == 0 {
		return false
	}
	for name := range sections {
		if !slices.Contains(keys, name) {
			return false
		}
	}
	return true
}

// parse reads a configuration, with what it lacks. A part that uses what it does not show stands alone.
func parse(name, text string) error {
	var sections map[string]any
	if err := yaml.Unmarshal([]byte(text), &sections); err != nil {
		return err
	}
	whole := text
	for _, section := range slices.Sorted(maps.Keys(base)) {
		if _, ok := sections[section]; ok || section == "rules" && sections["sources"] != nil || section == "stores" && sections["listeners"] != nil {
			continue
		}
		whole += base[section] + "\n"
	}
	_, err := config.Parse(name, []byte(whole), func(name string) (string, bool) { return name + strings.Repeat("x", 32), true })
	return err
}

// TestConfigurations reads each configuration that a page shows.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	looked, names := 0, keys(t)
	for _, b := range blocks(t) {
		text := configuration(b.text, names)
		if text == "" {
			continue
		}
		looked++
		if err := parse(fmt.Sprintf("%s, line %d", b.page, b.line), text); err != nil {
			t.Error(err)
		}
	}
	t.Logf("compared: %d configurations", looked)
	if looked < 15 {
		t.Errorf("%d configurations are found: are pages still read?", looked)
	}
	for _, wrong := range []string{"listeners:\n  - {listen: 127.0.0.1:1, upstreem: h:1}\n", "rules:\n  - {table: shop.orders, column: id, source: gone}\n"} {
		if !isConfiguration(wrong, names) || parse("wrong", wrong) == nil {
			t.Errorf("nothing is wrong with\n%s", wrong)
		}
	}
}

var aCommand = regexp.MustCompile(`(?m)^(?:\$ )?(?:bin/|\./)?(idproxy +[a-z].*)$`)

// tryCommand asks the program for help on a line of a page: it reads the flags in front of that. It
// returns what is wrong.
func tryCommand(program, line string) error {
	script := `idproxy() { "$PROGRAM" "$@" --help; }; ` + line
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), "PROGRAM="+program, "PW=x", "APP=x")
	cmd.Dir = os.TempDir()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	_, usage, _ := bytes.Cut(out, []byte("Usage:\n"))
	words := strings.Fields(line)
	if !strings.HasPrefix(strings.TrimSpace(string(usage)), "idproxy "+words[1]) {
		return fmt.Errorf("no such command: %s", words[1])
	}
	return nil
}

// TestCommands: the program has the commands and flags that pages show.
func TestCommands(t *testing.T) {
	t.Parallel()
	if !width.Matrix() {
		return // each command is a process
	}
	program, err := harness.Build(false)
	if err != nil {
		t.Fatal(err)
	}
	looked := map[string]bool{}
	for _, b := range blocks(t) {
		for _, m := range aCommand.FindAllStringSubmatch(b.text, -1) {
			line, _, _ := strings.Cut(m[1], " | ")
			if looked[line] || strings.HasPrefix(line, "idproxy does not") { // a message
				continue
			}
			looked[line] = true
			if err := tryCommand(program, line); err != nil {
				t.Errorf("%s, line %d: %s: %v", b.page, b.line, line, err)
			}
		}
	}
	t.Logf("compared: %d commands", len(looked))
	if len(looked) < 40 {
		t.Errorf("%d commands are found: are pages still read?", len(looked))
	}
	for _, wrong := range []string{"idproxy nonsense", "idproxy check --nonsense", "idproxy source nonsense --x", "idproxy check 'open"} {
		if tryCommand(program, wrong) == nil {
			t.Errorf("nothing is wrong with %s", wrong)
		}
	}
}
