package wire

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// binaryLen returns these for types whose values carry their own length.
const (
	lenencLen = 0  // a length-encoded string: all types but those of binaryLens
	byteLen   = -1 // one length byte: dates and times
	nullLen   = -2 // no value at all
)

// binaryLens are the bytes that values take in the binary protocol, by their types.
var binaryLens = [256]int8{
	mysql.MYSQL_TYPE_NULL: nullLen,
	mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_YEAR: 2,
	mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_INT24: 4, mysql.MYSQL_TYPE_FLOAT: 4,
	mysql.MYSQL_TYPE_LONGLONG: 8, mysql.MYSQL_TYPE_DOUBLE: 8,
	mysql.MYSQL_TYPE_DATE: byteLen, mysql.MYSQL_TYPE_DATETIME: byteLen,
	mysql.MYSQL_TYPE_TIMESTAMP: byteLen, mysql.MYSQL_TYPE_TIME: byteLen,
}

// binaryLen returns how many bytes a value of type t takes in the binary
// protocol.
func binaryLen(t byte) int { return int(binaryLens[t]) }

// QueryText returns where the SQL text starts in a COM_QUERY payload: behind
// the command byte, or behind the query attributes when the session negotiated
// CLIENT_QUERY_ATTRIBUTES. ok is false when the payload ends before that or is
// malformed.
func QueryText(payload []byte, caps uint64) (at int, ok bool) {
	if caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) == 0 {
		return 1, len(payload) >= 1
	}
	if len(payload) >= 3 && payload[1] == 0 && payload[2] == 1 {
		return 3, true
	}
	r := NewReader(payload)
	r.Uint8()
	count := r.Lenenc()
	r.Lenenc() // parameter_set_count, always 1
	if count > 0 {
		skipAttributes(&r, count)
	}
	return len(payload) - r.Len(), r.OK()
}

func skipAttributes(r *Reader, count uint64) {
	if count > uint64(r.Len()) { // each takes more than a byte: a cap before the loop
		r.Bytes(-1)
		return
	}
	nulls := r.Bytes(int(count+7) / 8)
	if r.Uint8() != 1 {
		r.Bytes(-1)
		return
	}
	types := *r
	for range count {
		r.Uint16()
		r.LenencBytes() // name
	}
	for i := range count {
		t := types.Uint16()
		types.LenencBytes()
		if !r.OK() {
			return
		}
		if nulls[i/8]&(1<<(i%8)) == 0 {
			skipBinary(r, byte(t))
		}
	}
}

func skipBinary(r *Reader, t byte) {
	switch n := binaryLen(t); n {
	case byteLen:
		r.Bytes(int(r.Uint8()))
	case lenencLen:
		r.LenencBytes()
	default:
		r.Bytes(max(n, 0)) // none of NULL
	}
}

// Prepared is the first packet of a successful COM_STMT_PREPARE reply.
type Prepared struct {
	ID      uint32
	Columns uint16
	Params  uint16
	// Definitions is false when the server sends none, as the session's
	// resultset_metadata=NONE asks.
	Definitions bool
}

// PreparedLen is the least length of that packet. A shorter one that starts
// with 0x00 is a plain OK, which some middlewares send.
const PreparedLen = 12

// ParsePrepared reads a COM_STMT_PREPARE reply's first packet.
func ParsePrepared(payload []byte) (p Prepared, ok bool) {
	r := NewReader(payload)
	r.Uint8()
	p = Prepared{ID: r.Uint32(), Columns: r.Uint16(), Params: r.Uint16(), Definitions: true}
	r.Bytes(3) // filler, warnings
	ok = r.OK()
	if r.Len() > 0 {
		p.Definitions = r.Uint8() != 0
	}
	return p, ok
}

// SetParams writes another number of parameters into a COM_STMT_PREPARE reply's
// first packet.
func SetParams(payload []byte, params uint16) {
	binary.LittleEndian.PutUint16(payload[7:], params)
}

// Column is a column definition (protocol 4.1).
type Column struct {
	Name      string
	Collation uint16
	Type      byte
	Flags     uint16
	Length    uint32 // display length, in bytes of Collation's character set
	Decimals  byte
	Stored    bool // it is a column of a table, and no expression
}

// ParseColumn reads a column definition. extended says that the session
// negotiated MariaDBExtendedMetadata, which adds a field before the fixed
// part.
func ParseColumn(payload []byte, extended bool) (c Column, ok bool) {
	r := NewReader(payload)
	for range 4 { // catalog, schema, table, original table
		c.Stored = len(r.LenencBytes()) > 0
	}
	c.Name = string(r.LenencBytes())
	r.LenencBytes() // original name
	if extended {
		r.LenencBytes()
	}
	r.Lenenc() // length of the fixed part
	c.Collation = r.Uint16()
	c.Length = r.Uint32()
	c.Type = r.Uint8()
	c.Flags = r.Uint16()
	c.Decimals = r.Uint8()
	return c, r.OK()
}
