package integration_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Capabilities of MariaDB, which go-mysql does not name.
const (
	mariaProgress         = 1 << 32
	mariaExtendedMetadata = 1 << 35
	mariaCacheMetadata    = 1 << 36
)

// rawConfig says how a rawConn logs in.
type rawConfig struct {
	network, addr  string // network "" is tcp
	user, password string
	schema         string
	plugin         string // the client's first guess; "": the greeting's
	caps           uint64 // beyond baseCaps, as far as the greeting has them
	without        uint64 // of baseCaps
	attrs          []byte // connection attributes, length included
	tls            *tls.Config
	cut            func(n int) int // how many of n bytes to write at once; nil: all
	infile         func(c *rawConn, name string)
}

// baseCaps are what every client speaks.
const baseCaps = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_TRANSACTIONS |
	mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_MULTI_STATEMENTS | mysql.CLIENT_MULTI_RESULTS |
	mysql.CLIENT_PS_MULTI_RESULTS | mysql.CLIENT_LOCAL_FILES)

// greeting is what a server says first.
type greeting struct {
	version  string
	thread   uint32
	scramble []byte
	caps     uint64
	plugin   string
}

// rawConn is a client that shows every byte. It knows the protocol by itself, so that nothing is shared with what it
// tests. Methods panic with a rawError when the connection fails; see rawDo.
type rawConn struct {
	rawConfig
	conn     net.Conn
	in       *bufio.Reader
	greeting greeting
	caps     uint64 // agreed on
	seq      byte   // of the next packet to send
	batch    []byte // packets that flush writes in one go
	batching bool
	ended    bool // the server has closed: there is nobody to say goodbye to

	sent, got   recording
	gotMasks    []span  // ranges of got that differ between sessions by nature
	progress    int     // progress packets of MariaDB seen
	lastPayload []byte  // first bytes of the last packet read
	oks         []rawOK // every OK read by result
}

type span struct{ from, to int }

// recording keeps the slices that are added to it, which nobody may change any more. Sessions are up to some 200 MB
// long: to copy them again and again, as they grow, takes longer than to run them.
type recording struct {
	parts [][]byte
	size  int
}

func (r *recording) add(b []byte) {
	r.parts = append(r.parts, b)
	r.size += len(b)
}

func (r *recording) Len() int { return r.size }

// Bytes is a copy of all.
func (r *recording) Bytes() []byte { return slices.Concat(r.parts...) }

// rawOK is what an OK packet says first.
type rawOK struct {
	affected, insertID uint64
	status             uint16
}

// rawError ends a conversation.
type rawError struct{ error }

// rawDo runs a conversation and returns what ended it early.
func rawDo(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case rawError:
			err = e.error
		default:
			panic(e)
		}
	}()
	f()
	return nil
}

func fail(format string, args ...any) { panic(rawError{fmt.Errorf(format, args...)}) }

// rawTimeout bounds every conversation of a rawConn.
const rawTimeout = 3 * time.Minute

