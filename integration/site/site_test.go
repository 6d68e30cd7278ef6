package site

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"idproxy/integration/width"
)

const root = "../.."

// TestSite: the site is built, and no link of it leads nowhere. One that does is found.
func TestSite(t *testing.T) {
	width.Wide(t, "it installs what builds it")
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/docs.sh")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	page := filepath.Join(root, ".site/html/index.html")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"gone.html", "docs/faq.html#gone", "#gone"} {
		if err := os.WriteFile(page, []byte(strings.Replace(string(text), "</body>", `<a href="`+link+`">x</a></body>`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts/links.py"), "dead", filepath.Dir(page)).CombinedOutput(); err == nil {
			t.Errorf("%s is not found:\n%s", link, out)
		}
	}
	if err := os.WriteFile(page, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
