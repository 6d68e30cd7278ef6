package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"idproxy/config"
	"idproxy/integration/assert"
)

// TestModes: what everybody can read is named, and where everybody can write nothing is kept.
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		secret, folder, above os.FileMode // 0 for a folder that is not there
		readable, writable    bool
	}{
		{0o600, 0o700, 0o755, false, false},
		{0o400, 0o755, 0o755, false, false},
		{0o640, 0o770, 0o755, false, false},
		{0o644, 0o700, 0o755, true, false},
		{0o600, 0o777, 0o755, false, true},
		{0o600, 0o777 | os.ModeSticky, 0o755, false, false},
		{0o600, 0o700, 0o777, false, false},
		{0o600, 0, 0o777, false, true},
		{0o600, 0, 0o777 | os.ModeSticky, false, false},
	} {
		dir := t.TempDir()
		above := filepath.Join(dir, "above")
		folder, secret := filepath.Join(above, "data"), filepath.Join(dir, "secret")
		mode := func(path string, m os.FileMode) {
			assert.Must(t, os.Chmod(path, m)) // Mkdir and WriteFile go by the umask
		}
		assert.Must(t, os.WriteFile(secret, []byte("pw"), 0o600))
		assert.Must(t, os.Mkdir(above, 0o700))
		if tt.folder != 0 {
			assert.Must(t, os.Mkdir(folder, 0o700))
			mode(folder, tt.folder)
		}
		mode(secret, tt.secret)
		mode(above, tt.above)
		path := filepath.Join(dir, "idproxy.yaml")
		text := fmt.Sprintf(`listeners: [{listen: "127.0.0.1:0", upstream: "127.0.0.1:1", account: {user: u, password: "${file:secret}"}}]
stores: {here: {file: {dir: %q}}}
`, folder)
		assert.Must(t, os.WriteFile(path, []byte(text), 0o600))
		cfg := assert.Of(config.Load(path)).Must(t)
		got := Readable(cfg)
		assert.True(t, slices.Contains(got, secret) == tt.readable, "%+v: readable %q", tt, got)
		volumes, err := Writable(cfg)
		assert.True(t, (err != nil) == tt.writable && (err == nil || strings.Contains(err.Error(), "chmod o-w "+above)) && volumes == nil, "%+v: %v, volumes %q", tt, err, volumes)
	}
}

// TestModesOfSockets: no socket may lie where everybody can put another one in its place.
func TestModesOfSockets(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // what is looked for
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "idproxy.yaml")
	for _, text := range []string{
		`listeners: [{listen: "unix:DIR/s", upstream: "127.0.0.1:1"}]`,
		"listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nadmin: {listen: unix:DIR/s}",
		"listeners: [{listen: 127.0.0.1:0, upstream: 127.0.0.1:1}]\nadmin: {socket: unix:DIR/s}",
	} {
		assert.Must(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600))
		cfg := assert.Of(config.Load(path)).Must(t)
		assert.Of(Writable(cfg)).Fails(t, text, dir)
	}
}

// TestModesOfVolumes: a folder at which a file system is mounted may be everybody's.
func TestModesOfVolumes(t *testing.T) {
	info, err := os.Stat("/proc")
	assert.Must(t, err)
	assert.True(t, isMounted("/proc", info), "/proc is not mounted")
	dir := t.TempDir()
	info, err = os.Stat(dir)
	assert.True(t, err == nil && !isMounted(dir, info), "%s is mounted (%v)", dir, err)
}