// dialRaw connects and reads the greeting.
func dialRaw(cfg rawConfig) *rawConn {
	if cfg.network == "" {
		cfg.network = "tcp"
	}
	conn, err := net.DialTimeout(cfg.network, cfg.addr, rawTimeout)
	if err != nil {
		fail("dial: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		fail("deadline: %w", err)
	}
	c := &rawConn{rawConfig: cfg, conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.readGreeting()
	return c
}

func (c *rawConn) close() { _ = c.conn.Close() } // whatever the peer still sends is of no interest

func (c *rawConn) readGreeting() {
	p := c.packet()
	if len(p) == 0 || p[0] == mysql.ERR_HEADER {
		fail("%w", rawServerError(p, false))
	}
	if p[0] != 10 {
		fail("greeting of protocol %d", p[0])
	}
	end := bytes.IndexByte(p, 0)
	g := &c.greeting
	g.version = string(p[1:end])
	at := end + 1
	g.thread = binary.LittleEndian.Uint32(p[at:])
	c.maskGot(4+at, 4+8) // thread id and first half of the scramble
	g.scramble = bytes.Clone(p[at+4 : at+12])
	g.caps = uint64(binary.LittleEndian.Uint16(p[at+13:])) | uint64(binary.LittleEndian.Uint16(p[at+18:]))<<16
	c.maskGot(4+at+13, 2)
	c.maskGot(4+at+18, 2)
	if g.caps&uint64(mysql.CLIENT_LONG_PASSWORD) == 0 { // MariaDB's way to say that there are more
		g.caps |= uint64(binary.LittleEndian.Uint32(p[at+27:])) << 32
	}
	c.maskGot(4+at+27, 4)
	g.scramble = append(g.scramble, p[at+31:at+43]...)
	c.maskGot(4+at+31, 12)
	g.plugin, _, _ = strings.Cut(string(p[at+44:]), "\x00")
}

// maskGot marks n bytes of the packet just read, counted from its header.
func (c *rawConn) maskGot(at, n int) {
	start := c.got.Len() - len(c.lastPayload) - 4 + at
	c.gotMasks = append(c.gotMasks, span{start, start + n})
}

// read reads n bytes and records them.
func (c *rawConn) read(n int) []byte {
	b := make([]byte, n)
	if k, err := io.ReadFull(c.in, b); err != nil {
		c.got.add(b[:k])
		fail("read %d bytes after %d: %w", n, c.got.Len(), err)
	}
	c.got.add(b)
	return b
}

// packet reads one packet, of several frames if need be.
func (c *rawConn) packet() []byte {
	var payload []byte
	for {
		h := c.read(4)
		n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
		c.seq = h[3] + 1
		frame := c.read(n)
		if payload == nil {
			payload = frame
		} else {
			payload = append(payload, frame...)
		}
		if n < 1<<24-1 {
			c.lastPayload = payload
			return payload
		}
	}
}

// drain reads what is left, to the end of the stream.
func (c *rawConn) drain() []byte {
	rest, err := io.ReadAll(c.in)
	c.got.add(rest)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
		fail("wait for the end: %w", err)
	}
	return rest
}

// frames cuts a payload into frames from sequence number seq.
func frames(seq byte, payload []byte) (out []byte, next byte) {
	out = make([]byte, 0, len(payload)+4*(len(payload)/(1<<24-1)+1))
	for {
		n := min(len(payload), 1<<24-1)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), seq)
		out = append(out, payload[:n]...)
		payload = payload[n:]
		seq++
		if n < 1<<24-1 {
			return out, seq
		}
	}
}

// send sends a packet with the next sequence number.
func (c *rawConn) send(payload ...byte) {
	b, next := frames(c.seq, payload)
	c.seq = next
	c.write(b)
}

// command sends a command.
func (c *rawConn) command(command byte, body ...byte) {
	c.seq = 0
	c.send(append([]byte{command}, body...)...)
}

func (c *rawConn) commandText(command byte, body string) { c.command(command, []byte(body)...) }

// write sends bytes as they are.
func (c *rawConn) write(b []byte) {
	c.sent.add(b)
	if c.batching {
		c.batch = append(c.batch, b...)
		return
	}
	for len(b) > 0 {
		n := len(b)
		if c.cut != nil {
			n = max(1, min(n, c.cut(n)))
		}
		if _, err := c.conn.Write(b[:n]); err != nil {
			fail("write: %w", err)
		}
		b = b[n:]
	}
}

// pipeline sends what f sends in one write.
func (c *rawConn) pipeline(f func()) {
	c.batching, c.batch = true, nil
	f()
	c.batching = false
	if _, err := c.conn.Write(c.batch); err != nil {
		fail("write: %w", err)
	}
}

func (c *rawConn) has(flag uint64) bool { return c.caps&flag != 0 }

func (c *rawConn) mariaDB() bool { return strings.Contains(c.greeting.version, "MariaDB") }

// rawServerError reads an ERR packet. Before the login there is no SQL state.
func rawServerError(p []byte, state bool) error {
	if len(p) < 3 || state && len(p) < 9 {
		return fmt.Errorf("error packet of %d bytes", len(p))
	}
	msg := p[3:]
	e := &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:])}
	if state || len(msg) > 0 && msg[0] == '#' {
		e.State, msg = string(msg[1:6]), msg[6:]
	}
	e.Message = string(msg)
	return e
}
