package servers

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// FreeAddr is a loopback address with a port that is free, and that no other test process is given before
// this one ends, so that a server can be started on it again. The port lies below those that the system
// gives to connections and to listeners on port 0.
func FreeAddr() (string, error) {
	var err error
	for range 100 {
		port := 10000 + rand.IntN(20000)
		var ours bool
		if ours, err = ports.take(port); err != nil || !ours {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l.Addr().String(), l.Close()
		}
	}
	return "", fmt.Errorf("find a free port: %w", err)
}

// ports are those of this process.
var ports takenPorts

// takenPorts are ports that a process has taken: each is a locked byte of a file that all test processes
// share. The locks end with the process.
type takenPorts struct {
	mu   sync.Mutex
	file *os.File
	own  map[int]bool
}

// take reports whether nobody had the port.
func (p *takenPorts) take(port int) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file == nil {
		file, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("idproxy-ports-%d", os.Getuid())), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return false, err
		}
		p.file, p.own = file, map[int]bool{}
	}
	if p.own[port] {
		return false, nil
	}
	byteOf := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
	switch err := unix.FcntlFlock(p.file.Fd(), unix.F_OFD_SETLK, &byteOf); err {
	case nil:
		p.own[port] = true
		return true, nil
	case unix.EAGAIN, unix.EACCES:
		return false, nil
	default:
		return false, fmt.Errorf("lock %s: %w", p.file.Name(), err)
	}
}
