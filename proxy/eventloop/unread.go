package eventloop

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unread reports whether bytes have come on a connection that nobody has read yet. It takes none. Of TLS and of compression
// these are the bytes below it.
func Unread(c net.Conn) (is bool) {
	switch of := c.(type) {
	case *Conn:
		return of.unread()
	case interface{ NetConn() net.Conn }:
		return Unread(of.NetConn())
	case syscall.Conn:
		if raw, err := of.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { is = waiting(int(fd)) }) // of one that was closed nothing comes
		}
	}
	return is
}

func waiting(fd int) bool {
	n, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	return err == nil && n > 0
}
