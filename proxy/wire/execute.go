package wire

import (
	"encoding/binary"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Unsigned is the flag beside a parameter's type that says its integer has no
// sign.
const Unsigned = 0x8000

// executeHead is the length of what a COM_STMT_EXECUTE begins with: command,
// statement (4), flags, iterations (4).
const executeHead = 10

// parameterCount is the flag of a COM_STMT_EXECUTE that brings a number of
// parameters also where the statement has none (CLIENT_QUERY_ATTRIBUTES).
const parameterCount = 8

// Errors of an execution.
var (
	ErrMalformed = errors.New("malformed packet")
	ErrUntyped   = errors.New("values whose types were never given")
)

// maxAttributes bounds the query attributes of an execution.
const maxAttributes = 1<<16 - 1

// Parameter is a value bound to a statement, or a query attribute.
type Parameter struct {
	Type uint16 // of MYSQL_TYPE_*, and Unsigned
	Null bool
	// as it stands in the packet, with its length; none when Null, or sent as long data
	Value []byte
	Name  []byte // as it stands, with its length; only of CLIENT_QUERY_ATTRIBUTES
}

// Execute is a COM_STMT_EXECUTE. Its slices alias the payload that it was read
// of.
type Execute struct {
	Head       []byte      // command, statement, flags, iterations
	Parameters []Parameter // of the statement, in front of the query attributes
	Typed      bool        // the packet has the types
	Tail       []byte      // what stands behind the values
}

// Bound is what is known of the statement that is executed.
type Bound struct {
	Parameters int
	Types      []uint16 // of the last execution that had some
	// whether a value went ahead by COM_STMT_SEND_LONG_DATA; nil: none did
	Long func(int) bool
}

// Parse reads an execution. The error is ErrMalformed or ErrUntyped.
//
// The layout is that of
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_execute.html
func (e *Execute) Parse(payload []byte, caps uint64, st Bound) error {
	*e = Execute{Parameters: e.Parameters[:0]}
	r := NewReader(payload)
	n := st.Parameters
	count, ok := e.begin(&r, caps, n)
	if !ok {
		return ErrMalformed
	}
	if count > 0 {
		attributes := caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) != 0
		nulls := r.Bytes((count + 7) / 8)
		e.Typed = r.Uint8() != 0
		if !r.OK() || !e.Typed && count > n {
			return ErrMalformed
		}
		e.readTypes(&r, count, attributes, st.Types)
		for i := range e.Parameters {
			p := &e.Parameters[i]
			p.Null = nulls[i/8]&(1<<(i%8)) != 0
			if !p.Null && !e.Typed && i >= len(st.Types) {
				return ErrUntyped
			}
			if !p.Null && (st.Long == nil || i >= n || !st.Long(i)) {
				p.Value = valueOf(&r, byte(p.Type))
			}
		}
	}
	e.Tail = r.Rest()
	if !r.OK() {
		return ErrMalformed
	}
	return nil
}

// begin reads the head and how many parameters follow, n of them the statement's.
func (e *Execute) begin(r *Reader, caps uint64, n int) (count int, ok bool) {
	e.Head = r.Bytes(executeHead)
	if !r.OK() {
		return 0, false
	}
	if caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) == 0 || n == 0 && e.Head[5]&parameterCount == 0 {
		return n, true
	}
	given := r.Lenenc()
	// each takes a bit at least: a cap before the allocation
	if given < uint64(n) || given > uint64(n+maxAttributes) || given > uint64(r.Len())*8 {
		return 0, false
	}
	return int(given), true
}

