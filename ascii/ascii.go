package ascii

import (
	"bytes"
	"encoding/binary"
)

// word marks the bytes of an unquoted identifier.
var word = func() (t [256]bool) {
	for c := range t {
		digit, letter := c >= '0' && c <= '9', c|0x20 >= 'a' && c|0x20 <= 'z'
		t[c] = digit || letter || c == '_' || c == '$'
	}
	return t
}()

// IsWord reports whether an ASCII byte may stand in an unquoted identifier.
func IsWord(c byte) bool { return word[c] }

// Valid reports whether all bytes of a text are ASCII.
func Valid(text []byte) bool {
	const highs = 0x8080808080808080
	for len(text) >= 32 {
		v := binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
		if v&highs != 0 {
			return false
		}
		text = text[32:]
	}
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// ValidString is Valid for a string.
func ValidString(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// EqualFold reports whether two texts are equal but for the case of their ASCII letters.
func EqualFold[T []byte | string](a T, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(b) {
		c, d := a[i], b[i]
		if c == d {
			continue
		}
		if c|0x20 != d|0x20 || c|0x20 < 'a' || c|0x20 > 'z' {
			return false
		}
	}
	return true
}

// HasWord reports whether a word stands in text, and is no part of a longer one. Digits in front
// may be those of a version comment, and what is not ASCII is no part of it. Both are in lower
// case.
func HasWord(text []byte, w string) bool {
	for from := 0; ; from++ {
		at := bytes.Index(text[from:], []byte(w))
		if at < 0 {
			return false
		}
		from += at
		end := from + len(w)
		if (from == 0 || !word[text[from-1]] || text[from-1]-'0' <= 9) && (end == len(text) || !word[text[end]]) {
			return true
		}
	}
}
