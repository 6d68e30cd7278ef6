package compress

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// headerLen is the size of a compressed packet's header.
const headerLen = 7

// Both servers compress nothing below this size.
const least = 50

// maxPiece is the most that goes into one compressed packet to the client.
const maxPiece = 256 << 10

// maxLogin bounds a packet of the login.
const maxLogin = 1 << 20

// Error is why the client's stream cannot be read on. It is that of both servers.
type Error struct {
	Code   uint16
	Reason string
}

// Error implements error.
func (e *Error) Error() string { return e.Reason }

func outOfOrder(reason string) error {
	return &Error{mysql.ER_NET_PACKETS_OUT_OF_ORDER, "packets out of order: " + reason}
}

func damaged(reason string) error {
	return &Error{mysql.ER_NET_UNCOMPRESS_ERROR, "compressed packet cannot be read: " + reason}
}

// Conn is the connection of a client whose login goes on. Its packets are plain until End has written
// the last one of the login; all that is read and written behind that is compressed.
//
// One goroutine may read while another one writes.
type Conn struct {
	net.Conn
	method  Method
	answers func() bool
	over    atomic.Bool // the login
	numbers numbers

	in struct {
		frames frames
		box    *[]byte // what was read and nobody took yet; nil: nothing
		taken  int     // of it
	}
	out struct {
		frames  frames
		started bool // by End
	}
}

// New takes c over, whose client waits for an answer to its login. answers reports whether what the
// client says answers a packet of the server, where it may be a command as well.
func New(c net.Conn, m Method, answers func() bool) *Conn {
	return &Conn{Conn: c, method: m, answers: answers}
}

// Of returns how a connection is compressed: none, zlib or zstd.
func Of(c net.Conn) string {
	if c, ok := c.(*Conn); ok {
		return c.method.String()
	}
	return "none"
}

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.Wait(); err != nil {
		return 0, err
	}
	in := &c.in
	n := copy(b, (*in.box)[in.taken:])
	in.taken += n
	if in.taken == len(*in.box) {
		putSpace(in.box)
		in.box, in.taken = nil, 0
	}
	return n, nil
}

// Wait waits for something to read. Meanwhile nothing is held for it.
func (c *Conn) Wait() error {
	for c.in.box == nil {
		if err := c.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads a packet: of the login, or a compressed one.
func (c *Conn) fill() error {
	var header [headerLen]byte
	n := headerLen
	if !c.over.Load() { // the login may be over when something comes
		n = wire.HeaderLen
	}
	if _, err := io.ReadFull(c.Conn, header[:n]); err != nil {
		return err
	}
	if !c.over.Load() {
		return c.login(header[:n])
	}
	if err := readRest(c.Conn, header[n:]); err != nil {
		return err
	}
	if !c.numbers.take(header[3], c.in.frames.inside(), c.answers()) {
		return outOfOrder("a compressed packet of the client has a number that is not its turn")
	}
	return c.packet(wire.PayloadLen(header[:]), wire.PayloadLen(header[wire.HeaderLen:]))
}

// login reads a packet of the login as it is. A command cannot be among them: whoever sends one
// compresses it.
func (c *Conn) login(header []byte) error {
	n := wire.PayloadLen(header)
	switch {
	case header[3] == 0:
		return outOfOrder("the client sent a command before its login was answered")
	case n > maxLogin:
		return wire.ErrPacketTooLarge
	}
	box := getSpace()
	*box = append(*box, header...)
	return c.hold(box, receive(c.Conn, box, n))
}

// packet reads a compressed packet of n bytes, of which size bytes come; 0: it is not compressed.
func (c *Conn) packet(n, size int) error {
	box := getSpace()
	if err := receive(c.Conn, box, n); err != nil || size == 0 {
		c.number(box)
		return c.hold(box, err)
	}
	defer putSpace(box)
	if size > c.method.most(n) {
		return damaged("less comes out than its header says")
	}
	plain := getSpace()
	*plain = append(*plain, make([]byte, size)...)
	err := c.method.expand(*plain, *box)
	if err != nil {
		err = damaged(err.Error())
	}
	c.number(plain)
	return c.hold(plain, err)
}

// number translates the numbers of packets in what came.
func (c *Conn) number(box *[]byte) { c.numbers.toServer(&c.in.frames, *box) }

// hold keeps what came for who reads.
func (c *Conn) hold(box *[]byte, err error) error {
	if err != nil || len(*box) == 0 {
		putSpace(box)
		return err
	}
	c.in.box = box
	return nil
}

// Write implements net.Conn. While the login goes on, it writes b as it is.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.out.started {
		return c.Conn.Write(b)
	}
	translated := getSpace()
	defer putSpace(translated)
	written := 0
	for rest := c.numbers.toClient(&c.out.frames, b, translated); len(rest) > 0; {
		n := min(len(rest), maxPiece)
		if err := c.send(rest[:n]); err != nil {
			return written, err
		}
		rest, written = rest[n:], written+n
	}
	return written, nil
}

// End writes b, which ends the login, as it is, if it goes on. What the client sends when it has read
// that is compressed, so reading changes before.
func (c *Conn) End(b []byte) error {
	if c.out.started {
		_, err := c.Write(b)
		return err
	}
	c.over.Store(true)
	c.out.started = true
	_, err := c.Conn.Write(b)
	return err
}

// send sends a compressed packet.
func (c *Conn) send(piece []byte) error {
	box := getSpace()
	defer putSpace(box)
	packet, size := append(*box, make([]byte, headerLen)...), 0
	if len(piece) >= least {
		packet, size = c.method.compress(packet, piece), len(piece)
	}
	if size == 0 || len(packet)-headerLen >= size {
		packet, size = append(packet[:headerLen], piece...), 0
	}
	n := len(packet) - headerLen
	binary.LittleEndian.PutUint32(packet, uint32(n)|uint32(c.numbers.draw())<<24)
	packet[4], packet[5], packet[6] = byte(size), byte(size>>8), byte(size>>16)
	*box = packet
	_, err := c.Conn.Write(packet)
	return err
}

// keptSpace is the size up to which space is kept for the next one who needs some.
const keptSpace = 2 * maxPiece

var spaces = sync.Pool{New: func() any { return new([]byte) }}

// getSpace returns a slice of no bytes.
func getSpace() *[]byte { return spaces.Get().(*[]byte) }

// putSpace gives it back. There may have been a password in it.
func putSpace(box *[]byte) {
	if cap(*box) > keptSpace {
		return
	}
	clear(*box)
	*box = (*box)[:0]
	spaces.Put(box)
}

// step is how much is read of a packet before there is space for more of it: its length is the
// client's word.
const step = 64 << 10

// receive appends n bytes of c.
func receive(c net.Conn, box *[]byte, n int) error {
	for n > 0 {
		k, have := min(n, max(step, len(*box))), len(*box)
		*box = append(*box, make([]byte, k)...)
		if err := readRest(c, (*box)[have:]); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// readRest fills b, which goes on with a packet.
func readRest(c net.Conn, b []byte) error {
	_, err := io.ReadFull(c, b)
	if err == io.EOF { //nolint:errorlint // io.ReadFull does not wrap it
		return io.ErrUnexpectedEOF
	}
	return err
}
