package initial

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"idproxy/integration/assert"
)

// TestKeep: of a file that is replaced stays what servers do not say, as it was.
func TestKeep(t *testing.T) {
	pkg := assert.Of(os.ReadFile("../../../deploy/package/idproxy.yaml")).Must(t)
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
			assert.Must(t, os.WriteFile(path, []byte(tt.text), 0o600))
			k, err := Keep(path)
			assert.True(t, k.Text == tt.kept && slices.Equal(k.LeftOut, tt.left) && k.Admin == strings.Contains(tt.kept, "admin:"), "kept %+v", k)
			assert.True(t, (err == nil) == (tt.err == "") && (err == nil || strings.Contains(err.Error(), tt.err)), "it says %v", err)
		})
	}
	k, err := Keep(filepath.Join(t.TempDir(), "gone.yaml"))
	assert.True(t, err == nil && k.Text == "", "a file that is not there: %+v, %v", k, err)
}
