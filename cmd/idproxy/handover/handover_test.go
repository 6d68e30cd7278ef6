package handover

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// giveOf is a socket as another process hands it over. The test closes its listener.
func giveOf(t *testing.T, name string, foreign bool, l net.Listener) given {
	t.Helper()
	f, err := copyOf(socket{paper{Name: name}, l})
	if err != nil {
		t.Fatal(err)
	}
	return given{paper{name, foreign}, f}
}

// opened listens, and leaves the file of a unix socket behind.
func opened(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	unlinkAtEnd(l, false)
	t.Cleanup(func() { _ = l.Close() }) // some tests close it
	return l
}

// TestListen finds sockets by what their opener calls them, then by their address, and opens others.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u")
	first, second, named := opened(t, "tcp", "127.0.0.1:0"), opened(t, "tcp", "127.0.0.1:0"), opened(t, "unix", path)
	everywhere := opened(t, "tcp", ":0")
	_, port, err := net.SplitHostPort(everywhere.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s := &Sockets{given: []given{
		giveOf(t, "tcp 127.0.0.1:0", false, first), giveOf(t, "tcp 127.0.0.1:0", false, second),
		giveOf(t, "", true, named), giveOf(t, "", true, everywhere),
	}}
	for _, tt := range []struct{ network, address, want string }{
		{"tcp", "127.0.0.1:0", first.Addr().String()},
		{"tcp", "127.0.0.1:0", second.Addr().String()},
		{"unix", path, path},
		{"tcp", "0.0.0.0:" + port, everywhere.Addr().String()},
	} {
		l, err := s.Listen(tt.network, tt.address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := l.Addr().String(); got != tt.want {
			t.Errorf("%s %s: it listens on %s, want %s", tt.network, tt.address, got, tt.want)
		}
	}
	if len(s.given) > 0 {
		t.Errorf("%d are left", len(s.given))
	}
	own, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if at := own.Addr().String(); at == first.Addr().String() || at == second.Addr().String() {
		t.Errorf("a socket was taken twice: %s", at)
	}
	if _, err := s.Listen("tcp", first.Addr().String()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("an address that is taken: %v", err)
	}
}

// TestCopiesDoNotBlock: a socket that is copied goes on not to block, or nobody could end Accept. What
// net and os make of it is the negative control.
func TestCopiesDoNotBlock(t *testing.T) {
	s := &Sockets{}
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	blocks := func(fd uintptr) bool {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err != nil {
			t.Fatal(err)
		}
		return flags&unix.O_NONBLOCK == 0
	}
	_, files, err := s.copies()
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	defer closeAll(files)
	if blocks(files[0].Fd()) { // os/exec asks for that
		t.Error("the copy blocks, and so does the socket")
	}
	f, err := l.(*listener).Listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !blocks(f.Fd()) {
		t.Error("a file of the standard library does not block: copies could be made by it")
	}
}

// TestSettle: the files of unix sockets go with whoever serves last, those of systemd stay, and what
// systemd opened for nothing is told.
func TestSettle(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := &Sockets{}
	for name, foreign := range map[string]bool{"handed": false, "systemd": true, "unneeded": false, "unasked": true} {
		s.given = append(s.given, giveOf(t, nameOf("unix", at(name)), foreign, opened(t, "unix", at(name))))
	}
	var listeners []net.Listener
	for _, name := range []string{"handed", "systemd"} {
		l, err := s.Listen("unix", at(name))
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	if unused := s.settle(); !slices.Equal(unused, []string{at("unasked")}) {
		t.Errorf("unused are %q", unused)
	}
	for _, l := range listeners {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, stays := range map[string]bool{"handed": false, "systemd": true, "unneeded": false, "unasked": true} {
		if _, err := os.Lstat(at(name)); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %v", name, err, stays)
		}
	}
	l, err := s.Listen("unix", at("left"))
	if err != nil {
		t.Fatal(err)
	}
	s.leave()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(at("left")); err != nil {
		t.Errorf("a successor's socket: %v", err)
	}
}

// TestBegin refuses what no idproxy writes into the environment.
func TestBegin(t *testing.T) {
	for _, text := range []string{
		"", "x", "{}", `{"predecessors":0}`, `{"predecessors":-1}`, `{"predecessors":65537}`, `{"predecessors":9223372036854775807}`,
		`{"predecessors":1e99}`, `{"predecessors":1,"sockets":7}`, `{"predecessors":60000}`, `{"predecessors":1,"sockets":[` + strings.Repeat("{},", 1<<16) + `{}]}`,
	} {
		t.Setenv(variable, text)
		if _, err := Begin(); err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%.60q: %v", text, err)
		}
		if got, there := os.LookupEnv(variable); there {
			t.Errorf("what it starts would get %.60q", got)
		}
	}
	s, err := Begin()
	if err != nil || s.Succeeds() || len(s.Ready()) > 0 {
		t.Errorf("%+v %v: want a process of its own", s, err)
	}
	s.Failed(io.EOF) // nobody is told
}

// TestReports: a successor serves when it says so, and only then.
func TestReports(t *testing.T) {
	for text, want := range map[string]string{
		`{"ready":true}`:             "",
		`{"problem":"no such file"}`: "no such file",
		``:                           "EOF",
		`{`:                          "unexpected EOF",
		`ready`:                      "invalid character",
		`{"ready":1}`:                "cannot unmarshal",
		strings.Repeat(" ", maxReport) + `{"ready":true}`: "EOF",
	} {
		if got := fmt.Sprint(listen(strings.NewReader(text))); want == "" && got != "<nil>" || !strings.Contains(got, want) {
			t.Errorf("%.40q: %s, want %q", text, got, want)
		}
	}
}

// TestAlone waits for all predecessors, and no longer.
func TestAlone(t *testing.T) {
	s := &Start{}
	var ends []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		s.lives, ends = append(s.lives, r), append(ends, w)
	}
	alone := make(chan error, 1)
	go func() { alone <- s.Alone() }()
	for _, w := range ends {
		select {
		case err := <-alone:
			t.Fatalf("alone beside a predecessor: %v", err)
		default:
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-alone; err != nil || s.lives != nil {
		t.Errorf("%v; %d are left", err, len(s.lives))
	}
}
