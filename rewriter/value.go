package rewriter

import "strconv"

// value is what a row has for an id.
type value struct {
	kind       valueKind
	negative   bool
	start, end int    // its bytes
	crossed    int    // beginnings and ends of version comments up to its last token
	number     uint64 // valueZero, valueNumber: as an OK packet shows it
	fixed      bool   // the number is written in place of the expression that it was read of
}

type valueKind uint8

const (
	valueOther   valueKind = iota // an expression
	valueNull                     // NULL: always generated
	valueDefault                  // DEFAULT: generated unless NO_AUTO_VALUE_ON_ZERO
	valueZero                     // 0 or '0': likewise
	valueNumber                   // an explicit integer
	valueUnknown                  // an explicit id that is no known number
	valueMade                     // an expression or literal that generates
	valueBound                    // a ?
	valueMaybe                    // an expression for a wide id: generated if it is NULL
	// what a text column gets that is no whole number, or an expression: it stays as it is
	valueText
)

// explicit reports whether v, once it is placed, is an id that the application gives.
func (v *value) explicit() bool {
	return v.kind != valueMade && v.kind != valueNull && v.kind != valueBound
}

// hasNumber reports whether v is a number that is known.
func (v *value) hasNumber() bool { return v.kind == valueNumber || v.kind == valueZero }

// quoted reads the inside of a string. Servers take more for zero than '0', some of it with
// warnings; that is left to them.
func (v *value) quoted(inner []byte) {
	sign := byte(0)
	if len(inner) > 0 && (inner[0] == '-' || inner[0] == '+') {
		sign, inner = inner[0], inner[1:]
	}
	for _, c := range inner {
		if c-'0' > 9 {
			return
		}
	}
	if len(inner) > 0 && (len(inner) == 1 || inner[0] != '0' || !allZeros(inner)) {
		v.integer(inner, sign)
	}
}

func allZeros(digits []byte) bool {
	for _, c := range digits {
		if c != '0' {
			return false
		}
	}
	return true
}

// isText reports whether the inside of a string is surely no whole number, whatever its escapes
// stand for.
func isText(inner []byte) bool {
	for _, c := range inner {
		if c-'0' > 9 && c != '\\' && c != '-' && c != '+' {
			return true
		}
	}
	return len(inner) == 0
}

// integer reads digits with a sign, or 0 for none. A zero with a sign is an expression.
func (v *value) integer(digits []byte, sign byte) {
	v.kind, v.negative = valueNumber, sign == '-'
	for _, c := range digits {
		d := uint64(c - '0')
		if v.number > (1<<64-1-d)/10 {
			v.kind = valueUnknown
			return
		}
		v.number = v.number*10 + d
	}
	switch {
	case v.number == 0 && sign != 0:
		v.kind = valueOther
	case v.number == 0:
		v.kind = valueZero
	case v.negative && v.number > 1<<63:
		v.kind = valueUnknown
	case v.negative:
		v.number = -v.number
	}
}

func (v *value) appendNumber(dst []byte) []byte {
	if v.negative {
		return strconv.AppendInt(dst, int64(v.number), 10)
	}
	return strconv.AppendUint(dst, v.number, 10)
}
