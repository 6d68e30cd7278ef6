package rewriter

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// class is what a byte can begin outside quotes and comments.
type class uint8

const (
	classBad class = iota // control bytes, [ ] and the like: part of no statement that is edited
	classBlank
	classDigit
	classLetter // and _
	classDollar
	classHigh   // >= 0x80
	classPunct  // operators and the rest that stands for itself
	classQuote  // '
	classDouble // "
	classTick   // `
	classOpen
	classClose
	classComma
	classSemicolon
	classDash      // - or a comment
	classSlash     // / or a comment
	classHash      // a comment
	classBackslash // \N
)

var classes = classTable()

func classTable() (t [256]class) {
	for c := range t {
		switch {
		case c >= '\t' && c <= '\r' || c == ' ': // my_isspace of every client character set below 0x80
			t[c] = classBlank
		case c >= '0' && c <= '9':
			t[c] = classDigit
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
			t[c] = classLetter
		case c >= 0x80:
			t[c] = classHigh
		}
	}
	for _, c := range "!%&*+.:<=>?@^{|}~" {
		t[c] = classPunct
	}
	for c, k := range map[byte]class{
		'$': classDollar, '\'': classQuote, '"': classDouble, '`': classTick, '(': classOpen, ')': classClose,
		',': classComma, ';': classSemicolon, '-': classDash, '/': classSlash, '#': classHash, '\\': classBackslash,
	} {
		t[c] = k
	}
	return t
}

// skims marks the bytes that a walk over values passes without a look.
var skims = skimTable()

func skimTable() (t [256]bool) {
	for c, k := range classes {
		t[c] = k == classBlank || k == classDigit || k == classLetter || k == classPunct
	}
	return t
}

// wordByte marks the ASCII bytes of an unquoted identifier.
var wordByte = wordTable()

func wordTable() (t [256]bool) {
	for c, k := range classes {
		t[c] = k == classDigit || k == classLetter || k == classDollar
	}
	return t
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quotedEnd returns the index behind the quoted text whose opening quote stands at text[start], or -1 when text ends
// before it does. esc is the byte that takes the next one with it, or quote itself when there is none. plain is false when
// a doubled quote or an escape stands inside.
//
// Servers step over whole characters of the client's character set first, and a byte that begins none stands alone; an
// escape takes one byte with it, not one character.
func quotedEnd(text []byte, start int, esc byte, cs Charset) (end int, plain bool) {
	quote := text[start]
	quotes, escapes, wide := lows*uint64(quote), lows*uint64(esc), uint64(0)
	if cs != SingleByte {
		wide = highs
	}
	plain = true
	for i := start + 1; i < len(text); {
		if len(text)-i >= 8 {
			v := binary.LittleEndian.Uint64(text[i:])
			a, b := v^quotes, v^escapes
			// The lowest bit set marks the first zero byte of a or b; bits above it may be wrong.
			hit := ((a-lows)&^a|(b-lows)&^b)&highs | v&wide
			if hit == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(hit) >> 3
		}
		switch c := text[i]; {
		case c == quote:
			if i+1 >= len(text) || text[i+1] != quote {
				return i + 1, plain
			}
			plain = false
			i += 2
		case c == esc:
			plain = false
			i += 2
		case c >= 0x80:
			i += cs.charLen(text[i:])
		default:
			i++
		}
	}
	return -1, plain
}

// foldEqual reports whether word is lower, a lower-case ASCII text, in any case.
func foldEqual(word []byte, lower string) bool {
	if len(word) != len(lower) {
		return false
	}
	for i, c := range word {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// equalFold reports whether two names are equal but for the case of their ASCII letters.
func equalFold[T []byte | string](word T, name string) bool {
	if len(word) != len(name) {
		return false
	}
	for i := range len(name) {
		c, d := word[i], name[i]
		if c == d {
			continue
		}
		if c|0x20 != d|0x20 || c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return true
}

// undouble removes the second of each pair of quotes.
func undouble(inner []byte, quote byte) []byte {
	if bytes.IndexByte(inner, quote) < 0 {
		return inner
	}
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); i++ {
		out = append(out, inner[i])
		if inner[i] == quote {
			i++
		}
	}
	return out
}
