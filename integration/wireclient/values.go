package wireclient

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Argument is what a client sends for a `?`.
type Argument struct {
	Kind     byte
	Unsigned bool
	Null     bool     // by the bit
	Value    []byte   // as the type has it
	Chunks   []string // sent ahead as long data, and then there is no value
	name     string   // of an attribute

	Indicator byte // in a bulk: 0 a value, 1 NULL, 2 DEFAULT, 3 IGNORE
	Shown     string
}

// String shows the argument as reports do.
func (a Argument) String() string {
	names := map[byte]string{
		mysql.MYSQL_TYPE_TINY: "TINY", mysql.MYSQL_TYPE_SHORT: "SHORT", mysql.MYSQL_TYPE_INT24: "INT24", mysql.MYSQL_TYPE_LONG: "LONG",
		mysql.MYSQL_TYPE_LONGLONG: "LONGLONG", mysql.MYSQL_TYPE_FLOAT: "FLOAT", mysql.MYSQL_TYPE_DOUBLE: "DOUBLE", mysql.MYSQL_TYPE_NULL: "NULL",
		mysql.MYSQL_TYPE_VAR_STRING: "VAR_STRING", mysql.MYSQL_TYPE_STRING: "STRING", mysql.MYSQL_TYPE_VARCHAR: "VARCHAR", mysql.MYSQL_TYPE_BLOB: "BLOB",
		mysql.MYSQL_TYPE_NEWDECIMAL: "NEWDECIMAL", mysql.MYSQL_TYPE_DATE: "DATE", mysql.MYSQL_TYPE_DATETIME: "DATETIME", mysql.MYSQL_TYPE_TIME: "TIME",
	}
	s := names[a.Kind]
	if s == "" {
		s = fmt.Sprintf("type %d", a.Kind)
	}
	if a.Unsigned {
		s += " UNSIGNED"
	}
	switch {
	case a.Indicator > 0:
		return s + [...]string{"", " (NULL)", " (DEFAULT)", " (IGNORE)"}[a.Indicator]
	case a.Null:
		return s + " (null)"
	case a.Chunks != nil:
		return fmt.Sprintf("%s in pieces %q", s, a.Chunks)
	}
	return s + " " + a.Shown
}

// sign is the byte behind a type.
func (a Argument) sign() byte {
	if a.Unsigned {
		return 0x80
	}
	return 0
}

// IntegerSizes are the bytes of the integer types.
var IntegerSizes = map[byte]int{
	mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_INT24: 4, mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_LONGLONG: 8,
}

var (
	IntegerTypes = []byte{mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG}
	TextTypes    = []byte{mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BLOB}
)

// Integer is a signed integer of a type.
func Integer(kind byte, n int64) Argument {
	b := binary.LittleEndian.AppendUint64(nil, uint64(n))
	return Argument{Kind: kind, Value: b[:IntegerSizes[kind]], Shown: fmt.Sprint(n)}
}

// Unsigned is an unsigned integer of a type.
func Unsigned(kind byte, n uint64) Argument {
	a := Integer(kind, int64(n))
	a.Unsigned, a.Shown = true, fmt.Sprint(n)
	return a
}

// Fits says whether an integer type holds a number.
func Fits(kind byte, n int64, unsigned bool) bool {
	bits := 8 * IntegerSizes[kind]
	if unsigned {
		return n >= 0 && (bits == 64 || n < 1<<bits)
	}
	return bits == 64 || -1<<(bits-1) <= n && n < 1<<(bits-1)
}

// TextOf is a value that is sent as text, of any type that is.
func TextOf(kind byte, s string) Argument {
	return Argument{Kind: kind, Value: mysql.PutLengthEncodedString([]byte(s)), Shown: fmt.Sprintf("%q", s)}
}

// Varchar is a text as most clients send it.
func Varchar(s string) Argument { return TextOf(mysql.MYSQL_TYPE_VAR_STRING, s) }

// Long is a signed integer as most clients send it.
func Long(n int64) Argument { return Integer(mysql.MYSQL_TYPE_LONGLONG, n) }

// Double is a floating-point number.
func Double(f float64) Argument {
	return Argument{Kind: mysql.MYSQL_TYPE_DOUBLE, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), Shown: fmt.Sprint(f)}
}

// Float is a floating-point number of single precision.
func Float(f float32) Argument {
	return Argument{Kind: mysql.MYSQL_TYPE_FLOAT, Value: binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)), Shown: fmt.Sprint(f)}
}

// Moment is a DATE, DATETIME or TIME as it stands on the wire, without its length.
func Moment(kind byte, shown string, bytes ...byte) Argument {
	return Argument{Kind: kind, Value: append([]byte{byte(len(bytes))}, bytes...), Shown: shown}
}

// Null is NULL by the bit, in a type.
func Null(kind byte) Argument { return Argument{Kind: kind, Null: true, Indicator: 1} }

// InPieces is a text that is sent ahead in chunks, each by COM_STMT_SEND_LONG_DATA.
func InPieces(kind byte, chunks ...string) Argument { return Argument{Kind: kind, Chunks: chunks} }

// Named is an attribute.
func (a Argument) Named(name string) Argument {
	a.name = name
	return a
}
