package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Number is a result of one row and one column, which holds a BIGINT UNSIGNED, as servers answer SELECT
// LAST_INSERT_ID(): for those that do not.
type Number struct {
	Column   string // its name, ASCII
	Nullable bool   // as a variable is
	Value    uint64
	Binary   bool   // it is the result of an execution
	Status   uint16 // of the session; more results follow where it says so
}

// binaryCollation is that of numbers.
const binaryCollation = 63

// Append appends the packets of the result, the first with sequence number seq, and returns the last one's.
func (n *Number) Append(dst []byte, seq byte, caps uint64) (_ []byte, last byte) {
	packet := func(payload []byte) {
		dst = AppendPacket(dst, seq, payload)
		seq++
	}
	columns := []byte{1}
	if caps&(uint64(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA)|MariaDBCacheMetadata) != 0 {
		columns = append(columns, 1) // the definition follows
	}
	packet(columns)
	packet(n.definition(caps))
	eof := []byte{EOFByte, 0, 0, byte(n.Status), byte(n.Status >> 8)}
	if caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		packet(eof)
	}
	if n.Binary {
		packet(binary.LittleEndian.AppendUint64([]byte{0, 0}, n.Value)) // header, bits of NULL
	} else {
		packet(mysql.PutLengthEncodedString(strconv.AppendUint(nil, n.Value, 10)))
	}
	if caps&uint64(mysql.CLIENT_DEPRECATE_EOF) != 0 { // an OK packet: no rows, no insert id, status, warnings
		eof = []byte{EOFByte, 0, 0, byte(n.Status), byte(n.Status >> 8), 0, 0}
	}
	packet(eof)
	return dst, seq - 1
}

// definition is that of a column that no table has.
func (n *Number) definition(caps uint64) []byte {
	b := []byte("\x03def\x00\x00\x00") // catalog, schema, table, its own name
	b = append(b, mysql.PutLengthEncodedString([]byte(n.Column))...)
	b = append(b, 0) // its own name
	if caps&MariaDBExtendedMetadata != 0 {
		b = append(b, 0)
	}
	b = append(b, 12) // bytes that follow
	b = binary.LittleEndian.AppendUint16(b, binaryCollation)
	b = binary.LittleEndian.AppendUint32(b, 21) // digits
	b = append(b, mysql.MYSQL_TYPE_LONGLONG)
	flags := uint16(mysql.UNSIGNED_FLAG | mysql.BINARY_FLAG)
	if !n.Nullable {
		flags |= mysql.NOT_NULL_FLAG
	}
	b = binary.LittleEndian.AppendUint16(b, flags)
	return append(b, 0, 0, 0) // decimals, filler
}

// NumberReply is what a server answered with a result of one column, which holds a number, and at most one row.
type NumberReply struct {
	Value    uint64 // of the row, 0 where there is none
	payloads [][]byte
	ends     []int // which of them have the session's status
	row      int   // which of them is the row; 0: there is none
	binary   bool
}

// ReadNumber reads such a result from whole frames. An ERR packet is a *mysql.MyError, anything else that is no
// such result ErrCut. binary: it is the result of an execution.
func ReadNumber(frames []byte, caps uint64, binary bool) (n NumberReply, err error) {
	n.binary = binary
	head, rest, err := nextAnswer(frames)
	if err != nil {
		return n, err
	}
	definitions, behind, err := readDefinitions(head, rest, caps, [][]byte{nil})
	if err == nil && len(definitions) != 1 {
		err = ErrCut
	}
	if err != nil {
		return n, err
	}
	n.payloads = append(n.payloads, head)
	if len(behind) < len(rest) {
		n.payloads = append(n.payloads, definitions[0])
	}
	eofs := 2
	if caps&uint64(mysql.CLIENT_DEPRECATE_EOF) != 0 {
		eofs = 1
	}
	for len(n.ends) < eofs {
		var payload []byte
		if payload, behind, err = nextAnswer(behind); err != nil {
			return n, err
		}
		n.payloads = append(n.payloads, payload)
		switch at := len(n.payloads) - 1; {
		case payload[0] == EOFByte:
			n.ends = append(n.ends, at)
		case n.row > 0 || len(n.ends) < eofs-1 || !n.readRow(payload):
			return n, ErrCut
		default:
			n.row = at
		}
	}
	return n, nil
}

// binaryNumber is how many bytes a row with a BIGINT has: a header, bits of NULL, the number.
const binaryNumber = 1 + 1 + 8

func (n *NumberReply) readRow(payload []byte) bool {
	if n.binary {
		if len(payload) == binaryNumber {
			n.Value = binary.LittleEndian.Uint64(payload[2:])
		}
		return len(payload) == binaryNumber
	}
	r := NewReader(payload)
	was := r.LenencBytes()
	digits := bytes.ReplaceAll(was, []byte{0}, nil) // some character sets have zeros between them
	value, err := strconv.ParseUint(string(digits), 10, 64)
	n.Value = value
	return err == nil && digits[0] != '0' == (value != 0) && len(was)%len(digits) == 0 && r.OK() && r.Len() == 0
}

// Append appends the packets of the result with another number in its row, the first with sequence number seq, and
// flags set in its status. It returns the last one's number.
func (n *NumberReply) Append(dst []byte, seq byte, value uint64, flags uint16) (_ []byte, last byte) {
	for i, payload := range n.payloads {
		switch {
		case i == n.row && i > 0:
			payload = n.rowOf(payload, value)
		case slices.Contains(n.ends, i):
			AddStatus(payload, flags)
		}
		dst = AppendPacket(dst, seq, payload)
		seq++
	}
	return dst, seq - 1
}

// rowOf is the row with another number, whose digits are as wide as the server's.
func (n *NumberReply) rowOf(payload []byte, value uint64) []byte {
	if n.binary {
		return binary.LittleEndian.AppendUint64([]byte{0, 0}, value)
	}
	r := NewReader(payload)
	was, text := r.LenencBytes(), strconv.FormatUint(value, 10)
	wide := max(len(was)/len(strconv.FormatUint(n.Value, 10)), 1)
	at := max(bytes.IndexFunc(was[:wide], func(c rune) bool { return c != 0 }), 0)
	digits := make([]byte, wide*len(text))
	for i := range len(text) {
		digits[i*wide+at] = text[i]
	}
	return mysql.PutLengthEncodedString(digits)
}
