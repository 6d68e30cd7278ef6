package proxy

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Listen is net.Listen, but it takes the place of a unix socket on which nobody
// listens any more: a process that was killed leaves its socket behind, and
// could not be started again.
func Listen(network, address string) (net.Listener, error) {
	l, err := net.Listen(network, address)
	if network != "unix" || !errors.Is(err, syscall.EADDRINUSE) || !abandoned(address) {
		return l, err
	}
	if err := os.Remove(address); err != nil {
		return nil, err
	}
	return net.Listen(network, address)
}

// abandoned reports whether a path is that of a socket that refuses connections.
// What is no socket refuses them too.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		_ = conn.Close() // somebody is there
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
