package wire

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// IsText reports whether a type holds characters.
func IsText(kind byte) bool {
	switch kind {
	case mysql.MYSQL_TYPE_VARCHAR, mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_STRING:
		return true
	}
	return false
}

// IsBlob reports whether a type is one of BLOB or TEXT.
func IsBlob(kind byte) bool {
	return kind >= mysql.MYSQL_TYPE_TINY_BLOB && kind <= mysql.MYSQL_TYPE_BLOB
}

// HoldsText reports whether a type is of texts, short or long.
func HoldsText(kind byte) bool { return IsText(kind) || IsBlob(kind) }

// IsNumber reports whether a type is one of numbers.
func IsNumber(kind byte) bool {
	switch kind {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG,
		mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE, mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL:
		return true
	}
	return false
}

// Integer returns the value of an integer, with the sign's bits above it.
func (p *Parameter) Integer() (number uint64, ok bool) {
	switch byte(p.Type) {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24,
		mysql.MYSQL_TYPE_LONGLONG:
	default:
		return 0, false
	}
	var b [8]byte
	copy(b[:], p.Value)
	number = binary.LittleEndian.Uint64(b[:])
	if above := 64 - 8*len(p.Value); p.Type&Unsigned == 0 {
		number = uint64(int64(number<<above) >> above)
	}
	return number, true
}

// text returns a value as the text protocol has it; nil is NULL.
func (p *Parameter) text() []byte {
	if p.Null {
		return nil
	}
	if number, ok := p.Integer(); ok {
		if p.Type&Unsigned != 0 {
			return strconv.AppendUint(nil, number, 10)
		}
		return strconv.AppendInt(nil, int64(number), 10)
	}
	inner, _ := p.Inner()
	switch byte(p.Type) {
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
