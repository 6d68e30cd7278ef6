package monitor

import (
	"net"
	"path/filepath"
	"testing"

	"idproxy/integration/assert"
)

// TestReserve: a client is taken in the place of a spare file, and what lacks is opened again.
// TestFaults takes all descriptors away from a program.
func TestReserve(t *testing.T) {
	var r reserve
	if _, err := r.accept(nil); !noFiles(err) {
		t.Errorf("without files: %v", err)
	}
	r.fill()
	r.fill()
	assert.MustEqual(t, "files", len(r.files), spares)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	assert.Must(t, err)
	defer l.Close()
	client := assert.Of(net.Dial("unix", l.Addr().String())).Must(t)
	defer client.Close()
	taken, err := r.accept(l)
	assert.MustTrue(t, err == nil && len(r.files) == spares-1, "%d files: %v", len(r.files), err)
	taken.Close()
	r.fill()
	assert.True(t, len(r.files) == spares, "%d files once the client has gone", len(r.files))
	r.close()
	r.fill()
	assert.True(t, len(r.files) == 0, "%d files behind the end", len(r.files))
}
