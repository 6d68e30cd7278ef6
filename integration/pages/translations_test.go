package pages

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// translations are pages in another language, with the page that each translates.
var translations = map[string]string{"README.zh-CN.md": "README.md", "docs/zh-CN/quick-start.md": "docs/quick-start.md"}

var inWords = regexp.MustCompile("(?m)^#+ |`[^`]+`|\\]\\([^)\\s]+\\)")

// kept is what a translation keeps as it is: blocks, code in sentences, levels of headings, and where
// links lead. It is by section, each with its line.
func kept(page, text string) []map[string]int {
	sections := make([]map[string]int, 1+strings.Count("\n"+text, "\n#"))
	for i := range sections {
		sections[i] = map[string]int{}
	}
	for _, b := range blocksOf(page, text) {
		section := sections[b.section]
		section[fmt.Sprintf("block %d of the section:\n%s", len(section)+1, strings.TrimSpace(b.text))] = b.line
	}
	for _, at := range inWords.FindAllStringIndex(text, -1) {
		before, piece := text[:at[0]], text[at[0]:at[1]]
		if link, ok := strings.CutPrefix(piece, "]("); ok && !strings.Contains(link, "://") {
			file, anchor, _ := strings.Cut(strings.TrimSuffix(link, ")"), "#")
			if file = path.Join(path.Dir(page), file); translations[file] != "" {
				file = translations[file]
			}
			piece = "link to " + file + "#" + anchor
		}
		sections[strings.Count("\n"+before, "\n#")][piece] = 1 + strings.Count(before, "\n")
	}
	return sections
}

// differences are what a page has and its translation has not in the same section, and the reverse.
func differences(page, text, translation, translated string) (all []string) {
	a, b := kept(page, text), kept(translation, translated)
	if len(a) != len(b) {
		return []string{fmt.Sprintf("%s has %d headings, %s has %d", page, len(a)-1, translation, len(b)-1)}
	}
	missing := func(page string, has map[string]int, other string, lacks map[string]int) {
		for _, piece := range slices.Sorted(maps.Keys(has)) {
			if _, ok := lacks[piece]; !ok {
				all = append(all, fmt.Sprintf("%s, line %d: %s lacks in this section: %s", page, has[piece], other, piece))
			}
		}
	}
	for i := range a {
		missing(page, a[i], translation, b[i])
		missing(translation, b[i], page, a[i])
	}
	return all
}

// TestTranslations holds translations to their pages, so that what is run for a page is run for them.
func TestTranslations(t *testing.T) {
	t.Parallel()
	for translation, page := range translations {
		var texts [2]string
		for i, name := range []string{page, translation} {
			text := assert.Of(os.ReadFile(filepath.Join(root, name))).Must(t)
			texts[i] = string(text)
		}
		for _, d := range differences(page, texts[0], translation, texts[1]) {
			t.Error(d)
		}
		changes := map[string]string{"`idproxy migrate": "`idproxy migrant", "monitoring.md)": "logs.md)", "\n## ": "\n### "}
		for _, b := range blocksOf(translation, texts[1]) {
			first, _, _ := strings.Cut(b.text, "\n")
			changes["\n    "+first+"\n"] = "\n    " + first + " x\n"
		}
		for from, to := range changes {
			changed := strings.Replace(texts[1], from, to, 1)
			assert.True(t, changed != texts[1] && differences(page, texts[0], translation, changed) != nil, "%s: %q in place of %q is not found", translation, to, from)
		}
	}
}
