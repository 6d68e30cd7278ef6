package rewriter

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"idproxy/ascii"
	"idproxy/pattern"
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
	classStar
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
		// my_isspace of every client character set below 0x80
		case c >= '\t' && c <= '\r' || c == ' ':
			t[c] = classBlank
		case c >= '0' && c <= '9':
			t[c] = classDigit
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_':
			t[c] = classLetter
		case c >= 0x80:
			t[c] = classHigh
		}
	}
	for _, c := range "!%&+.:<=>?@^{|}~" {
		t[c] = classPunct
	}
	for c, k := range map[byte]class{
		'$': classDollar, '\'': classQuote, '"': classDouble, '`': classTick, '(': classOpen, ')': classClose,
		',': classComma, '*': classStar, ';': classSemicolon, '-': classDash, '/': classSlash, '#': classHash, '\\': classBackslash,
	} {
		t[c] = k
	}
	return t
}

// skims marks the bytes that a walk over statements passes without a look.
var skims = skimTable()

func skimTable() (t [256]bool) {
	for c, k := range classes {
		t[c] = k == classBlank || k == classDigit || k == classLetter || k == classPunct
	}
	return t
}

// literals marks those among them that are part of a literal: the bytes of numbers, and blanks.
var literals = literalTable()

func literalTable() (t [256]bool) {
	for c, k := range classes {
		t[c] = k == classBlank || k == classDigit || c == '.'
	}
	return t
}

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// quotedEnd returns the index behind the quoted text whose opening quote stands at text[start], or
// -1 when text ends before it does. esc is the byte that takes the next one with it, or quote
// itself when there is none. plain is false when a doubled quote or an escape stands inside.
//
// Servers step over whole characters of the client's character set first, and a byte that begins
// none stands alone; an escape takes one byte with it, not one character.
func quotedEnd(text []byte, start int, esc byte, cs Charset) (end int, plain bool) {
	quote := text[start]
	quotes, escapes, wide := lows*uint64(quote), lows*uint64(esc), uint64(0)
	if cs.Hides() {
		wide = highs
	}
	plain = true
	leaps := start + longQuote
	for i := start + 1; i < len(text); {
		if len(text)-i >= 8 {
			v := binary.LittleEndian.Uint64(text[i:])
			a, b := v^quotes, v^escapes
			// The lowest bit set marks the first zero byte of a or b; bits above it may be wrong.
			hit := ((a-lows)&^a|(b-lows)&^b)&highs | v&wide
			if hit == 0 {
				if i += 8; i > leaps && wide == 0 {
					from := i
					if i = leap(text, i, quote, esc); i-from < longQuote {
						leaps = i + 8*longQuote // it does not pay here
					}
				}
				continue
			}
			first := bits.TrailingZeros64(hit) >> 3
			if text[i+first] == esc && esc != quote {
				if n := escapedBy(v, quotes, escapes, wide); n > 0 {
					plain = false
					i += n
					continue
				}
			}
			i += first
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

// escapedBy returns how far the quoted text surely goes on in the eight bytes of v, some of which
// are escapes; 0 when that takes a closer look.
func escapedBy(v, quotes, escapes, wide uint64) int {
	e := zeros(v ^ escapes)
	if v&wide != 0 || e&(e<<8) != 0 {
		return 0
	}
	// No escape is behind another one, so each takes the byte behind it.
	if ends := zeros(v^quotes) &^ (e << 8); ends != 0 {
		return bits.TrailingZeros64(ends) >> 3
	}
	return 8 + int(e>>63)
}

// zeros marks the highest bit of each byte of v that is zero.
func zeros(v uint64) uint64 { return ^((v&^highs + lows*0x7F) | v) & highs }

// longQuote is the length from which a quoted text is worth a search by vector instructions, which
// is slow to begin.
const longQuote = 64

// leap returns the index of the first quote or escape in text from i on.
func leap(text []byte, i int, quote, esc byte) int {
	const most = 256 // of text that is looked at twice
	for i < len(text) {
		part := text[i:min(i+most, len(text))]
		n := bytes.IndexByte(part, quote)
		if n >= 0 {
			part = part[:n]
		}
		if m := bytes.IndexByte(part, esc); m >= 0 && esc != quote {
			return i + m
		}
		if n >= 0 {
			return i + n
		}
		i += len(part)
	}
	return i
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

// undouble returns the name whose quotes stand at text[start] and in front of text[end], as servers
// read it: they take the second of each pair out byte by byte, so that one in a wider character
// counts, too. MySQL does so where there is a pair, and takes as many bytes as the name should
// have, also from behind it; MariaDB does so always, and stops at its end.
func undouble(text []byte, start, end int, m Mode) []byte {
	quote, inner := text[start], text[start+1:end-1]
	size := len(inner)
	for i := 0; i < len(inner); {
		n := m.Charset.charLen(inner[i:])
		if inner[i] == quote {
			size, n = size-1, 2
		}
		i += n
	}
	out := make([]byte, 0, len(inner))
	for i := start + 1; i < len(text) && (m.MariaDB && i < end-1 || !m.MariaDB && len(out) < size); i++ {
		out = append(out, text[i])
		if text[i] == quote {
			i++
		}
	}
	return out
}

// isSpelled reports whether a name in a text is that of a column, as servers compare them: without
// regard to case. spelled is the column's name as the text would have it. Where that differs from
// the name itself the text is not in UTF-8, and letters beyond ASCII are told from their capitals.
func isSpelled(word []byte, spelled, name string) bool {
	return ascii.EqualFold(word, spelled) || spelled == name && !ascii.ValidString(name) && pattern.Fold(string(word)) == pattern.Fold(name)
}
