package rewriter

import (
	"encoding/hex"
	"strings"

	"idproxy/charset"
)

// Charset says what the bytes of character_set_client are, as far as a scanner of SQL must know.
type Charset uint8

// The charsets whose characters may hide a quote, a backslash or a backtick in their second byte,
// other ones with characters of several bytes, and all the others. Behind them come those of
// narrow, in its order.
const (
	// ascii, utf8*, binary, and what is not known: no byte below 0x80 is ever part of another
	// character
	SingleByte Charset = iota
	GBK
	Big5
	SJIS // also cp932
	GB18030
	EUCKR
	GB2312
	UJIS // also eucjpms
	firstNarrow
)

// narrow are the sets of one byte a character in which servers take some bytes above 0x7F for
// letters of unquoted names, or for blanks: a bit each, the lowest of the first byte for 0x80.
// Measured; both servers have the same.
var narrow = [...]struct{ name, letters, blanks string }{
	{"armscii8", "000000000000fcffffffffffffffff3f", "00000000010000000000000000000000"},
	{"cp1250", "00f400f4a88408d6ffff7fffffff7f7f", "00000000010000000000000000000000"},
	{"cp1251", "0bf401f42e851cf5ffffffffffffffff", "00000000000000000000000000000000"},
	{"cp1256", "0a70011000000000feff7fffffff7f1f", "00000000000000000000000000000000"},
	{"cp1257", "0000000000850085ffff7fffffff7f7f", "00000000000000000000000000000000"},
	{"cp850", "ffffff2f3f00e000c000ff41bf3f0000", "00000000000000000000000000000000"},
	{"cp852", "ffffffbfff3be061c000ff61ff7f0038", "00000000000000000000000000000080"},
	{"cp866", "ffffffffffff000000000000ffffff00", "00000000000000000000000000000080"},
	{"dec8", "0000000000000000ffff7fffffff7fff", "00000000010000000000000000000000"},
	{"geostd8", "0000000000000000ffffffff3f000000", "00000000010000000000000000000000"},
	{"greek", "00000000000040d7fffffbffffffff7f", "00000000010000000000000000000000"},
	{"hebrew", "000000000000000000000000ffffff07", "00000000010000000000000000000000"},
	{"hp8", "000000000000000020d0991d00000000", "00000000000000000000000000000000"},
	{"keybcs2", "ffffffffff0f000000000000bf6f0000", "00000000000000000000000000000080"},
	{"koi8r", "0000000008000800ffffffffffffffff", "00000000000000000000000000000000"},
	{"koi8u", "00000000d820d820ffffffffffffffff", "00000000000000000000000000000000"},
	{"latin1", "085400d400000000ffff7fffffff7fff", "00000000010000000000000000000000"},
	{"latin2", "000000006ade6adeffff7e7fffff7f7f", "00000000010000000000000000000000"},
	{"latin5", "0000000000000000ffff7fffffff7fff", "00000000010000000000000000000000"},
	{"latin7", "0100000000840084ffff7fffffff7f7f", "00000000010000000000000000000000"},
	{"macce", "ffffffff84c833ff33f800cff3ffff7f", "00000000000000000000000000000000"},
	{"macroman", "feffffff80c000c010300003c0ff3e00", "00000000000000000000000000000000"},
}

// narrowBytes are the same, by byte.
var narrowBytes = narrowTable()

const (
	narrowLetter = 1 + iota
	narrowBlank
)

func narrowTable() (t [len(narrow)][128]uint8) {
	for i, set := range narrow {
		for kind, bits := range map[uint8]string{narrowLetter: set.letters, narrowBlank: set.blanks} {
			b, err := hex.DecodeString(bits)
			if err != nil {
				panic(err) // a constant
			}
			for c := range t[i] {
				if b[c/8]>>(c%8)&1 != 0 {
					t[i][c] = kind
				}
			}
		}
	}
	return t
}

// CharsetOf returns the Charset of a character set or collation name as the server spells it, such
// as "gbk" or "gbk_chinese_ci". Names it does not know are SingleByte: servers refuse any other
// such set for character_set_client.
func CharsetOf(name string) Charset {
	set, _, _ := strings.Cut(strings.ToLower(name), "_")
	switch set {
	case "gbk":
		return GBK
	case "big5":
		return Big5
	case "sjis", "cp932":
		return SJIS
	case "gb18030":
		return GB18030
	case "euckr":
		return EUCKR
	case "gb2312":
		return GB2312
	case "ujis", "eucjpms":
		return UJIS
	}
	for i := range narrow {
		if narrow[i].name == set {
			return firstNarrow + Charset(i)
		}
	}
	return SingleByte
}

