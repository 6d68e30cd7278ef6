package pages

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"idproxy/config"
	"idproxy/integration/assert"
)

// base is what a configuration has where a page shows only a part of one.
var base = map[string]string{
	"listeners": "listeners: [{listen: 127.0.0.1:3307, upstream: 127.0.0.1:3306}]",
	"stores":    "stores: {main: {mysql: {dsn: \"idproxy:${PW}@tcp(10.0.0.9:3306)/idproxy\"}}, leases: {redis: {addrs: [\"127.0.0.1:6379\"]}}}",
	"sources":   "sources: {order_id: {segment: {}}, user_id: {segment: {}}}",
	"rules":     "rules: [{table: shop.orders, column: id, source: order_id}]",
}

// parts are what stands inside of a section, and the section around it.
var parts = []struct {
	begins *regexp.Regexp
	around string
}{
	{regexp.MustCompile(`^\w+: +\{(segment|snowflake|uuidv7|objectid):`), "sources:\n  %s\n"},
	{regexp.MustCompile(`^lease: `), "sources:\n  event_id:\n    snowflake:\n      workers: leases\n      %s\n"},
}

// keys are those of a configuration.
func keys(t *testing.T) []string {
	t.Helper()
	text := assert.Of(os.ReadFile(filepath.Join(root, "config/example.yaml"))).Must(t)
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^(?:# )?([a-z_]+):`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// configuration returns the configuration that a block begins with, empty where it has none, and what
// stands behind it.
func configuration(text string, keys []string) (found, rest string) {
	first, rest, _ := strings.Cut(text, "\n\n")
	for _, p := range parts {
		if p.begins.MatchString(first) {
			indent := strings.Repeat(" ", strings.Index(p.around, "%s")-strings.LastIndex(p.around[:strings.Index(p.around, "%s")], "\n")-1)
			return fmt.Sprintf(p.around, strings.ReplaceAll(strings.TrimSpace(first), "\n", "\n"+indent)), rest
		}
	}
	switch {
	case isConfiguration(text, keys):
		return text, ""
	case isConfiguration(first, keys): // what is behind it is something else
		return first + "\n", rest
	}
	return "", text
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

// whole adds the sections that a configuration lacks. A part that uses what it does not show stands alone.
func whole(text string) (string, error) {
	var sections map[string]any
	if err := yaml.Unmarshal([]byte(text), &sections); err != nil {
		return "", err
	}
	for _, section := range slices.Sorted(maps.Keys(base)) {
		if _, ok := sections[section]; ok || section == "rules" && sections["sources"] != nil || section == "stores" && sections["listeners"] != nil {
			continue
		}
		text += base[section] + "\n"
	}
	return text, nil
}

// parse reads a configuration, with what it lacks.
func parse(name, text string) error {
	text, err := whole(text)
	if err != nil {
		return err
	}
	_, err = config.Parse(name, []byte(text), lookup)
	return err
}

// TestConfigurations reads each configuration that a page shows.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	looked, names := 0, keys(t)
	for _, b := range blocks(t) {
		text, _ := configuration(b.text, names)
		if text == "" {
			continue
		}
		looked++
		assert.NoError(t, parse(fmt.Sprintf("%s, line %d", b.page, b.line), text))
	}
	t.Logf("compared: %d configurations", looked)
	assert.True(t, looked >= 15, "%d configurations are found: are pages still read?", looked)
	for _, wrong := range []string{"listeners:\n  - {listen: 127.0.0.1:1, upstreem: h:1}\n", "rules:\n  - {table: shop.orders, column: id, source: gone}\n"} {
		assert.True(t, isConfiguration(wrong, names) && parse("wrong", wrong) != nil, "nothing is wrong with\n%s", wrong)
	}
}
