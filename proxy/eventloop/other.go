//go:build !linux

package eventloop

import (
	"errors"
	"net"
)

// ErrNotNow is the error of TryRead when there is nothing.
var ErrNotNow = errors.New("nothing to read now")

// Loop is only there on Linux.
type Loop struct{}

// New returns an error: there is no epoll.
func New() (*Loop, error) {
	return nil, errors.New("there are no event loops on this system: use engine: goroutines")
}

// Len returns 0.
func (*Loop) Len() int { return 0 }

// Close does nothing.
func (*Loop) Close() {}

// Take returns an error.
func (*Loop) Take(net.Conn, func(*Turn)) (*Conn, error) { return nil, errors.ErrUnsupported }

// Turn is the right to run a loop.
type Turn struct{}

// Task is one direction of a connection's work.
type Task struct{}

// On does nothing.
func (*Task) On(*Turn) {}

// Handoff does nothing.
func (*Task) Handoff() {}

// Conn is a connection of a loop.
type Conn struct{ net.Conn }

// Start does nothing.
func (*Conn) Start() {}

// Stop does nothing.
func (*Conn) Stop() {}

// Free does nothing.
func (*Conn) Free() {}

// TryRead returns an error.
func (*Conn) TryRead([]byte) (int, error) { return 0, errors.ErrUnsupported }

func (*Conn) unread() bool { return false }

// ReadBy returns an error.
func (*Conn) ReadBy(*Task, []byte) (int, error) { return 0, errors.ErrUnsupported }

// WriteBy returns an error.
func (*Conn) WriteBy(*Task, []byte) error { return errors.ErrUnsupported }

// CloseWrite returns an error.
func (*Conn) CloseWrite() error { return errors.ErrUnsupported }
