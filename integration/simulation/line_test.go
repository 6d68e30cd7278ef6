package simulation

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"syscall"
	"time"
)

// lines is the network between processes: streams of bytes, as TCP has them. What was sent comes
// in order, late, cut short, or not at all, and who waits for it may never be told.
type lines struct {
	w      *world
	bad    [hosts]link
	listen [hosts]*listener
	ends   map[*process][]*end
	made   uint64
}

// address is where a host is asked.
func address(host int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(host+1)), Port: 9309}
}

// between is the link between two hosts: it is as bad as the one or the other. The caller holds mu.
func (n *lines) between(a, b int) link {
	if n.bad[a].until.After(time.Now()) {
		return n.bad[a]
	}
	return n.bad[b]
}

// listener is where a process is asked.
type listener struct {
	n    *lines
	p    *process
	come chan *end
	done chan struct{}
}

// open has a process listen. It waits for who listens at its address yet.
func (n *lines) open(p *process) *listener {
	l := &listener{n: n, p: p, come: make(chan *end, 64), done: make(chan struct{})}
	for {
		p.step()
		n.w.mu.Lock()
		free := n.listen[p.host.n] == nil
		if free {
			n.listen[p.host.n] = l
		}
		n.w.mu.Unlock()
		if free {
			return l
		}
		_ = pause(context.Background(), 20*time.Millisecond)
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case e := <-l.come:
		l.p.step()
		return e, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.n.w.mu.Lock()
	defer l.n.w.mu.Unlock()
	l.close()
	return nil
}

func (l *listener) close() {
	if l.n.listen[l.p.host.n] == l {
		l.n.listen[l.p.host.n] = nil
		close(l.done)
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address(l.p.host.n) }

// gone closes all that a process has, as the kernel does.
func (n *lines) gone(p *process) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if l := n.listen[p.host.n]; l != nil && l.p == p {
		l.close()
	}
	for _, e := range n.ends[p] {
		e.close()
	}
	delete(n.ends, p)
}

// dial returns what connects a process to others.
func (n *lines) dial(p *process) func(ctx context.Context, addr string) (net.Conn, error) {
	r := n.w.chance(uint64(p.host.n)<<32 | uint64(p.life)<<8 | 4)
	return func(ctx context.Context, addr string) (net.Conn, error) {
		p.step()
		defer p.step()
		to := 0
		for address(to).String() != addr {
			to++
		}
		n.w.mu.Lock()
		f := n.w.fateOver(n.between(p.host.n, to), r)
		n.w.mu.Unlock()
		switch {
		case f.refused:
			_ = pause(ctx, f.out)
			return nil, syscall.ECONNREFUSED
		case f.lost, f.cut:
			return nil, p.silence(ctx, f)
		}
		if err := pause(ctx, f.out); err != nil {
			return nil, err
		}
		e := n.connect(p, to)
		err := pause(ctx, f.back)
		switch {
		case e == nil:
			return nil, syscall.ECONNREFUSED
		case err != nil:
			_ = e.Close()
			return nil, err
		}
		return e, nil
	}
}

// connect makes a connection where somebody listens.
func (n *lines) connect(p *process, to int) *end {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	l := n.listen[to]
	if l == nil || len(l.come) == cap(l.come) {
		return nil
	}
	n.made++
	a := &end{n: n, p: p, wake: make(chan struct{}), r: n.w.chance(1<<48 | n.made<<1)}
	b := &end{n: n, p: l.p, wake: make(chan struct{}), r: n.w.chance(1<<48 | n.made<<1 | 1)}
	a.peer, b.peer = b, a
	n.ends[p], n.ends[l.p] = append(n.ends[p], a), append(n.ends[l.p], b)
	l.come <- b
	return a
}

// end is one end of a connection.
type end struct {
	n    *lines
	p    *process
	peer *end
	r    *rand.Rand // what becomes of what is sent

	buf      []byte    // that has come
	err      error     // behind that
	deadline time.Time // of reading
	wake     chan struct{}
	last     time.Time // when what was sent comes at last
	lost     bool      // nothing more that is sent comes
	closed   bool
}

// changed wakes who reads. The caller holds mu.
func (e *end) changed() {
	close(e.wake)
	e.wake = make(chan struct{})
}

// fail ends what comes. The caller holds mu.
func (e *end) fail(err error) {
	if e.err == nil {
		e.err = err
		e.changed()
	}
}

// Read implements net.Conn.
func (e *end) Read(b []byte) (int, error) {
	e.p.step()
	n, err := e.read(b)
	e.p.step()
	return n, err
}

func (e *end) read(b []byte) (int, error) {
	for {
		e.n.w.mu.Lock()
		n := copy(b, e.buf)
		e.buf = e.buf[n:]
		err, wake, deadline := e.err, e.wake, e.deadline
		if e.closed {
			n, err = 0, net.ErrClosed
		}
		e.n.w.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		case deadline.IsZero():
			<-wake
			continue
		}
		t := time.NewTimer(time.Until(deadline))
		select {
		case <-wake:
		case <-t.C:
			return 0, os.ErrDeadlineExceeded
		}
		t.Stop()
	}
}

// Write implements net.Conn. The kernel takes what is written, whatever becomes of it.
func (e *end) Write(b []byte) (int, error) {
	e.p.step()
	defer e.p.step()
	w := e.n.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case e.closed:
		return 0, net.ErrClosed
	case e.err != nil:
		return 0, syscall.EPIPE
	}
	f := w.fateOver(e.n.between(e.p.host.n, e.peer.p.host.n), e.r)
	if e.lost || f.refused || f.lost {
		e.lost = true // what follows waits for it
		if f.breaks {
			e.reset(f.out + f.back)
		}
		return len(b), nil
	}
	come := bytes.Clone(b)
	if f.cut {
		come = come[:len(come)/2]
		e.lost = true
	}
	e.later(f.out, func() {
		e.peer.buf = append(e.peer.buf, come...)
		e.peer.changed()
	})
	if f.cut && f.breaks {
		e.reset(f.out + f.back)
	}
	return len(b), nil
}

// later does something behind all that is on its way. The caller holds mu; do is called with it.
func (e *end) later(d time.Duration, do func()) {
	at := time.Now().Add(d)
	if !at.After(e.last) {
		at = e.last.Add(1)
	}
	e.last = at
	time.AfterFunc(time.Until(at), func() {
		e.n.w.mu.Lock()
		defer e.n.w.mu.Unlock()
		do()
	})
}

// reset breaks the connection at both ends.
func (e *end) reset(d time.Duration) {
	e.later(d, func() {
		e.fail(syscall.ECONNRESET)
		e.peer.fail(syscall.ECONNRESET)
	})
}

// Close implements net.Conn.
func (e *end) Close() error {
	e.n.w.mu.Lock()
	defer e.n.w.mu.Unlock()
	e.close()
	return nil
}

func (e *end) close() {
	if e.closed {
		return
	}
	e.closed = true
	e.changed()
	if f := e.n.w.fateOver(e.n.between(e.p.host.n, e.peer.p.host.n), e.r); !e.lost && !f.refused && !f.lost && !f.cut {
		e.later(f.out, func() { e.peer.fail(io.EOF) })
	}
}

// SetDeadline implements net.Conn. No write waits.
func (e *end) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	e.n.w.mu.Lock()
	defer e.n.w.mu.Unlock()
	e.deadline = t
	e.changed()
	return nil
}

// SetWriteDeadline implements net.Conn.
func (e *end) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (e *end) LocalAddr() net.Addr { return address(e.p.host.n) }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return address(e.peer.p.host.n) }
