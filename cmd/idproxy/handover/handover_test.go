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

	"idproxy/integration/assert"
)

// giveOf is a socket as another process hands it over. The test closes its listener.
func giveOf(t *testing.T, p paper, l net.Listener) given {
	t.Helper()
	return given{p, assert.Of(copyOf(socket{paper{Name: p.Name}, l})).Must(t)}
}

// opened listens, and leaves the file of a unix socket behind.
func opened(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l := assert.Of(net.Listen(network, address)).Must(t)
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
	assert.Must(t, err)
	s := &Sockets{given: []given{
		giveOf(t, paper{Name: "tcp 127.0.0.1:0"}, first), giveOf(t, paper{Name: "tcp 127.0.0.1:0"}, second),
		giveOf(t, paper{Foreign: true}, named), giveOf(t, paper{Foreign: true}, everywhere),
	}}
	for _, tt := range []struct{ network, address, want string }{
		{"tcp", "127.0.0.1:0", first.Addr().String()},
		{"tcp", "127.0.0.1:0", second.Addr().String()},
		{"unix", path, path},
		{"tcp", "0.0.0.0:" + port, everywhere.Addr().String()},
	} {
		l := assert.Of(s.Listen(tt.network, tt.address)).Must(t)
		defer l.Close()
		assert.Equal(t, tt.network+" "+tt.address+": it listens on", l.Addr().String(), tt.want)
	}
	assert.True(t, len(s.given) == 0, "%d are left", len(s.given))
	own := assert.Of(s.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer own.Close()
	at := own.Addr().String()
	assert.True(t, at != first.Addr().String() && at != second.Addr().String(), "a socket was taken twice: %s", at)
	assert.Of(s.Listen("tcp", first.Addr().String())).Fails(t, "an address that is taken", "address already in use")
}

// TestCopiesDoNotBlock: a socket that is copied goes on not to block, or nobody could end Accept. What
// net and os make of it is the negative control.
func TestCopiesDoNotBlock(t *testing.T) {
	s := &Sockets{}
	l := assert.Of(s.Listen("tcp", "127.0.0.1:0")).Must(t)
	defer l.Close()
	blocks := func(fd uintptr) bool {
		flags := assert.Of(unix.FcntlInt(fd, unix.F_GETFL, 0)).Must(t)
		return flags&unix.O_NONBLOCK == 0
	}
	_, files, err := s.copies()
	assert.MustTrue(t, err == nil && len(files) == 1, "%v %v", files, err)
	defer closeAll(files)
	assert.True(t, !blocks(files[0].Fd()), "the copy blocks, and so does the socket") // os/exec asks for that
	f := assert.Of(l.(*listener).Listener.(*net.TCPListener).File()).Must(t)
	defer f.Close()
	assert.True(t, blocks(f.Fd()), "a file of the standard library does not block: copies could be made by it")
}

// TestSettle: the files of unix sockets go with whoever serves last, those of systemd stay, and what
// systemd opened for nothing is told.
func TestSettle(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := &Sockets{}
	for name, foreign := range map[string]bool{"handed": false, "systemd": true, "unneeded": false, "unasked": true} {
		s.given = append(s.given, giveOf(t, paper{nameOf("unix", at(name)), foreign}, opened(t, "unix", at(name))))
	}
	var listeners []net.Listener
	for _, name := range []string{"handed", "systemd"} {
		l := assert.Of(s.Listen("unix", at(name))).Must(t)
		listeners = append(listeners, l)
	}
	unused := s.settle()
	assert.True(t, slices.Equal(unused, []string{at("unasked")}), "unused are %q", unused)
	for _, l := range listeners {
		assert.NoError(t, l.Close())
	}
	for name, stays := range map[string]bool{"handed": false, "systemd": true, "unneeded": false, "unasked": true} {
		_, err := os.Lstat(at(name))
		assert.True(t, (err == nil) == stays, "%s: %v, want that it stays: %v", name, err, stays)
	}
	l := assert.Of(s.Listen("unix", at("left"))).Must(t)
	s.leave()
	assert.NoError(t, l.Close())
	assert.Of(os.Lstat(at("left"))).NoError(t, "a successor's socket")
}

// TestBegin refuses what no idproxy writes into the environment.
func TestBegin(t *testing.T) {
	for _, text := range []string{
		"", "x", "{}", `{"predecessors":0}`, `{"predecessors":-1}`, `{"predecessors":65537}`, `{"predecessors":9223372036854775807}`,
		`{"predecessors":1e99}`, `{"predecessors":1,"sockets":7}`, `{"predecessors":60000}`, `{"predecessors":1,"sockets":[` + strings.Repeat("{},", 1<<16) + `{}]}`,
	} {
		t.Setenv(variable, text)
		assert.Of(Begin()).Fails(t, fmt.Sprintf("%.60q", text), variable)
		got, there := os.LookupEnv(variable)
		assert.True(t, !there, "what it starts would get %.60q", got)
	}
	s, err := Begin()
	assert.True(t, err == nil && !s.Succeeds() && len(s.Ready()) == 0, "%+v %v: want a process of its own", s, err)
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
		got := fmt.Sprint(listen(strings.NewReader(text)))
		assert.True(t, (want != "" || got == "<nil>") && strings.Contains(got, want), "%.40q: %s, want %q", text, got, want)
	}
}

// TestAlone waits for all predecessors, and no longer.
func TestAlone(t *testing.T) {
	s := &Start{}
	var ends []*os.File
	for range 2 {
		r, w, err := os.Pipe()
		assert.Must(t, err)
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
		assert.Must(t, w.Close())
	}
	err := <-alone
	assert.True(t, err == nil && s.lives == nil, "%v; %d are left", err, len(s.lives))
}
