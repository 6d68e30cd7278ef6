package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Capabilities that go-mysql does not name. MariaDB keeps its own in the upper
// 32 bits.
const (
	// ClientMySQL is LONG_PASSWORD. MariaDB's programs leave it clear to say that
	// extended capabilities follow; what each side says is not to be touched.
	ClientMySQL               uint64 = 1
	MultiFactor               uint64 = 1 << 28
	MariaDBStmtBulkOperations uint64 = 1 << 34
	MariaDBExtendedMetadata   uint64 = 1 << 35
	MariaDBCacheMetadata      uint64 = 1 << 36
)

// Sizes and places in handshake packets.
const (
	responseFixed                = 32
	extendedCapsInResponse       = 28
	greetingFixedBehindVersion   = 31
	extendedCapsInGreetingOffset = 27
)

// Greeting is the server's first packet (protocol 10).
type Greeting struct {
	Version  string // as sent, with MariaDB's "5.5.5-" prefix
	ThreadID uint32
	Caps     uint64
	Status   uint16
	Plugin   string
	Scramble []byte // what it mixes with passwords

	at int // offset of the byte behind the version's NUL
}

// ParseGreeting reads a greeting.
func ParseGreeting(payload []byte) (*Greeting, error) {
	if len(payload) == 0 || payload[0] != 10 {
		return nil, errors.New("not a MySQL protocol 10 greeting")
	}
	end := bytes.IndexByte(payload, 0)
	if end < 0 || len(payload) < end+1+greetingFixedBehindVersion {
		return nil, errors.New("greeting is cut off")
	}
	p := payload[end+1:]
	g := &Greeting{
		Version:  string(payload[1:end]),
		ThreadID: binary.LittleEndian.Uint32(p),
		Status:   binary.LittleEndian.Uint16(p[16:]),
		at:       end + 1,
	}
	g.Caps = uint64(binary.LittleEndian.Uint16(p[13:])) | uint64(binary.LittleEndian.Uint16(p[18:]))<<16
	if g.Caps&ClientMySQL == 0 {
		g.Caps |= uint64(binary.LittleEndian.Uint32(p[extendedCapsInGreetingOffset:])) << 32
	}
	r := NewReader(p[greetingFixedBehindVersion:])
	g.Scramble = append(bytes.Clone(p[4:12]), bytes.TrimSuffix(r.Bytes(max(13, int(p[20])-8)), []byte{0})...)
	if name := bytes.TrimRight(r.Rest(), "\x00"); g.Caps&uint64(mysql.CLIENT_PLUGIN_AUTH) != 0 {
		g.Plugin = string(name)
	}
	return g, nil
}

// SetCaps writes caps into the greeting it was parsed from.
func (g *Greeting) SetCaps(payload []byte, caps uint64) {
	p := payload[g.at:]
	binary.LittleEndian.PutUint16(p[13:], uint16(caps))
	binary.LittleEndian.PutUint16(p[18:], uint16(caps>>16))
	if g.Caps&ClientMySQL == 0 {
		binary.LittleEndian.PutUint32(p[extendedCapsInGreetingOffset:], uint32(caps>>32))
	}
	g.Caps = caps
}

// MariaDB reports whether the server is MariaDB, by its version string.
func (g *Greeting) MariaDB() bool {
	return bytes.Contains(bytes.ToLower([]byte(g.Version)), []byte("mariadb"))
}

// Number returns the server's version as version comments compare it: 101119
// for MariaDB 10.11.19, 90704 for MySQL 9.7.4. It is 0 when the string does not
// say that the server is one of the two: others read such comments in their
// own ways.
func (g *Greeting) Number() uint32 {
	text := g.Version
	if g.MariaDB() {
		// for replicas that took only one digit for the major version
		text = strings.TrimPrefix(text, "5.5.5-")
	}
	number, build, _ := strings.Cut(text, "-")
	parts := strings.Split(number, ".")
	if len(parts) != 3 || !g.MariaDB() && !plainBuild(build) {
		return 0
	}
	n := uint32(0)
	for _, part := range parts {
		v, err := strconv.ParseUint(part, 10, 8)
		if err != nil || v > 99 {
			return 0
		}
		n = n*100 + uint32(v)
	}
	return n
}

// plainBuild reports whether what follows the number in a version string is
// what MySQL's own builds and their distributors write: numbers, log, debug and
// the like.
func plainBuild(build string) bool {
	for word := range strings.SplitSeq(build, "-") {
		word, _, _ = strings.Cut(word, ".")
		if word == "" || '0' <= word[0] && word[0] <= '9' {
			continue
		}
		switch word {
		case "log", "debug", "commercial", "community", "enterprise", "cluster", "rds", "azure", "google":
		default:
			return false
		}
	}
	return true
}

