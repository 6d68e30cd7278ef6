package replay

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
	MariaExtendedMetadata = 1 << 35
	MariaCacheMetadata    = 1 << 36
)

// Config says how a rawConn logs in.
type Config struct {
	Network, Addr  string // network "" is tcp
	User, Password string
	Schema         string
	Plugin         string // the client's first guess; "": the greeting's
	Caps           uint64 // beyond baseCaps, as far as the greeting has them
	Without        uint64 // of baseCaps
	Attrs          []byte // connection attributes, length included
	Tls            *tls.Config
	Cut            func(n int) int // how many of n bytes to write at once; nil: all
	Infile         func(c *Conn, name string)
	Garble         func(sealed []byte) []byte // what is sent in place of the encrypted password; nil: that
}

// baseCaps are what every client speaks.
const baseCaps = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_TRANSACTIONS |
	mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_MULTI_STATEMENTS | mysql.CLIENT_MULTI_RESULTS |
	mysql.CLIENT_PS_MULTI_RESULTS | mysql.CLIENT_LOCAL_FILES)

// greeting is what a server says first.
type greeting struct {
	Version  string
	Thread   uint32
	scramble []byte
	Caps     uint64
	plugin   string
}

// Conn is a client that shows every byte. It knows the protocol by itself, so that nothing is
// shared with what it tests. Methods panic with a rawError when the connection fails; see rawDo.
type Conn struct {
	Config
	Conn     net.Conn
	in       *bufio.Reader
	Greeting greeting
	caps     uint64 // agreed on
	Seq      byte   // of the next packet to send
	batch    []byte // packets that flush writes in one go
	batching bool
	Ended    bool // the server has closed: there is nobody to say goodbye to

	sent, Got   recording
	GotMasks    []Span // ranges of got that differ between sessions by nature
	Progress    int    // progress packets of MariaDB seen
	lastPayload []byte // first bytes of the last packet read
	oks         []OK   // every OK read by result
}

// Span is a range of bytes.
type Span struct{ From, To int }

// recording keeps the slices that are added to it, which nobody may change any more. Sessions are
// up to some 200 MB long: to copy them again and again, as they grow, takes longer than to run
// them.
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

// OK is what an OK packet says first.
type OK struct {
	affected, insertID uint64
	status             uint16
}

// rawError ends a conversation.
type rawError struct{ error }

