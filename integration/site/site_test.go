package site

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/assert"
	"idproxy/integration/width"
)

const root = "../.."

// TestSite: the site is built, and no link of it leads nowhere. One that does is found.
func TestSite(t *testing.T) {
	width.Wide(t, "it installs what builds it")
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/docs.sh")).CombinedOutput()
	assert.Must(t, err, string(out))
	t.Logf("%s", out)
	page := filepath.Join(root, ".site/html/index.html")
	text := assert.Of(os.ReadFile(page)).Must(t)
	for _, link := range []string{"gone.html", "docs/faq.html#gone", "#gone"} {
		assert.Must(t, os.WriteFile(page, []byte(strings.Replace(string(text), "</body>", `<a href="`+link+`">x</a></body>`, 1)), 0o600))
		out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/links.py"), "dead", filepath.Dir(page)).CombinedOutput()
		assert.True(t, err != nil, "%s is not found:\n%s", link, out)
	}
	assert.Must(t, os.WriteFile(page, text, 0o600))
}