// Hides reports whether characters of the set may have a byte below 0x80 that means something in
// SQL by itself.
func (cs Charset) Hides() bool { return cs >= GBK && cs <= GB18030 }

// maxChar is the length of the longest character of a set that charLen knows.
const maxChar = 4

// charLen returns the length of the character that b, which is not empty, begins with, as far as
// that matters to what SQL means; 1 when it begins with none. The ranges are those of the servers'
// ctype tables, which differ from the standards' in places.
func (cs Charset) charLen(b []byte) int {
	if !cs.Hides() || b[0] < 0x80 || len(b) < 2 {
		return 1
	}
	switch {
	case cs == GB18030 && len(b) >= 4 && gb18030Digits(b[0], b[1]) && gb18030Digits(b[2], b[3]):
		return 4
	case pairs[cs].Has(b[0], b[1]):
		return 2
	}
	return 1
}

// pairs are the sets that have characters of two bytes, but for UJIS, which has some of three.
var pairs = [...]*charset.Pairs{
	GBK: charset.GBK, Big5: charset.Big5, SJIS: charset.SJIS, GB18030: charset.GBK,
	EUCKR: charset.EUCKR, GB2312: charset.GB2312,
}

func gb18030Digits(c, d byte) bool { return c >= 0x81 && c <= 0xFE && d >= '0' && d <= '9' }

// letterLen returns the length of the character of an unquoted name that b, which begins with a
// byte above 0x7F, begins with; 0 when it begins with none.
func (cs Charset) letterLen(b []byte) int {
	switch {
	case cs == SingleByte:
		return 1 // word looks whether all of them are UTF-8
	case cs >= firstNarrow:
		if narrowBytes[cs-firstNarrow][b[0]-0x80] == narrowLetter {
			return 1
		}
	case cs == UJIS:
		return eucJPLen(b)
	case cs.Hides():
		if n := cs.charLen(b); n > 1 {
			return n
		}
	case len(b) > 1 && pairs[cs].Has(b[0], b[1]): // EUCKR, GB2312
		return 2
	}
	return 0
}

// eucJPLen returns the length of the character of ujis or eucjpms that b begins with; 0 when it
// begins with none of several bytes.
func eucJPLen(b []byte) int {
	high := 0 // bytes of such a character, behind the first one
	for high < 2 && high+1 < len(b) && b[high+1] >= 0xA1 && b[high+1] <= 0xFE {
		high++
	}
	switch c := b[0]; {
	case c == 0x8F && high == 2:
		return 3
	case c >= 0xA1 && c <= 0xFE && high > 0, c == 0x8E && high > 0 && b[1] <= 0xDF:
		return 2
	}
	return 0
}

// blank reports whether a byte is one outside quotes.
func (cs Charset) blank(c byte) bool {
	return c >= 0x80 && cs >= firstNarrow && narrowBytes[cs-firstNarrow][c-0x80] == narrowBlank
}

// AppendQuoted appends a name in backticks, such that a server reads it.
//
// A byte that looks like a backtick may be the second half of a character. MariaDB then leaves out
// the byte behind the character, and so gets one to leave out. A byte at the end of the name that
// would take the closing backtick for its second half is written as a question mark.
//
// MySQL misreads a name that has both such a character and a backtick of its own: callers must not
// write it.
func AppendQuoted[T []byte | string](dst []byte, name T, m Mode) []byte {
	dst = append(dst, '`')
	for i := 0; i < len(name); {
		c, n := name[i], 1
		switch {
		case c == '`':
			dst = append(dst, c)
		case c >= 0x80 && i+1 < len(name):
			n = m.Charset.charLen([]byte(name[i:min(i+maxChar, len(name))]))
		case c >= 0x80 && m.Charset.charLen([]byte{c, '`'}) > 1:
			return append(dst, "?`"...)
		}
		dst = append(dst, name[i:i+n]...)
		i += n
		if n > 1 && m.MariaDB && name[i-1] == '`' && i < len(name) {
			dst = append(dst, '_')
		}
	}
	return append(dst, '`')
}
