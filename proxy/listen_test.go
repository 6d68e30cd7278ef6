package proxy

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestListenAbandoned takes the place of a socket that nobody listens on, and of nothing else.
func TestListenAbandoned(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "socket")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false) // as kill -9 leaves it
	refused := func(path string) {
		t.Helper()
		if l, err := Listen("unix", path); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%s: %v, %v; want that the address is in use", path, l, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	refused(path) // somebody listens
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Listen("unix", path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("a socket that was left behind is in nobody's way: %v", err)
	}
	l, err := Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody has connected
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	refused(file)
	refused(link)
}
