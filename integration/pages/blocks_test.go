package pages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

const root = "../.."

// block is what stands indented in a page: a configuration, commands, statements, or what is printed.
type block struct {
	page    string
	section int // changes at each heading
	line    int
	text    string
}

// pages are README.md, all of docs, and those of the examples.
func pages(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	for _, pattern := range []string{"docs/*.md", "docs/semantics/*.md", "examples/*/README.md"} {
		found := assert.Of(filepath.Glob(filepath.Join(root, pattern))).Must(t)
		for _, page := range found {
			name, _ := filepath.Rel(root, page)
			pages = append(pages, name)
		}
	}
	return pages
}

// blocks are those of all pages.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	for _, page := range pages(t) {
		text := assert.Of(os.ReadFile(filepath.Join(root, page))).Must(t)
		all = append(all, blocksOf(page, string(text))...)
	}
	return all
}

// blocksOf are the blocks of a page: indented by four spaces, behind an empty line.
func blocksOf(page, text string) (all []block) {
	before, section := "", 0
	var open *block
	for i, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case open != nil && indented:
			open.text += code + "\n"
		case open != nil && strings.TrimSpace(line) == "":
			open.text += "\n"
		case indented && strings.TrimSpace(before) == "":
			all = append(all, block{page, section, i + 1, code + "\n"})
			open = &all[len(all)-1]
		default:
			open = nil
		}
		if strings.HasPrefix(line, "#") {
			section++
		}
		before = line
	}
	return all
}
