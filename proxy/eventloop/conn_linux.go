package eventloop

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Conn is a connection whose reader a loop serves. It is a net.Conn without deadlines; those who run
// a loop write with WriteBy, and read with TryRead.
type Conn struct {
	loop  *Loop
	slot  int32
	serve func(*Turn)

	mu     sync.Mutex // guards all below, but for reads of fd by those who serve it
	fd     int        // -1: it was freed
	asked  uint32     // the events that epoll is to tell
	reader bool       // the one who serves it wants to be called
	busy   bool       // and is at work
	missed bool       // since there was something to read
	// Those who wait in goroutines; nil: nobody does.
	readable, writable chan struct{}
}

// Take moves a connection to the loop: c is closed, and its socket lives on. serve is called, once
// Start was, whenever there is something to read, never twice at once; it reads once.
func (l *Loop) Take(c net.Conn, serve func(*Turn)) (*Conn, error) {
	filed, ok := c.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no socket of its own", c)
	}
	f, err := filed.File()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) // no successor of the process gets it
	if err != nil {
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("fcntl: %w", err)
	}
	taken := &Conn{loop: l, serve: serve, fd: fd}
	c.Close()
	l.add(taken)
	return taken, nil
}

// Start has the loop serve it from now on.
func (c *Conn) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = true
	c.ask()
}

// Stop ends that.
func (c *Conn) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reader = false
	c.ask()
}

// Free closes the socket. Nobody may read, write or be served any more.
func (c *Conn) Free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return
	}
	c.reader, c.readable, c.writable = false, nil, nil
	c.ask()
	c.loop.remove(c)
	syscall.Close(c.fd)
	c.fd = -1
}

// begin reports whether the one who serves it is to be called. It wakes those who wait.
func (c *Conn) begin(events uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	const over = syscall.EPOLLERR | syscall.EPOLLHUP // told whether asked or not
	if events&(syscall.EPOLLOUT|over) != 0 && c.writable != nil {
		close(c.writable)
		c.writable = nil
	}
	if events&(syscall.EPOLLIN|over) != 0 {
		switch {
		case c.readable != nil:
			close(c.readable)
			c.readable = nil
		case c.busy:
			c.missed = true
		case c.reader:
			c.busy = true
			return true
		}
	}
	c.ask()
	return false
}

// end is called when the one who serves it is done.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy, c.missed = false, false
	c.ask()
}

// ask has epoll tell what somebody waits for. What nobody waits for is not asked for at all, because
// epoll says again and again that a connection is over.
func (c *Conn) ask() {
	var want uint32
	if c.readable != nil || c.reader && !c.missed {
		want |= syscall.EPOLLIN
	}
	if c.writable != nil {
		want |= syscall.EPOLLOUT
	}
	if want == c.asked || c.fd < 0 {
		return
	}
	op := syscall.EPOLL_CTL_MOD
	switch {
	case c.asked == 0:
		op = syscall.EPOLL_CTL_ADD
	case want == 0:
		op = syscall.EPOLL_CTL_DEL
	}
	event := syscall.EpollEvent{Events: want, Fd: c.slot}
	if err := syscall.EpollCtl(c.loop.epoll, op, c.fd, &event); err != nil {
		// ENOMEM or ENOSPC (fs.epoll.max_user_watches): nobody would ever be woken.
		_ = syscall.Shutdown(c.fd, syscall.SHUT_RDWR)
		c.wakeAll()
	}
	c.asked = want
}

// wakeAll wakes all who wait.
func (c *Conn) wakeAll() {
	for _, waiting := range []*chan struct{}{&c.readable, &c.writable} {
		if *waiting != nil {
			close(*waiting)
			*waiting = nil
		}
	}
}

// ErrNotNow is the error of TryRead when there is nothing.
const ErrNotNow = syscall.EAGAIN

// TryRead reads what is there. It returns io.EOF at the end, and ErrNotNow.
func (c *Conn) TryRead(b []byte) (int, error) { return read(c.fd, b) }

func (c *Conn) unread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fd >= 0 && waiting(c.fd)
}

// ReadBy is Read for a task.
func (c *Conn) ReadBy(by *Task, b []byte) (int, error) {
	for {
		n, err := read(c.fd, b)
		if err != ErrNotNow { //nolint:errorlint // it is never wrapped, and this is the hot path
			return n, err
		}
		by.Handoff()
		c.await(&c.readable)
	}
}

// WriteBy writes all of b for a task.
func (c *Conn) WriteBy(by *Task, b []byte) error {
	for {
		n, err := write(c.fd, b)
		b = b[n:]
		if err != ErrNotNow { //nolint:errorlint // as in ReadBy
			return err
		}
		by.Handoff()
		c.await(&c.writable)
	}
}

// await waits until the loop says what it is waited for.
func (c *Conn) await(what *chan struct{}) {
	c.mu.Lock()
	waiting := *what
	if waiting == nil {
		waiting = make(chan struct{})
		*what = waiting
	}
	c.ask()
	c.mu.Unlock()
	<-waiting
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) { return c.ReadBy(&Task{}, b) }

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.WriteBy(&Task{}, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Close ends both directions. The socket lives until Free, because others may be about to use its
// number.
func (c *Conn) Close() error { return c.shutdown(syscall.SHUT_RDWR) }

// CloseWrite ends the direction to the peer.
func (c *Conn) CloseWrite() error { return c.shutdown(syscall.SHUT_WR) }

func (c *Conn) shutdown(how int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd < 0 {
		return net.ErrClosed
	}
	return syscall.Shutdown(c.fd, how)
}

// LocalAddr implements net.Conn. It is not kept: it is nil.
func (c *Conn) LocalAddr() net.Addr { return nil }

// RemoteAddr implements net.Conn. It is nil, too.
func (c *Conn) RemoteAddr() net.Addr { return nil }

// SetDeadline implements net.Conn: it has none.
func (c *Conn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
