package proxy

import (
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"idproxy/proxy/compress"
	"idproxy/proxy/eventloop"
	"idproxy/proxy/limit"
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
	lane *eventloop.Task
	raw  *rawInlet      // nil over TLS and of a loop
	read *atomic.Uint64 // counts the bytes that came

	box   *[]byte      // the buffer; nil when nothing is held
	held  *limit.Bytes // has counted the buffer; nil: it is not counted
	r, w  int          // bytes not consumed yet, in it
	class int          // of the next buffer, by what the last ones held
}

// rawInlet reads from a socket that Go's own poller waits for.
type rawInlet struct {
	*inlet
	conn syscall.RawConn
	try  func(fd uintptr) bool // readReady, made once
	n    int
	err  error
}

func newInlet(conn net.Conn, lane *eventloop.Task, read *atomic.Uint64) *inlet {
	in := &inlet{conn: conn, lane: lane, read: read}
	if _, ok := conn.(*eventloop.Conn); ok {
		return in
	}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			in.raw = &rawInlet{inlet: in, conn: raw}
			in.raw.try = in.raw.readReady
		}
	}
	return in
}

// bytes returns what was read and not consumed.
func (in *inlet) bytes() []byte {
	if in.box == nil {
		return nil
	}
	return (*in.box)[in.r:in.w]
}

// consume takes n bytes away.
func (in *inlet) consume(n int) { in.r += n }

// more waits for bytes behind those not consumed. It may move them.
func (in *inlet) more() error {
	in.makeRoom()
	if in.raw != nil {
		return in.raw.more()
	}
	if c, ok := in.conn.(*compress.Conn); ok { // it waits without a buffer
		if err := c.Wait(); err != nil {
			return err
		}
	}
	into := in.room()
	if c, ok := in.conn.(*eventloop.Conn); ok {
		n, err := c.ReadBy(in.lane, into)
		in.took(n)
		return err
	}
	n, err := in.conn.Read(into)
	in.took(n)
	if n > 0 {
		return nil
	}
	return err
}

// once reads from c, which a loop has, what it has found to be there, which may be nothing.
func (in *inlet) once(c *eventloop.Conn) error {
	in.makeRoom()
	n, err := c.TryRead(in.room())
	if err == eventloop.ErrNotNow { //nolint:errorlint // it is never wrapped, and this is the hot path
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

func (in *rawInlet) more() error {
	if err := in.conn.Read(in.try); err != nil {
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

// readReady reads what is there. Without a held byte the buffer goes back to
// its pool before the wait.
func (in *rawInlet) readReady(fd uintptr) bool {
	into := in.room()
	for {
		in.n, in.err = syscall.Read(int(fd), into)
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
	case in.w == len(*in.box):
		in.class = min(in.class+1, len(buffers)-1)
	case in.class > 0 && in.w <= bufferSizes[in.class-1]/2:
		in.class--
	}
}

// room returns the free space behind the bytes held, in a buffer.
func (in *inlet) room() []byte {
	if in.box == nil {
		in.box = getBuffer(in.class)
	}
	return (*in.box)[in.w:]
}

// makeRoom sees to free space behind the bytes held.
func (in *inlet) makeRoom() {
	switch {
	case in.box == nil:
	case in.r == in.w:
		in.release()
	case in.r > 0:
		copy(*in.box, in.bytes())
		in.r, in.w = 0, in.w-in.r
	case in.w == len(*in.box):
		in.grow()
	}
}

// keep counts the memory of what is not consumed while more is waited for, and sees to room for that.
// The smallest buffers are not counted. It reports false when of is full.
func (in *inlet) keep(of *limit.Bytes, most int) bool {
	if in.r > 0 {
		copy(*in.box, in.bytes())
		in.r, in.w = 0, in.w-in.r
	}
	size := len(*in.box)
	full := in.w == size
	if full {
		size = nextSize(size)
	}
	more := size
	if in.held != nil {
		more -= len(*in.box)
	}
	switch {
	case size == bufferSizes[0] || more == 0:
		return true
	case of.Take(more, most):
		if full {
			in.held = nil // what was counted goes on to the larger one
			if !in.pooled() {
				of.Discard(len(*in.box))
			}
			in.grow()
		}
		in.held = of
		return true
	case in.w <= bufferSizes[0]/2: // what is left of commands that were consumed
		small := *in
		in.box, in.held = getBuffer(0), nil
		copy(*in.box, small.bytes())
		small.release()
		return true
	}
	return false
}

// pooled reports whether somebody else gets the buffer when it is given back.
func (in *inlet) pooled() bool { return len(*in.box) <= bufferSizes[len(bufferSizes)-1] }

// full reports whether more than the largest pooled buffer is needed.
func (in *inlet) full() bool {
	return len(in.bytes()) == len(*in.box) && nextSize(len(*in.box)) > bufferSizes[len(bufferSizes)-1]
}

// count counts the buffer, if it is not and not of the smallest. It reports false when of is full.
func (in *inlet) count(of *limit.Bytes, most int) bool {
	if in.held != nil || len(*in.box) == bufferSizes[0] {
		return true
	}
	if !of.Take(len(*in.box), most) {
		return false
	}
	in.held = of
	return true
}

// nextSize returns the size of the buffer after one of a size.
func nextSize(size int) int {
	for _, next := range bufferSizes {
		if next > size {
			return next
		}
	}
	return 2 * size
}

// grow moves the bytes held to a larger buffer.
func (in *inlet) grow() {
	old := *in
	in.box, in.held = nil, nil
	size := nextSize(len(*old.box))
	if class := slices.Index(bufferSizes[:], size); class >= 0 {
		in.box = getBuffer(class)
	} else {
		larger := make([]byte, size)
		in.box = &larger
	}
	copy(*in.box, *old.box)
	old.release()
}

// release gives the buffer back. Nothing may point into it any more. One above
// the sizes that are pooled goes to the garbage.
func (in *inlet) release() {
	if in.box != nil {
		if in.held != nil {
			in.held.Give(len(*in.box))
			if !in.pooled() {
				in.held.Discard(len(*in.box))
			}
		}
		if class := slices.Index(bufferSizes[:], len(*in.box)); class >= 0 {
			buffers[class].Put(in.box)
		}
	}
	in.box, in.held, in.r, in.w = nil, nil, 0, 0
}
