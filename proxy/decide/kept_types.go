package decide

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
)

// keptTypes are the types that MySQL keeps of a statement's parameters. At first they are what it
// derives from where the parameters stand. For a value that does not fit it prepares the statement
// anew, under the sql_mode of then, and keeps the types of that execution's values; where one is
// NULL, the type is derived again (Prepared_statement::check_parameter_types in sql/sql_prepare.cc).
type keptTypes struct {
	derived []uint16 // 0 or none: not known
	kept    []uint16
}

// What types count as. An integer's may have wire.Unsigned.
const (
	integerType = uint16(mysql.MYSQL_TYPE_LONGLONG)
	decimalType = uint16(mysql.MYSQL_TYPE_NEWDECIMAL)
	doubleType  = uint16(mysql.MYSQL_TYPE_DOUBLE)
	dateType    = uint16(mysql.MYSQL_TYPE_DATE)
	timeType    = uint16(mysql.MYSQL_TYPE_TIME)
	momentType  = uint16(mysql.MYSQL_TYPE_DATETIME)
	yearType    = uint16(mysql.MYSQL_TYPE_YEAR)
)

// countsAs returns the type that MySQL treats a derived one, or a value's, as.
func countsAs(t uint16) uint16 {
	switch kind := byte(t); kind {
	case mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_BIT:
		return integerType | t&wire.Unsigned
	case mysql.MYSQL_TYPE_DECIMAL, mysql.MYSQL_TYPE_NEWDECIMAL:
		return decimalType
	case mysql.MYSQL_TYPE_FLOAT, mysql.MYSQL_TYPE_DOUBLE:
		return doubleType
	case mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_DATETIME:
		return momentType
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_TIME, mysql.MYSQL_TYPE_YEAR:
		return uint16(kind)
	default:
		return textType
	}
}

// learn notes what the server derived at the PREPARE, if that was seen.
func (k *keptTypes) learn(derived []uint16, params int) {
	if len(k.kept) == params {
		return
	}
	k.derived, k.kept = make([]uint16, params), make([]uint16, params)
	for i := range min(len(derived), params) {
		k.derived[i] = countsAs(derived[i])
	}
	copy(k.kept, k.derived)
}

// take notes the values of an execution, for which the server may prepare the statement anew.
func (k *keptTypes) take(values []wire.Parameter) {
	anew := false
	for i := range k.kept {
		_, fits := meets(k.kept[i], &values[i])
		anew = anew || !fits
	}
	for i, kept := range k.kept {
		switch {
		case values[i].Null && anew:
			k.kept[i] = k.derived[i]
		case anew, kept == 0:
			k.kept[i], _ = meets(kept, &values[i])
		}
	}
}

// of returns the type of a parameter; 0: not known.
func (k *keptTypes) of(param int) uint16 {
	if param < len(k.kept) {
		return k.kept[param]
	}
	return 0
}

// valueAs returns what the type of a value counts as: a YEAR is an integer.
func valueAs(v *wire.Parameter) uint16 {
	if t := countsAs(v.Type); t != yearType {
		return t
	}
	return integerType | v.Type&wire.Unsigned
}

// meets reports whether a value leaves a statement as it is prepared, and which type is kept where it,
// or another one, does not.
func meets(kept uint16, v *wire.Parameter) (as uint16, fits bool) {
	if v.Null {
		return kept, true
	}
	as = valueAs(v)
	switch {
	case as == textType && kept == textType, kept == 0:
		return as, true
	case as == textType:
		r := wire.NewReader(v.Value)
		return meetsText(kept, bytes.TrimSpace(r.LenencBytes()))
	}
	switch number := as&^wire.Unsigned == integerType; kept {
	case integerType, integerType | wire.Unsigned:
		return as, as == kept
	case yearType:
		return as, number
	case decimalType:
		return as, number || as == decimalType
	case doubleType:
		return as, number || as == decimalType || as == doubleType
	case dateType:
		return as, as != momentType && as != timeType
	case timeType:
		return as, as != dateType
	case momentType:
		return as, true
	}
	return as, false // text
}

// meetsText is meets for a text and a type of no texts. What it is to each type was measured on MySQL
// 9.7, by Com_stmt_reprepare: TestBoundBesideOthers compares it. Of a YEAR not all is known.
func meetsText(kept uint16, text []byte) (as uint16, fits bool) {
	switch kept {
	case integerType, integerType | wire.Unsigned:
		switch {
		case !isNumber(text):
			return textType, true
		case isPlain(text, kept):
			return kept, true
		}
		return decimalType, false // a sign, a fraction, or too large
	case decimalType, doubleType:
		if isNumber(text) {
			return kept, true
		}
	case dateType, timeType, momentType:
		if rest := text[digits(text):]; len(rest) > 0 && len(rest) < len(text) && strings.IndexByte("-:/", rest[0]) >= 0 {
			return kept, true
		}
	}
	return textType, true
}

// digits returns how many digits a text begins with.
func digits(text []byte) (n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// isNumber reports whether a text is a decimal number, maybe with a fraction and an exponent.
func isNumber(text []byte) bool {
	unsigned := func(text []byte) []byte {
		if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
			return text[1:]
		}
		return text
	}
	text = unsigned(text)
	whole := digits(text)
	text = text[whole:]
	if len(text) > 0 && text[0] == '.' {
		fraction := digits(text[1:])
		whole += fraction
		text = text[1+fraction:]
	}
	if whole == 0 {
		return false
	}
	if len(text) > 0 && text[0]|0x20 == 'e' {
		text = unsigned(text[1:])
		exponent := digits(text)
		return exponent > 0 && exponent == len(text)
	}
	return len(text) == 0
}

// isPlain reports whether a text is the digits of an integer that the type holds.
func isPlain(text []byte, t uint16) bool {
	const most = len("18446744073709551615")
	if n := len(bytes.TrimLeft(text, "0")); digits(text) < len(text) || n > most {
		return false
	}
	bits := 63
	if t&wire.Unsigned != 0 {
		bits = 64
	}
	_, err := strconv.ParseUint(string(text), 10, bits)
	return err == nil
}
