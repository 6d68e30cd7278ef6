package integration

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// argument is what a client sends for a `?`.
type argument struct {
	kind     byte
	unsigned bool
	null     bool     // by the bit
	value    []byte   // as the type has it
	chunks   []string // sent ahead as long data, and then there is no value
	name     string   // of an attribute

	indicator byte // in a bulk: 0 a value, 1 NULL, 2 DEFAULT, 3 IGNORE
	shown     string
}

func (a argument) String() string {
	names := map[byte]string{
		mysql.MYSQL_TYPE_TINY: "TINY", mysql.MYSQL_TYPE_SHORT: "SHORT", mysql.MYSQL_TYPE_INT24: "INT24", mysql.MYSQL_TYPE_LONG: "LONG",
		mysql.MYSQL_TYPE_LONGLONG: "LONGLONG", mysql.MYSQL_TYPE_FLOAT: "FLOAT", mysql.MYSQL_TYPE_DOUBLE: "DOUBLE", mysql.MYSQL_TYPE_NULL: "NULL",
		mysql.MYSQL_TYPE_VAR_STRING: "VAR_STRING", mysql.MYSQL_TYPE_STRING: "STRING", mysql.MYSQL_TYPE_VARCHAR: "VARCHAR", mysql.MYSQL_TYPE_BLOB: "BLOB",
		mysql.MYSQL_TYPE_NEWDECIMAL: "NEWDECIMAL", mysql.MYSQL_TYPE_DATE: "DATE", mysql.MYSQL_TYPE_DATETIME: "DATETIME", mysql.MYSQL_TYPE_TIME: "TIME",
	}
	s := names[a.kind]
	if s == "" {
		s = fmt.Sprintf("type %d", a.kind)
	}
	if a.unsigned {
		s += " UNSIGNED"
	}
	switch {
	case a.indicator > 0:
		return s + [...]string{"", " (NULL)", " (DEFAULT)", " (IGNORE)"}[a.indicator]
	case a.null:
		return s + " (null)"
	case a.chunks != nil:
		return fmt.Sprintf("%s in pieces %q", s, a.chunks)
	}
	return s + " " + a.shown
}

// sign is the byte behind a type.
func (a argument) sign() byte {
	if a.unsigned {
		return 0x80
	}
	return 0
}

// integerSizes are the bytes of the integer types.
var integerSizes = map[byte]int{
	mysql.MYSQL_TYPE_TINY: 1, mysql.MYSQL_TYPE_SHORT: 2, mysql.MYSQL_TYPE_INT24: 4, mysql.MYSQL_TYPE_LONG: 4, mysql.MYSQL_TYPE_LONGLONG: 8,
}

var (
	integerTypes = []byte{mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG}
	textTypes    = []byte{mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING, mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_BLOB}
)

func integer(kind byte, n int64) argument {
	b := binary.LittleEndian.AppendUint64(nil, uint64(n))
	return argument{kind: kind, value: b[:integerSizes[kind]], shown: fmt.Sprint(n)}
}

func unsigned(kind byte, n uint64) argument {
	a := integer(kind, int64(n))
	a.unsigned, a.shown = true, fmt.Sprint(n)
	return a
}

// fits says whether an integer type holds a number.
func fits(kind byte, n int64, unsigned bool) bool {
	bits := 8 * integerSizes[kind]
	if unsigned {
		return n >= 0 && (bits == 64 || n < 1<<bits)
	}
	return bits == 64 || -1<<(bits-1) <= n && n < 1<<(bits-1)
}

// text is a value that is sent as text, of any type that is.
func text(kind byte, s string) argument {
	return argument{kind: kind, value: mysql.PutLengthEncodedString([]byte(s)), shown: fmt.Sprintf("%q", s)}
}

func varchar(s string) argument { return text(mysql.MYSQL_TYPE_VAR_STRING, s) }

func long(n int64) argument { return integer(mysql.MYSQL_TYPE_LONGLONG, n) }

func double(f float64) argument {
	return argument{kind: mysql.MYSQL_TYPE_DOUBLE, value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f)), shown: fmt.Sprint(f)}
}

func float(f float32) argument {
	return argument{kind: mysql.MYSQL_TYPE_FLOAT, value: binary.LittleEndian.AppendUint32(nil, math.Float32bits(f)), shown: fmt.Sprint(f)}
}

// moment is a DATE, DATETIME or TIME as it stands on the wire, without its length.
func moment(kind byte, shown string, bytes ...byte) argument {
	return argument{kind: kind, value: append([]byte{byte(len(bytes))}, bytes...), shown: shown}
}

// null is NULL by the bit, in a type.
func null(kind byte) argument { return argument{kind: kind, null: true, indicator: 1} }

// pieces is a text that is sent ahead.
func inPieces(kind byte, chunks ...string) argument { return argument{kind: kind, chunks: chunks} }

// named is an attribute.
func (a argument) named(name string) argument {
	a.name = name
	return a
}
