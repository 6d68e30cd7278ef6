package handover

import (
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"idproxy/proxy"
)

// Sockets are the listening sockets of the program.
type Sockets struct {
	mu    sync.Mutex
	given []given // opened by whoever started the program, and asked for by nobody yet
	open  []socket
}

// given is a socket that the program was started with.
type given struct {
	paper
	file *os.File
}

// socket is one that the program listens on.
type socket struct {
	paper
	listener net.Listener
}

func nameOf(network, address string) string { return network + " " + address }

// Listen is proxy.Listen, but it takes a socket of that address that the program was started with.
// Who called it closes the listener.
func (s *Sockets) Listen(network, address string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(network, address)
	i := slices.IndexFunc(s.given, func(g given) bool { return g.Name == name })
	if i < 0 {
		i = slices.IndexFunc(s.given, func(g given) bool { return g.at(network, address) })
	}
	one := socket{paper: paper{Name: name}}
	var err error
	if i < 0 {
		one.listener, err = proxy.Listen(network, address)
	} else {
		one.Foreign = s.given[i].Foreign
		one.listener, err = s.given[i].listen()
		s.given = slices.Delete(s.given, i, i+1)
	}
	if err != nil {
		return nil, err
	}
	s.open = append(s.open, one)
	return &listener{one.listener, s}, nil
}

// listener is one that no successor gets once it is closed.
type listener struct {
	net.Listener
	of *Sockets
}

// Close closes it.
func (l *listener) Close() error {
	l.of.mu.Lock()
	l.of.open = slices.DeleteFunc(l.of.open, func(one socket) bool { return one.listener == l.Listener })
	l.of.mu.Unlock()
	return l.Listener.Close()
}

// listen closes the file.
func (g given) listen() (net.Listener, error) {
	defer g.file.Close() //nolint:errcheck // the listener has a copy
	l, err := net.FileListener(g.file)
	if err != nil {
		return nil, fmt.Errorf("a socket that the program was started with: %w", err)
	}
	return l, nil
}

// at reports whether the socket listens where an address leads.
func (g given) at(network, address string) bool {
	l, err := net.FileListener(g.file)
	if err != nil {
		return false
	}
	defer l.Close() //nolint:errcheck // a copy, which leaves a unix socket's file alone
	switch at := l.Addr().(type) {
	case *net.UnixAddr:
		return network == "unix" && at.Name == address
	case *net.TCPAddr:
		want, err := net.ResolveTCPAddr("tcp", address)
		return network == "tcp" && err == nil && want.Port == at.Port && sameIP(want.IP, at.IP)
	}
	return false
}

// sameIP compares addresses to listen on: none stands for all.
func sameIP(a, b net.IP) bool {
	all := func(ip net.IP) bool { return len(ip) == 0 || ip.IsUnspecified() }
	return a.Equal(b) || all(a) && all(b)
}

// settle ends what was handed over: sockets that nobody asked for are closed, and the files of unix
// sockets, which the predecessor leaves from now on, are removed with their listeners. It returns the
// addresses of sockets that systemd opened for nothing.
func (s *Sockets) settle() (unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.given {
		l, err := g.listen()
		if err != nil {
			continue // nobody can listen on it
		}
		if g.Foreign {
			unused = append(unused, l.Addr().String())
		}
		unlinkAtEnd(l, !g.Foreign)
		_ = l.Close() // it is not needed
	}
	s.given = nil
	for _, one := range s.open {
		unlinkAtEnd(one.listener, !one.Foreign)
	}
	return unused
}

// leave has the files of unix sockets stay when their listeners are closed.
func (s *Sockets) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		unlinkAtEnd(one.listener, false)
	}
}

func unlinkAtEnd(l net.Listener, yes bool) {
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(yes)
	}
}

// copies returns copies of the sockets that are open, and their papers.
func (s *Sockets) copies() (papers []paper, files []*os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		f, err := copyOf(one)
		if err != nil {
			closeAll(files)
			return nil, nil, fmt.Errorf("socket %s: %w", one.Name, err)
		}
		papers, files = append(papers, one.paper), append(files, f)
	}
	return papers, files, nil
}

// copyOf leaves the socket as it is. What net and os do for the same makes the socket block, which
// holds for all its copies.
func copyOf(one socket) (*os.File, error) {
	c, ok := one.listener.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T cannot be copied", one.listener)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var n int
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), one.Name), nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // copies
	}
}