// AppendTypes appends the types that an execution gives the n parameters of its
// statement to dst; none when it gives none. ok is false when payload ends before
// they do.
func AppendTypes(dst []uint16, payload []byte, caps uint64, n int) (_ []uint16, ok bool) {
	var e Execute
	r := NewReader(payload)
	count, ok := e.begin(&r, caps, n)
	if !ok || n == 0 {
		return dst, ok
	}
	r.Bytes((count + 7) / 8)
	if typed := r.Uint8() != 0; !typed || !r.OK() {
		return dst, r.OK()
	}
	at := len(dst)
	for range n {
		dst = append(dst, r.Uint16())
		if caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) != 0 {
			r.LenencBytes()
		}
		if !r.OK() {
			return dst[:at], false
		}
	}
	return dst, true
}

// readTypes reads the types and names of count parameters.
func (e *Execute) readTypes(r *Reader, count int, names bool, types []uint16) {
	for i := range count {
		p := Parameter{Type: uint16(mysql.MYSQL_TYPE_NULL)}
		switch {
		case e.Typed:
			p.Type = r.Uint16()
			if names {
				at := r.b
				r.LenencBytes()
				p.Name = at[:len(at)-r.Len()]
			}
			if !r.OK() {
				return
			}
		case i < len(types):
			p.Type = types[i]
		}
		e.Parameters = append(e.Parameters, p)
	}
}

// valueOf reads a value of type t as it stands in the packet.
func valueOf(r *Reader, t byte) []byte {
	at := r.b
	skipBinary(r, t)
	if !r.OK() {
		return nil
	}
	return at[: len(at)-r.Len() : len(at)-r.Len()]
}

// AppendExecute appends a COM_STMT_EXECUTE with the head and tail of e and other
// parameters, which all have their types.
func (e *Execute) AppendExecute(dst []byte, caps uint64, parameters []Parameter) []byte {
	attributes := caps&uint64(mysql.CLIENT_QUERY_ATTRIBUTES) != 0
	dst = append(dst, e.Head...)
	if attributes {
		dst = mysql.AppendLengthEncodedInteger(dst, uint64(len(parameters)))
	}
	nulls := len(dst)
	for range (len(parameters) + 7) / 8 {
		dst = append(dst, 0)
	}
	dst = append(dst, 1)
	for i := range parameters {
		p := &parameters[i]
		if p.Null {
			dst[nulls+i/8] |= 1 << (i % 8)
		}
		dst = binary.LittleEndian.AppendUint16(dst, p.Type)
		switch {
		case attributes && len(p.Name) == 0:
			dst = append(dst, 0)
		case attributes:
			dst = append(dst, p.Name...)
		}
	}
	for i := range parameters {
		dst = append(dst, parameters[i].Value...)
	}
	return append(dst, e.Tail...)
}

// Zero returns 0 as a value of type t: of a date, the one without digits.
func Zero(t byte) []byte {
	switch n := binaryLen(t); n {
	case byteLen:
		return []byte{0}
	case lenencLen:
		return []byte("\x010")
	default:
		return make([]byte, max(n, 0))
	}
}

// BinaryRow appends the values of a row of the binary protocol, whose columns have the given types,
// to dst.
//
// The layout is that of
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_binary_resultset.html
func BinaryRow(dst []Parameter, payload []byte, types []uint16) ([]Parameter, bool) {
	const spare = 2 // bits of the null bitmap
	r := NewReader(payload)
	r.Uint8()
	nulls := r.Bytes((len(types) + spare + 7) / 8)
	if !r.OK() {
		return dst, false
	}
	for i, t := range types {
		p := Parameter{Type: t, Null: nulls[(i+spare)/8]&(1<<((i+spare)%8)) != 0}
		if !p.Null {
			p.Value = valueOf(&r, byte(t))
		}
		dst = append(dst, p)
	}
	return dst, r.OK() && r.Len() == 0
}

// Inner returns the value without the length in front of it, and whether there
// is one.
func (p *Parameter) Inner() ([]byte, bool) {
	r := NewReader(p.Value)
	switch binaryLen(byte(p.Type)) {
	case byteLen:
		v := r.Bytes(int(r.Uint8()))
		return v, r.OK()
	case lenencLen:
		v := r.LenencBytes()
		return v, r.OK()
	}
	return p.Value, true
}
