package wire

import (
	"encoding/binary"
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

// WideSet returns which of them a collation is of, "" for none.
func WideSet(collation uint16) string {
	id := collation
	if id >= firstUCA1400 {
		return [8]string{2: setUCS2, 3: setUTF16, 4: setUTF32}[(id-firstUCA1400)>>8&7]
	}
	if id >= 1024 {
		id -= 1024 // MariaDB's NO PAD collations
	}
	between := func(low, high uint16) bool { return low <= id && id <= high }
	switch {
	case id == 35, id == 90, between(128, 159), between(640, 642):
		return setUCS2
	case id == 56, id == 62:
		return setUTF16L
	case id == 54, id == 55, between(101, 124), between(672, 674):
		return setUTF16
	case id == 60, id == 61, between(160, 183), between(736, 738):
		return setUTF32
	}
	return notWide
}

// IsWide reports whether a character set is one of them.
func IsWide(set string) bool {
	return set == setUCS2 || set == setUTF16 || set == setUTF16L || set == setUTF32
}

// firstUCA1400 is where the numbers of MariaDB's UCA 14.0.0 collations begin,
// 256 for each of utf8mb3, utf8mb4, ucs2, utf16 and utf32.
const firstUCA1400 = 2048

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
func CharBytes(collation uint16) int {
	switch WideSet(collation) {
	case setUCS2:
		return 2
	case setUTF16, setUTF16L, setUTF32:
		return 4
	}
	id := collation
	if 1024 <= id && id < firstUCA1400 {
		id -= 1024 // MariaDB's NO PAD collations
	}
	between := func(low, high uint16) bool { return low <= id && id <= high }
	switch {
	case id >= firstUCA1400 && id < firstUCA1400+256:
		return 3 // utf8mb3
	case id == 45, id == 46, between(224, 250), between(255, 323), between(608, 610), id >= firstUCA1400:
		return 4 // utf8mb4, gb18030
	case id == 33, id == 76, id == 83, between(192, 223), between(576, 578), id == 12, id == 91, id == 97, id == 98:
		return 3 // utf8mb3, ujis, eucjpms
	case id == 1, id == 13, id == 19, id == 24, id == 28, between(84, 88), id == 95, id == 96:
		return 2 // big5, sjis, euckr, gb2312, gbk, cp932
	}
	return 1
}
