package wire

import (
	"encoding/binary"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Number is a result of one row and one column, which holds a BIGINT UNSIGNED, as servers answer SELECT
// LAST_INSERT_ID().
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
