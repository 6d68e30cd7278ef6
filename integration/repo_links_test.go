package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

var (
	aLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	aHeading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the names under which a page's headings can be linked.
func anchors(page string) (names []string) {
	for _, heading := range aHeading.FindAllStringSubmatch(page, -1) {
		name := noAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// deadLinks finds links of a page that lead to no file of the repository, or to no heading in it.
func deadLinks(name, page string) (dead []string) {
	for _, link := range aLink.FindAllStringSubmatch(page, -1) {
		if strings.Contains(link[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(link[1], "#")
		text := []byte(page)
		if file != "" {
			target, err := os.ReadFile(filepath.Join(root, filepath.Dir(name), file))
			if err != nil {
				dead = append(dead, name+": "+link[1])
				continue
			}
			text = target
		}
		if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
			dead = append(dead, name+": "+link[1])
		}
	}
	return dead
}

func TestLinks(t *testing.T) {
	pages := 0
	for _, name := range repoFiles(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
		pages++
		dead := deadLinks(name, string(text))
		assert.True(t, dead == nil, "links that lead nowhere: %q", dead)
	}
	t.Logf("%d pages", pages)
	for _, link := range []string{"[x](gone.md)", "[x](#gone)", "[x](README.md#gone)"} {
		assert.True(t, deadLinks("x.md", "# Here\n"+link) != nil, "%s is not found", link)
	}
}

var (
	aStop     = regexp.MustCompile(`(?m)^\|.*\]\(\.\./.*\|$`)
	aFunction = regexp.MustCompile("`(?:[A-Z][a-z]*\\.|[a-z]+[A-Z][a-z]*\\.)?([a-z][A-Za-z]*|[A-Z][A-Za-z]*)`")
	aGoFile   = regexp.MustCompile(`\]\(\.\./([^)]+\.go)\)`)
)

// lostStops finds rows of a page's tables that name a function which is in none of the files
// that the row links.
func lostStops(page string) (lost []string) {
	for _, row := range aStop.FindAllString(page, -1) {
		var code strings.Builder
		for _, file := range aGoFile.FindAllStringSubmatch(row, -1) {
			text, _ := os.ReadFile(filepath.Join(root, file[1])) // one that is gone is a dead link
			code.Write(text)
		}
		for _, name := range aFunction.FindAllStringSubmatch(row, -1) {
			declared := regexp.MustCompile(`func (\([^)]*\) )?` + name[1] + `\(`)
			if code.Len() > 0 && !declared.MatchString(code.String()) {
				lost = append(lost, name[1]+" in "+row)
			}
		}
	}
	return lost
}

// TestStops holds that each function in the tables of docs/how-it-works.md is where the page says.
func TestStops(t *testing.T) {
	page := assert.Of(os.ReadFile(filepath.Join(root, "docs", "how-it-works.md"))).Must(t)
	n := len(aStop.FindAll(page, -1))
	assert.True(t, n >= 20, "the page has %d stops", n)
	lost := lostStops(string(page))
	assert.True(t, lost == nil, "functions that are elsewhere: %q", lost)
	assert.True(t, lostStops("| it goes | `gone` | [go.mod](../integration/doc.go) |") != nil, "a function that is not there is not found")
}