// Response is what the proxy reads of a HandshakeResponse41 or an SSLRequest,
// which is the same packet cut off behind its fixed part.
type Response struct {
	Caps       uint64
	Charset    byte
	SSLRequest bool
	User       string
	Schema     string
	Plugin     string

	proof, plugin []byte // of the packet
	behind        int    // how much of the packet stands behind the connection attributes
}

// TakeLevel returns the packet without the level of compression that a client of zstd puts behind all
// else, and the level; 0: there is none.
func (resp *Response) TakeLevel(payload []byte) ([]byte, byte) {
	if resp.behind == 0 {
		return payload, 0
	}
	at := len(payload) - resp.behind
	level := payload[at]
	return append(payload[:at], payload[at+1:]...), level
}

// Blank takes out of the packet what the client says of its password, and has it name a plugin that
// no server has: the server switches to the one that it wants.
func (resp *Response) Blank() { blank(resp.proof, resp.plugin) }

func blank(proof, plugin []byte) {
	clear(proof)
	if len(plugin) > 0 {
		plugin[0] = '_'
	}
}

// ParseResponse reads the client's answer to a greeting. tlsCaps is 0, or the
// capabilities of the SSLRequest before it: the server takes those and does
// not read them again, so neither does this.
func ParseResponse(payload []byte, tlsCaps uint64) (*Response, error) {
	if len(payload) < responseFixed {
		return nil, fmt.Errorf("handshake response of %d bytes is cut off (or the client is older than MySQL 4.1)", len(payload))
	}
	resp := &Response{Caps: uint64(binary.LittleEndian.Uint32(payload)), Charset: payload[8]}
	if resp.Caps&ClientMySQL == 0 {
		resp.Caps |= uint64(binary.LittleEndian.Uint32(payload[extendedCapsInResponse:])) << 32
	}
	if tlsCaps != 0 {
		resp.Caps = tlsCaps
	}
	if resp.Caps&uint64(mysql.CLIENT_PROTOCOL_41) == 0 {
		return nil, errors.New("client does not speak protocol 4.1")
	}
	if len(payload) == responseFixed && tlsCaps == 0 && resp.Caps&uint64(mysql.CLIENT_SSL) != 0 {
		resp.SSLRequest = true
		return resp, nil
	}
	r := NewReader(payload[responseFixed:])
	resp.User = string(r.NulBytes())
	switch {
	case resp.has(mysql.CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA):
		resp.proof = r.LenencBytes()
	case resp.has(mysql.CLIENT_SECURE_CONNECTION):
		resp.proof = r.Bytes(int(r.Uint8()))
	default:
		resp.proof = r.NulBytes()
	}
	if resp.has(mysql.CLIENT_CONNECT_WITH_DB) {
		resp.Schema = string(cString(&r))
	}
	if !r.OK() {
		return nil, errors.New("handshake response is malformed")
	}
	if resp.has(mysql.CLIENT_PLUGIN_AUTH) {
		resp.plugin = cString(&r)
		resp.Plugin = string(resp.plugin)
	}
	if resp.has(mysql.CLIENT_CONNECT_ATTRS) {
		r.LenencBytes()
	}
	if r.OK() {
		resp.behind = len(r.Rest())
	}
	return resp, nil
}

func (resp *Response) has(flag uint32) bool { return resp.Caps&uint64(flag) != 0 }

// cString reads up to a NUL or, as some drivers leave the last one out, up to
// the end.
func cString(r *Reader) []byte {
	if rest := r.b; bytes.IndexByte(rest, 0) < 0 {
		return r.Rest()
	}
	return r.NulBytes()
}

// SetResponseCaps writes caps into a HandshakeResponse41 or SSLRequest that
// ParseResponse has accepted. Everything else in it stays as the client sent
// it.
func SetResponseCaps(payload []byte, caps uint64) {
	extended := binary.LittleEndian.Uint32(payload)&uint32(ClientMySQL) == 0
	binary.LittleEndian.PutUint32(payload, uint32(caps))
	if extended {
		binary.LittleEndian.PutUint32(payload[extendedCapsInResponse:], uint32(caps>>32))
	}
}

// ChangeUser is what the proxy reads of a COM_CHANGE_USER.
type ChangeUser struct {
	User   []byte
	Plugin string

	proof, plugin []byte
}

// ParseChangeUser reads a COM_CHANGE_USER behind its first byte. What it cannot read is empty.
func ParseChangeUser(payload []byte, caps uint64) (c ChangeUser) {
	r := NewReader(payload)
	c.User = cString(&r)
	if caps&uint64(mysql.CLIENT_SECURE_CONNECTION) != 0 {
		c.proof = r.Bytes(int(r.Uint8()))
	} else {
		c.proof = r.NulBytes()
	}
	r.NulBytes() // schema
	r.Uint16()   // character set
	if caps&uint64(mysql.CLIENT_PLUGIN_AUTH) != 0 {
		c.plugin = cString(&r)
		c.Plugin = string(c.plugin)
	}
	return c
}

// Blank is that of a Response.
func (c ChangeUser) Blank() { blank(c.proof, c.plugin) }
