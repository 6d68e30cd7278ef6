package monitor

import (
	"net"
	"path/filepath"
	"testing"
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
	if len(r.files) != spares {
		t.Fatalf("%d files, want %d", len(r.files), spares)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	taken, err := r.accept(l)
	if err != nil || len(r.files) != spares-1 {
		t.Fatalf("%d files: %v", len(r.files), err)
	}
	taken.Close()
	if r.fill(); len(r.files) != spares {
		t.Errorf("%d files once the client has gone", len(r.files))
	}
	r.close()
	if r.fill(); len(r.files) != 0 {
		t.Errorf("%d files behind the end", len(r.files))
	}
}
