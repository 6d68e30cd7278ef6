package rewriter

import (
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
