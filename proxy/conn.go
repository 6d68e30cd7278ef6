package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Buffer sizes: reads start small and grow once they fill a buffer. Both are
// at or above what MySQL Router and TiProxy settled on.
const (
	smallBuffer = 16 << 10
	largeBuffer = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// inlet reads from a connection. It holds a buffer only while there are bytes
// in it: a session that waits for its client costs no buffer. Over TLS the
// buffer is kept while waiting, for crypto/tls reads into what it is given.
type inlet struct {
	conn net.Conn
	raw  syscall.RawConn // nil over TLS

	buf   []byte // nil when nothing is held
	r, w  int    // bytes not consumed yet: buf[r:w]
	large bool   // the last read filled its buffer

	try func(fd uintptr) bool // readReady, made once
	n   int
	err error
}

func newInlet(conn net.Conn) *inlet {
	in := &inlet{conn: conn}
	if c, ok := conn.(syscall.Conn); ok {
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
	if in.raw == nil {
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

func (in *inlet) took(n int) {
	in.large = in.w+n == len(in.buf)
	in.w += n
}

func (in *inlet) hold() {
	switch {
	case in.buf != nil:
	case in.large:
		in.buf = largeBuffers.Get().(*[largeBuffer]byte)[:]
	default:
		in.buf = smallBuffers.Get().(*[smallBuffer]byte)[:]
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
		grown := make([]byte, 2*len(in.buf))
		copy(grown, in.buf)
		w := in.w
		in.release()
		in.buf, in.w = grown, w
	}
}

// release gives the buffer back. Nothing may point into it any more.
func (in *inlet) release() {
	switch len(in.buf) {
	case smallBuffer:
		smallBuffers.Put((*[smallBuffer]byte)(in.buf))
	case largeBuffer:
		largeBuffers.Put((*[largeBuffer]byte)(in.buf))
	}
	in.buf, in.r, in.w = nil, 0, 0
}
