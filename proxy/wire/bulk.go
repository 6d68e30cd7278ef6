package wire

import "encoding/binary"

// Indicators of a value in a COM_STMT_BULK_EXECUTE.
const (
	IndicatorNone    = 0 // a value follows
	IndicatorNull    = 1
	IndicatorDefault = 2
	IndicatorIgnore  = 3 // as DEFAULT in an INSERT
)

// bulkHead is the length of what a COM_STMT_BULK_EXECUTE begins with: command,
// statement (4), flags (2).
const bulkHead = 7

// Flags of a COM_STMT_BULK_EXECUTE.
const (
	BulkTypes       = 128 // types of the parameters follow
	BulkUnitResults = 64  // a result for each row is asked for
)

// Bulk is MariaDB's COM_STMT_BULK_EXECUTE. Its slices alias the payload that it
// was read of.
type Bulk struct {
	Head  []byte // command, statement, flags
	Flags uint16
	Types []uint16 // of each parameter
	Typed bool     // the packet has them
	rows  []byte
}

// Parse reads the execution of a statement with n parameters. types are those of the last execution
// that had some. The error, ErrMalformed or ErrUntyped, is of what stands in front of the rows.
//
// The layout is that of
// https://mariadb.com/docs/server/reference/clientserver-protocol/3-binary-protocol-prepared-statements/com_stmt_bulk_execute
func (b *Bulk) Parse(payload []byte, n int, types []uint16) error {
	r := NewReader(payload)
	*b = Bulk{Head: r.Bytes(bulkHead), Types: b.Types[:0]}
	if !r.OK() {
		return ErrMalformed
	}
	b.Flags = binary.LittleEndian.Uint16(b.Head[5:])
	b.Typed = b.Flags&BulkTypes != 0
	if b.Typed {
		b.Types = r.Uint16s(b.Types, n)
	} else {
		b.Types = append(b.Types, types...)
	}
	b.rows = r.Rest()
	switch {
	case !r.OK():
		return ErrMalformed
	case len(b.Types) != n:
		return ErrUntyped
	}
	return nil
}

// AppendBulkTypes appends the types that an execution gives the n parameters of its
// statement to dst; none when it gives none. ok is false when payload ends before
// they do.
func AppendBulkTypes(dst []uint16, payload []byte, _ uint64, n int) (_ []uint16, ok bool) {
	r := NewReader(payload)
	head := r.Bytes(bulkHead)
	if !r.OK() || binary.LittleEndian.Uint16(head[5:])&BulkTypes == 0 {
		return dst, r.OK()
	}
	dst = r.Uint16s(dst, n)
	return dst, r.OK()
}

// Rows are the bytes behind the types.
func (b *Bulk) Rows() []byte { return b.rows }

// Walk calls value for each value of each row: its indicator, and the value as
// it stands in the packet, with its length, where there is one. It returns the
// number of rows, and reports false when the last is cut off or an indicator is
// none.
func (b *Bulk) Walk(value func(row, parameter int, indicator byte, value []byte)) (rows int, ok bool) {
	r := NewReader(b.rows)
	if len(b.Types) == 0 {
		return 0, r.Len() == 0
	}
	for ; r.Len() > 0; rows++ {
		for i, t := range b.Types {
			indicator := r.Uint8()
			var v []byte
			if indicator == IndicatorNone {
				v = valueOf(&r, byte(t))
			}
			if !r.OK() || indicator > IndicatorIgnore {
				return rows, false
			}
			value(rows, i, indicator, v)
		}
	}
	return rows, true
}

// AppendHead appends head and types of a command whose statement has other
// parameters. The rows follow.
func (b *Bulk) AppendHead(dst []byte, types []uint16) []byte {
	dst = append(dst, b.Head...)
	binary.LittleEndian.PutUint16(dst[len(dst)-2:], b.Flags|BulkTypes)
	for _, t := range types {
		dst = binary.LittleEndian.AppendUint16(dst, t)
	}
	return dst
}
