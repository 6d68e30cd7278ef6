package initial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestKeep: of a file that is replaced stays what servers do not say, as it was.
func TestKeep(t *testing.T) {
	pkg, err := os.ReadFile("../../../deploy/package/idproxy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, text, kept string
		left             []string
		err              string
	}{
		{"of the packages", string(pkg), "admin:\n  socket: unix:/run/idproxy/admin.sock\n", nil, ""},
		{"with more", "listeners: []\nlog: {level: debug} # all\n\n# of ids\nids:\n  http: {}\nadmin: {listen: 127.0.0.1:1}", "log: {level: debug} # all\nadmin: {listen: 127.0.0.1:1}\n", []string{"ids"}, ""},
		{"in braces", "{listeners: [], admin: {listen: 127.0.0.1:1}}", "", nil, "braces"},
		{"a list", "- a", "", nil, "no configuration"},
		{"nothing", "", "", nil, "no configuration"},
		{"no YAML", "a: [", "", nil, "no configuration"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "idproxy.yaml")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			k, err := Keep(path)
			if k.Text != tt.kept || !slices.Equal(k.LeftOut, tt.left) || k.Admin != strings.Contains(tt.kept, "admin:") {
				t.Errorf("kept %+v", k)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if k, err := Keep(filepath.Join(t.TempDir(), "gone.yaml")); err != nil || k.Text != "" {
		t.Errorf("a file that is not there: %+v, %v", k, err)
	}
}