// Do runs a conversation and returns what ended it early.
func Do(f func()) (err error) {
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

// Fail ends what Do runs, with this error.
func Fail(format string, args ...any) { panic(rawError{fmt.Errorf(format, args...)}) }

// rawTimeout bounds every conversation of a rawConn.
const rawTimeout = 3 * time.Minute

// Dial connects and reads the greeting.
func Dial(cfg Config) *Conn {
	if cfg.Network == "" {
		cfg.Network = "tcp"
	}
	conn, err := net.DialTimeout(cfg.Network, cfg.Addr, rawTimeout)
	if err != nil {
		Fail("dial: %w", err)
	}
	if err := conn.SetDeadline(time.Now().Add(rawTimeout)); err != nil {
		Fail("deadline: %w", err)
	}
	c := &Conn{Config: cfg, Conn: conn, in: bufio.NewReaderSize(conn, 64<<10)}
	c.readGreeting()
	return c
}

// Close ends the connection at once.
func (c *Conn) Close() { _ = c.Conn.Close() } // whatever the peer still sends is of no interest

func (c *Conn) readGreeting() {
	p := c.Packet()
	if len(p) == 0 || p[0] == mysql.ERR_HEADER {
		Fail("%w", earlyError(p))
	}
	if p[0] != 10 {
		Fail("greeting of protocol %d", p[0])
	}
	end := bytes.IndexByte(p, 0)
	g := &c.Greeting
	g.Version = string(p[1:end])
	at := end + 1
	g.Thread = binary.LittleEndian.Uint32(p[at:])
	c.MaskGot(4+at, 4+8) // thread id and first half of the scramble
	g.scramble = bytes.Clone(p[at+4 : at+12])
	g.Caps = uint64(binary.LittleEndian.Uint16(p[at+13:])) | uint64(binary.LittleEndian.Uint16(p[at+18:]))<<16
	c.MaskGot(4+at+13, 2)
	c.MaskGot(4+at+18, 2)
	if g.Caps&uint64(mysql.CLIENT_LONG_PASSWORD) == 0 { // MariaDB's way to say that there are more
		g.Caps |= uint64(binary.LittleEndian.Uint32(p[at+27:])) << 32
	}
	c.MaskGot(4+at+27, 4)
	g.scramble = append(g.scramble, p[at+31:at+43]...)
	c.MaskGot(4+at+31, 12)
	g.plugin, _, _ = strings.Cut(string(p[at+44:]), "\x00")
}

// MaskGot marks n bytes of the packet just read, counted from its header.
func (c *Conn) MaskGot(at, n int) {
	start := c.Got.Len() - len(c.lastPayload) - 4 + at
	c.GotMasks = append(c.GotMasks, Span{start, start + n})
}

// read reads n bytes and records them.
func (c *Conn) read(n int) []byte {
	b := make([]byte, n)
	if k, err := io.ReadFull(c.in, b); err != nil {
		c.Got.add(b[:k])
		Fail("read %d bytes after %d: %w", n, c.Got.Len(), err)
	}
	c.Got.add(b)
	return b
}

// Packet reads one packet, of several frames if need be.
func (c *Conn) Packet() []byte {
	var payload []byte
	for {
		h := c.read(4)
		n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
		c.Seq = h[3] + 1
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

// Drain reads what is left, to the end of the stream.
func (c *Conn) Drain() []byte {
	rest, err := io.ReadAll(c.in)
	c.Got.add(rest)
	if err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset by peer") {
		Fail("wait for the end: %w", err)
	}
	return rest
}

// Frames cuts a payload into frames from sequence number seq.
func Frames(seq byte, payload []byte) (out []byte, next byte) {
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

// Send sends a packet with the next sequence number.
func (c *Conn) Send(payload ...byte) {
	b, next := Frames(c.Seq, payload)
	c.Seq = next
	c.Write(b)
}

// Command sends a command.
func (c *Conn) Command(command byte, body ...byte) {
	c.Seq = 0
	c.Send(append([]byte{command}, body...)...)
}

// CommandText sends a command whose body is a text.
func (c *Conn) CommandText(command byte, body string) { c.Command(command, []byte(body)...) }

// Write sends bytes as they are.
func (c *Conn) Write(b []byte) {
	c.sent.add(b)
	if c.batching {
		c.batch = append(c.batch, b...)
		return
	}
	for len(b) > 0 {
		n := len(b)
		if c.Cut != nil {
			n = max(1, min(n, c.Cut(n)))
		}
		if _, err := c.Conn.Write(b[:n]); err != nil {
			Fail("write: %w", err)
		}
		b = b[n:]
	}
}

// Pipeline sends what f sends in one write.
func (c *Conn) Pipeline(f func()) {
	c.batching, c.batch = true, nil
	f()
	c.batching = false
	if _, err := c.Conn.Write(c.batch); err != nil {
		Fail("write: %w", err)
	}
}

// Has says whether a capability was agreed on.
func (c *Conn) Has(flag uint64) bool { return c.caps&flag != 0 }

// MariaDB says that the greeting was that of a MariaDB.
func (c *Conn) MariaDB() bool { return strings.Contains(c.Greeting.Version, "MariaDB") }

// ServerError reads an ERR packet.
func ServerError(p []byte) error {
	if len(p) < 9 {
		return fmt.Errorf("error packet of %d bytes", len(p))
	}
	return earlyError(p)
}

// earlyError reads an ERR packet that may have no SQL state, as those in front of a login.
func earlyError(p []byte) error {
	if len(p) < 3 {
		return fmt.Errorf("error packet of %d bytes", len(p))
	}
	msg := p[3:]
	e := &mysql.MyError{Code: binary.LittleEndian.Uint16(p[1:])}
	if len(msg) > 0 && msg[0] == '#' {
		e.State, msg = string(msg[1:6]), msg[6:]
	}
	e.Message = string(msg)
	return e
}

const (
	DeprecateEOF = uint64(mysql.CLIENT_DEPRECATE_EOF)
	SessionTrack = uint64(mysql.CLIENT_SESSION_TRACK)
	Attributes   = uint64(mysql.CLIENT_QUERY_ATTRIBUTES)
	OptionalMeta = uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)
	MariaAll     = MariaExtendedMetadata | MariaCacheMetadata | mariaProgress
	LongFlag     = uint64(mysql.CLIENT_LONG_PASSWORD)
)
