package eventloop

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Loop waits for connections and serves them. Its methods are safe for concurrent use.
type Loop struct {
	epoll  int
	parked syscall.RawConn // epoll, for Go's own poller to wait for
	file   *os.File        // that owns it
	wake   [2]int          // a pipe: closing its one end ends the loop

	mu    sync.Mutex // guards all below
	slots []*Conn    // by what epoll knows them by; nil: free
	free  []int32
	conns atomic.Int32
	ended sync.WaitGroup
}

// batch is how many connections one wait brings at most.
const batch = 128

// wakeSlot is what epoll knows the pipe by.
const wakeSlot = -1

// New returns a loop that runs until it is closed.
func New() (*Loop, error) {
	l := &Loop{}
	if err := l.open(); err != nil {
		return nil, err
	}
	if err := syscall.Pipe2(l.wake[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		l.file.Close()
		return nil, fmt.Errorf("pipe2: %w", err)
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: wakeSlot}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, l.wake[0], &event); err != nil {
		syscall.Close(l.wake[0])
		syscall.Close(l.wake[1])
		l.file.Close()
		return nil, fmt.Errorf("epoll_ctl: %w", err)
	}
	l.ended.Add(1)
	go l.turn().run()
	return l, nil
}

// open makes the epoll, as a file that Go's own poller can wait for: an epoll may be in another.
func (l *Loop) open() (err error) {
	if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	if err := syscall.SetNonblock(l.epoll, true); err != nil {
		syscall.Close(l.epoll)
		return fmt.Errorf("fcntl: %w", err)
	}
	l.file = os.NewFile(uintptr(l.epoll), "epoll")
	if err = l.file.SetReadDeadline(time.Time{}); err == nil { // it is an error where the poller did not take it
		l.parked, err = l.file.SyscallConn()
	}
	if err != nil {
		l.file.Close()
		return fmt.Errorf("epoll in an epoll: %w", err)
	}
	return nil
}

// Len returns how many connections it has.
func (l *Loop) Len() int { return int(l.conns.Load()) }

// Close ends the loop. All its connections must have been freed.
func (l *Loop) Close() {
	syscall.Close(l.wake[1])
	l.ended.Wait()
	syscall.Close(l.wake[0])
	l.file.Close()
}

// add gives a connection its slot.
func (l *Loop) add(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		c.slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		c.slot = int32(len(l.slots))
		l.slots = append(l.slots, nil)
	}
	l.slots[c.slot] = c
	l.conns.Add(1)
}

// remove takes the slot back.
func (l *Loop) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slots[c.slot] = nil
	l.free = append(l.free, c.slot)
	l.conns.Add(-1)
}

// Turn is the right to run a loop.
type Turn struct {
	loop   *Loop
	left   bool    // somebody else runs the loop
	ready  []ready // what the last wait brought and was not served yet
	buffer [batch]ready
	events [batch]syscall.EpollEvent
	found  int                   // how many of them
	look   func(fd uintptr) bool // finds them; made once
}

// ready is a connection with what epoll said of it.
type ready struct {
	conn   *Conn
	events uint32
}

// turns are those that have ended.
var turns = sync.Pool{New: func() any {
	t := new(Turn)
	t.look = func(fd uintptr) bool {
		t.found = poll(int(fd), t.events[:])
		return t.found > 0
	}
	return t
}}

func (l *Loop) turn() *Turn {
	t := turns.Get().(*Turn)
	t.loop, t.left, t.ready = l, false, t.buffer[:0]
	return t
}

// run serves until the loop is closed or somebody else runs it.
func (t *Turn) run() {
	for t.serve() && t.wait() {
		continue
	}
	if !t.left {
		t.loop.ended.Done()
	}
	turns.Put(t)
}

// serve serves what is ready. It returns false when somebody else runs the loop.
func (t *Turn) serve() bool {
	for len(t.ready) > 0 {
		r := t.ready[0]
		t.ready[0], t.ready = ready{}, t.ready[1:]
		if !r.conn.begin(r.events) {
			continue
		}
		r.conn.serve(t)
		r.conn.end()
		if t.left {
			return false
		}
	}
	return true
}

// leave has a new goroutine run the loop.
func (t *Turn) leave() {
	next := t.loop.turn()
	next.ready = next.buffer[:copy(next.buffer[:], t.ready)]
	clear(t.ready)
	t.left, t.ready = true, nil
	go next.run()
}

// wait returns false when the loop was closed. Where nothing is ready it waits in Go's own poller,
// as a goroutine does: a thread that waits in a system call of its own has the scheduler look after
// it again and again.
func (t *Turn) wait() (open bool) {
	if err := t.loop.parked.Read(t.look); err != nil {
		panic(fmt.Sprintf("epoll_wait: %v", err)) // the loop was closed, and this turn runs: a defect
	}
	t.ready, open = t.buffer[:0], true
	t.loop.mu.Lock()
	defer t.loop.mu.Unlock()
	for i := range t.found {
		e := &t.events[i]
		switch {
		case e.Fd == wakeSlot:
			open = false
		case t.loop.slots[e.Fd] != nil: // it may have been freed
			t.ready = append(t.ready, ready{t.loop.slots[e.Fd], e.Events})
		}
	}
	return open
}
