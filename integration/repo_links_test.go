package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
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
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if dead := deadLinks(name, string(text)); dead != nil {
			t.Errorf("links that lead nowhere: %q", dead)
		}
	}
	t.Logf("%d pages", pages)
	for _, link := range []string{"[x](gone.md)", "[x](#gone)", "[x](README.md#gone)"} {
		if deadLinks("x.md", "# Here\n"+link) == nil {
			t.Errorf("%s is not found", link)
		}
	}
}
