package servers

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Clock is the wall clock of servers that are started with it, which a test moves. It reaches
// programs that ask the C library for the time, as Redis, MariaDB and MySQL do. etcd, a Go program,
// asks the kernel.
type Clock struct {
	dir     string
	library string
	ahead   *int64 // nanoseconds
}

// NewClock makes a clock that shows the host's time.
func NewClock() (*Clock, error) {
	library, err := preload{"clock", clockSource}.library()
	if err != nil {
		return nil, err
	}
	dir, err := runDir()
	if err != nil {
		return nil, err
	}
	c := &Clock{dir: dir, library: library}
	if err := c.open(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Clock) path() string { return filepath.Join(c.dir, "ahead") }

func (c *Clock) open() error {
	size := int(unsafe.Sizeof(*c.ahead))
	if err := os.WriteFile(c.path(), make([]byte, size), 0o600); err != nil {
		return err
	}
	file, err := os.OpenFile(c.path(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	mem, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	c.ahead = (*int64)(unsafe.Pointer(unsafe.SliceData(mem))) // for as long as the test program lives
	return errors.Join(err, file.Close())
}

// Ahead sets the clock: it is ahead of the host's by d.
func (c *Clock) Ahead(d time.Duration) { atomic.StoreInt64(c.ahead, int64(d)) }

// Close removes the clock's folder. Servers that were started with it are started no more.
func (c *Clock) Close() error { return os.RemoveAll(c.dir) }

// env is what a server needs in its environment. No Clock is the host's.
func (c *Clock) env() []string {
	if c == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.library, "IDPROXY_CLOCK=" + c.path()}
}
