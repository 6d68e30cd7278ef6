package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"idproxy/integration/assert"
)

var (
	anAddress = regexp.MustCompile(`127\.0\.0\.\d+:\d+`)
	aPort     = regexp.MustCompile(`:(\d{4,5})\b`)
	aFileLink = regexp.MustCompile(`\]\((\.\./\.\./[^)]*\.ya?ml)\)`)
	aMarkup   = regexp.MustCompile(`<[^>]*>`)
)

// drawnWrong finds addresses and ports of a picture that no file of its example names.
func drawnWrong(picture, files string) (wrong []string) {
	words := aMarkup.ReplaceAllString(picture, "\n")
	for _, address := range anAddress.FindAllString(words, -1) {
		host, port := address[:len(address)-5], address[len(address)-5:]
		if !regexp.MustCompile(regexp.QuoteMeta(host)+`\b`).MatchString(files) || !regexp.MustCompile(port+`\b`).MatchString(files) {
			wrong = append(wrong, address)
		}
	}
	for _, port := range aPort.FindAllStringSubmatch(words, -1) {
		if !regexp.MustCompile(`\b` + port[1] + `\b`).MatchString(files) {
			wrong = append(wrong, port[0])
		}
	}
	return wrong
}

// TestPictures holds that pictures have the ports of the configuration.
func TestPictures(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(folder, "*", "picture.svg"))
	assert.MustTrue(t, err == nil && len(pictures) != 0, "%d pictures, %v", len(pictures), err)
	for _, path := range pictures {
		picture := assert.Of(os.ReadFile(path)).Must(t)
		var files []byte
		all := assert.Of(filepath.Glob(filepath.Join(filepath.Dir(path), "*"))).Must(t)
		// Files that are elsewhere in the repository, the page has as links.
		if page, err := os.ReadFile(filepath.Join(filepath.Dir(path), "README.md")); err != nil {
			t.Error(err)
		} else {
			for _, m := range aFileLink.FindAllStringSubmatch(string(page), -1) {
				all = append(all, filepath.Join(filepath.Dir(path), m[1]))
			}
		}
		for _, name := range all {
			if slices.Contains([]string{".svg", ".md"}, filepath.Ext(name)) {
				continue
			}
			if text, err := os.ReadFile(name); err == nil { // not a folder
				files = append(files, text...)
			}
		}
		wrong := drawnWrong(string(picture), string(files))
		assert.True(t, wrong == nil, "%s has %q, which its files do not name", path, wrong)
	}
	assert.True(t, drawnWrong("<text>db0 127.0.0.10:3306</text>", "upstream: 127.0.0.10:3307") != nil && drawnWrong("<text>:3309</text>", "3306") != nil, "a wrong port is not found")
}
