package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"idproxy/proxy/loop"
)

// bufferSizes are the sizes of pooled buffers. Reads start with the smallest,
// which is at or above what MySQL Router and TiProxy settled on, and grow when
// they fill it.
var bufferSizes = [...]int{16 << 10, 64 << 10, 256 << 10, 1 << 20}

// buffers holds pointers to slices of the size of its index in bufferSizes.
var buffers [len(bufferSizes)]sync.Pool

func getBuffer(class int) *[]byte {
	if b, ok := buffers[class].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, bufferSizes[class])
	return &b
}

// inlet reads from a connection. It holds a buffer only while there are bytes
// in it: a session that waits for its client costs no buffer. Over TLS the
// buffer is kept while waiting, for crypto/tls reads into what it is given.
type inlet struct {
	conn net.Conn
	loop *loop.Conn // conn, if a loop has it
	lane *loop.Lane
	raw  syscall.RawConn // nil over TLS and of a loop
	read *atomic.Uint64  // counts the bytes that came

	buf   []byte  // nil when nothing is held
	box   *[]byte // what buf is when it is from a pool; nil: it is not
	r, w  int     // bytes not consumed yet: buf[r:w]
	class int     // of the next buffer, by what the last ones held

	try func(fd uintptr) bool // readReady, made once
	n   int
	err error
}

func newInlet(conn net.Conn, lane *loop.Lane, read *atomic.Uint64) *inlet {
	in := &inlet{conn: conn, lane: lane, read: read}
	if c, ok := conn.(*loop.Conn); ok {
		in.loop = c
	} else if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			in.raw, in.try = raw, in.readReady
		}
	}
	return in
}

// bytes returns what was read and not consumed.
func (in *inlet) bytes() []byte { return in.buf[in.r:in.w] }

// consume takes n bytes away.
func (in *inlet) consume(n int) { in.r += n }

// more waits for bytes behind those not consumed. It may move them.
func (in *inlet) more() error {
	in.makeRoom()
	switch {
	case in.loop != nil:
		in.hold()
		n, err := in.loop.ReadBy(in.lane, in.buf[in.w:])
		in.took(n)
		return err
	case in.raw == nil:
		in.hold()
		n, err := in.conn.Read(in.buf[in.w:])
		in.took(n)
		if n > 0 {
			return nil
		}
		return err
	}
	if err := in.raw.Read(in.try); err != nil {
		return err
	}
	if in.err != nil {
		return in.err
	}
	if in.n == 0 {
		return io.EOF
	}
	in.took(in.n)
	return nil
}

// once reads what a loop has found to be there, which may be nothing.
func (in *inlet) once() error {
	in.makeRoom()
	in.hold()
	n, err := in.loop.TryRead(in.buf[in.w:])
	if err == loop.ErrNotNow { //nolint:errorlint // it is never wrapped, and this is the hot path
		return nil
	}
	in.took(n)
	return err
}

// rest gives an empty buffer back.
func (in *inlet) rest() {
	if in.r == in.w {
		in.release()
	}
}

// readReady reads what is there. Without a held byte the buffer goes back to
// its pool before the wait.
func (in *inlet) readReady(fd uintptr) bool {
	in.hold()
	for {
		in.n, in.err = syscall.Read(int(fd), in.buf[in.w:])
		if !errors.Is(in.err, syscall.EINTR) {
			break
		}
	}
	if in.err == syscall.EAGAIN { //nolint:errorlint // a bare errno, and the hot path
		if in.w == 0 {
			in.release()
		}
		return false
	}
	return true
}

// took notes that n bytes were read. A full buffer asks for a larger one, one
// that is nearly empty for a smaller.
func (in *inlet) took(n int) {
	in.read.Add(uint64(n))
	in.w += n
	switch {
	case in.w == len(in.buf):
		in.class = min(in.class+1, len(buffers)-1)
	case in.class > 0 && in.w <= bufferSizes[in.class-1]/2:
		in.class--
	}
}

func (in *inlet) hold() {
	if in.buf == nil {
		in.box = getBuffer(in.class)
		in.buf = *in.box
	}
}

// makeRoom sees to free space behind the bytes held.
func (in *inlet) makeRoom() {
	switch {
	case in.buf == nil:
	case in.r == in.w:
		in.release()
	case in.r > 0:
		copy(in.buf, in.buf[in.r:in.w])
		in.r, in.w = 0, in.w-in.r
	case in.w == len(in.buf):
		in.grow()
	}
}

// grow moves the bytes held to a larger buffer.
func (in *inlet) grow() {
	old := *in
	in.buf, in.box = nil, nil
	for class, size := range bufferSizes {
		if size > len(old.buf) {
			in.box = getBuffer(class)
			in.buf = *in.box
			break
		}
	}
	if in.buf == nil {
		in.buf = make([]byte, 2*len(old.buf))
	}
	copy(in.buf, old.buf)
	old.release()
}

// release gives the buffer back. Nothing may point into it any more.
func (in *inlet) release() {
	if in.box != nil {
		for class, size := range bufferSizes {
			if size == len(in.buf) {
				buffers[class].Put(in.box)
			}
		}
	}
	in.buf, in.box, in.r, in.w = nil, nil, 0, 0
}
