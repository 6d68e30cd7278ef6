package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

var errAnswerCut = errors.New("server's answer is cut off")

// nextPayload returns the payload of the first packet of frames, and the
// frames behind it. The payload is never empty.
func nextPayload(frames []byte) (payload, rest []byte, err error) {
	size, _, ok := wire.Packet(frames)
	if !ok {
		return nil, nil, errAnswerCut
	}
	payload = wire.Join(frames[:size:size])
	if len(payload) == 0 {
		return nil, nil, errAnswerCut
	}
	return payload, frames[size:], nil
}

// serverError reads an ERR packet.
func serverError(payload []byte) *mysql.MyError {
	e := &mysql.MyError{Code: wire.ErrCode(payload), State: "HY000", Message: wire.ErrMessage(payload)}
	if len(payload) >= 9 && payload[3] == '#' {
		e.State = string(payload[4:9])
	}
	return e
}

// textRows reads a text result set from whole frames. NULL is nil.
func (c *conversation) textRows(frames []byte) (rows [][][]byte, err error) {
	_, rows, err = c.textResult(frames)
	return rows, err
}

// maxQuestionColumns is above what any question of ours asks for.
const maxQuestionColumns = 4096

// textResult reads a text result set from whole frames: the definitions of its
// columns, each a payload, and its rows. NULL is nil.
func (c *conversation) textResult(frames []byte) (definitions [][]byte, rows [][][]byte, err error) {
	return c.result(frames, nil, func(payload []byte, definitions [][]byte) (row [][]byte, ok bool) {
		r := wire.NewReader(payload)
		for range definitions {
			v, null := r.Value()
			if !r.OK() {
				return nil, false
			}
			if null {
				v = nil
			}
			row = append(row, v)
		}
		return row, true
	})
}

// binaryResult is textResult for a result of the binary protocol. The values are
// those of the text protocol, but for types that no question of ours asks for.
// MariaDB may leave definitions out that the PREPARE brought.
func (c *conversation) binaryResult(frames []byte, prepared [][]byte) (definitions [][]byte, rows [][][]byte, err error) {
	return c.result(frames, prepared, func(payload []byte, definitions [][]byte) (row [][]byte, ok bool) {
		types := make([]uint16, len(definitions))
		for i, definition := range definitions {
			types[i] = uint16(mysql.MYSQL_TYPE_LONGLONG)
			if t, ok := wire.ParseColumn(definition, c.caps&wire.MariaDBExtendedMetadata != 0); ok {
				types[i] = uint16(t.Type)
				if t.Flags&mysql.UNSIGNED_FLAG != 0 {
					types[i] |= wire.Unsigned
				}
			}
		}
		values, ok := wire.BinaryRow(nil, payload, types)
		if !ok {
			return nil, false
		}
		for i := range values {
			row = append(row, textOf(&values[i]))
		}
		return row, true
	})
}

// textOf returns a binary value as the text protocol has it; nil is NULL.
func textOf(v *wire.Parameter) []byte {
	if v.Null {
		return nil
	}
	if number, ok := integer(v); ok {
		if v.Type&wire.Unsigned != 0 {
			return strconv.AppendUint(nil, number, 10)
		}
		return strconv.AppendInt(nil, int64(number), 10)
	}
	inner, _ := v.Inner()
	switch byte(v.Type) {
	case mysql.MYSQL_TYPE_FLOAT:
		return textOfFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(inner))), 32)
	case mysql.MYSQL_TYPE_DOUBLE:
		return textOfFloat(math.Float64frombits(binary.LittleEndian.Uint64(inner)), 64)
	}
	return append([]byte{}, inner...)
}

// textOfFloat writes an exponent where servers do, from 1e15 on.
func textOfFloat(f float64, bits int) []byte {
	if math.Abs(f) < 1e15 {
		return strconv.AppendFloat(nil, f, 'f', -1, bits)
	}
	return strconv.AppendFloat(nil, f, 'g', -1, bits)
}

// result reads a result set from whole frames; read reads one row. prepared are
// definitions that a PREPARE brought.
func (c *conversation) result(frames []byte, prepared [][]byte, read func(payload []byte, definitions [][]byte) ([][]byte, bool)) (definitions [][]byte, rows [][][]byte, err error) {
	payload, rest, err := nextPayload(frames)
	if err != nil {
		return nil, nil, err
	}
	if payload[0] == wire.ErrByte {
		return nil, nil, serverError(payload)
	}
	r := wire.NewReader(payload)
	columns, described := r.Lenenc(), true
	if c.has(mysql.CLIENT_OPTIONAL_RESULTSET_METADATA) { // a byte beside the count says whether definitions follow
		flag := r.Lenenc()
		columns, described = max(columns, flag), min(columns, flag) > 0
	}
	if prepared != nil && c.caps&wire.MariaDBCacheMetadata != 0 && r.Uint8() == 0 {
		described, definitions = false, prepared
	}
	for i := range min(columns, maxQuestionColumns) {
		if definitions != nil && i < uint64(len(prepared)) && !described {
			continue
		}
		definition := []byte(nil)
		if described {
			if definition, rest, err = nextPayload(rest); err != nil {
				return nil, nil, err
			}
		}
		definitions = append(definitions, definition)
	}
	if !c.has(mysql.CLIENT_DEPRECATE_EOF) {
		if _, rest, err = nextPayload(rest); err != nil {
			return nil, nil, err
		}
	}
	for {
		if payload, rest, err = nextPayload(rest); err != nil {
			return nil, nil, err
		}
		switch {
		case payload[0] == wire.ErrByte:
			return nil, nil, serverError(payload)
		case payload[0] == wire.EOFByte && len(payload) < wire.MaxPayload:
			return definitions, rows, nil
		}
		row, ok := read(payload, definitions)
		if !ok {
			return nil, nil, errAnswerCut
		}
		for i := range row {
			row[i] = c.readable(row[i], definitions[i])
		}
		rows = append(rows, row)
	}
}

// readable returns a value of an answer as UTF-8 where it arrives in one of the
// character sets in which ASCII is not ASCII. The definition names the set of a
// text. Numbers come in that set or in ASCII, by their type and server, and
// their definitions do not tell which.
func (c *conversation) readable(v, definition []byte) []byte {
	column, ok := wire.ParseColumn(definition, c.caps&wire.MariaDBExtendedMetadata != 0)
	switch {
	case ok && column.Collation != binaryCollation:
		return decodeWide(v, wideSet(column.Collation))
	case ok && holdsText(column.Type), bytes.IndexByte(v, 0) < 0:
		return v
	}
	return bytes.ReplaceAll(v, []byte{0}, nil)
}

// untimed returns a SELECT of our own that MySQL's max_execution_time does not
// end: no statement of the client's is a SELECT because of it.
func (c *conversation) untimed(sql string) string {
	rest, found := strings.CutPrefix(sql, "SELECT ")
	if !found || c.mariaDB {
		return sql
	}
	return "SELECT " + rewriter.Untimed + rest
}

// appendQuery appends a COM_QUERY packet of our own, with an empty set of
// query attributes where the session has them.
func (c *conversation) appendQuery(dst []byte, sql string) []byte {
	payload := []byte{mysql.COM_QUERY}
	if c.has(mysql.CLIENT_QUERY_ATTRIBUTES) {
		payload = append(payload, 0, 1)
	}
	return wire.AppendPacket(dst, 0, append(payload, sql...))
}
