package wire

import (
	"encoding/binary"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// The character sets of results in which ASCII is not ASCII. No client sends
// statements in them: servers refuse them for character_set_client.
const (
	notWide   = ""
	setUCS2   = "ucs2"
	setUTF16  = "utf16"
	setUTF16L = "utf16le"
	setUTF32  = "utf32"
)

// collations are the numbers from one to another.
type collations struct{ first, last uint16 }

// characterSet is a set whose characters take up to so many bytes, of those that servers have.
type characterSet struct {
	wide  string // one of those in which ASCII is not ASCII
	bytes int
}

// multibyte are the sets of more than one byte a character, by their collations. MariaDB's NO PAD
// collations are 1024 above.
var multibyte = [...]struct {
	characterSet
	of []collations
}{
	{characterSet{setUCS2, 2}, []collations{{35, 35}, {90, 90}, {128, 159}, {640, 642}}},
	{characterSet{setUTF16L, 4}, []collations{{56, 56}, {62, 62}}},
	{characterSet{setUTF16, 4}, []collations{{54, 55}, {101, 124}, {672, 674}}},
	{characterSet{setUTF32, 4}, []collations{{60, 61}, {160, 183}, {736, 738}}},
	// utf8mb4, gb18030
	{characterSet{bytes: 4}, []collations{{45, 46}, {224, 250}, {255, 323}, {608, 610}}},
	// utf8mb3, ujis, eucjpms
	{characterSet{bytes: 3}, []collations{{33, 33}, {76, 76}, {83, 83}, {192, 223}, {576, 578}, {12, 12}, {91, 91}, {97, 98}}},
	// big5, sjis, euckr, gb2312, gbk, cp932
	{characterSet{bytes: 2}, []collations{{1, 1}, {13, 13}, {19, 19}, {24, 24}, {28, 28}, {84, 88}, {95, 96}}},
}

// uca1400 are the sets of MariaDB's UCA 14.0.0 collations, 256 numbers for each.
var uca1400 = [...]characterSet{{bytes: 3}, {bytes: 4}, {setUCS2, 2}, {setUTF16, 4}, {setUTF32, 4}}

// firstUCA1400 is where their numbers begin.
const firstUCA1400 = 2048

// setOf returns the character set of a collation.
func setOf(collation uint16) characterSet {
	if collation >= firstUCA1400 {
		return uca1400[min(int(collation-firstUCA1400)>>8, len(uca1400)-1)]
	}
	id := collation % 1024
	for i := range multibyte {
		if slices.ContainsFunc(multibyte[i].of, func(c collations) bool { return c.first <= id && id <= c.last }) {
			return multibyte[i].characterSet
		}
	}
	return characterSet{bytes: 1}
}

// WideSet returns which of the sets in which ASCII is not ASCII a collation is of, "" for none.
func WideSet(collation uint16) string { return setOf(collation).wide }

// IsWide reports whether a character set is one of them.
func IsWide(set string) bool {
	return set == setUCS2 || set == setUTF16 || set == setUTF16L || set == setUTF32
}

// DecodeWide returns text of a wide set as UTF-8, and other text as it is. It leaves out a
// character that is cut off at the end.
func DecodeWide(text []byte, set string) []byte {
	var order binary.ByteOrder = binary.BigEndian
	switch set {
	case notWide:
		return text
	case setUTF16L:
		order = binary.LittleEndian
	case setUTF32:
		out := make([]byte, 0, len(text)/4)
		for ; len(text) >= 4; text = text[4:] {
			out = utf8.AppendRune(out, rune(order.Uint32(text)))
		}
		return out
	}
	out := make([]byte, 0, len(text)/2)
	for ; len(text) >= 2; text = text[2:] {
		r := rune(order.Uint16(text))
		if utf16.IsSurrogate(r) && len(text) >= 4 {
			if pair := utf16.DecodeRune(r, rune(order.Uint16(text[2:]))); pair != utf8.RuneError {
				r, text = pair, text[2:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// BinaryCollation is what columns without a character set have.
const BinaryCollation = 63

// CharBytes returns how many bytes a character of a collation's character set
// takes at most; both servers give the length of a CHAR column in such bytes,
// for the character set of results.
func CharBytes(collation uint16) int { return setOf(collation).bytes }
