package infile

import "strings"

// Charset says how the bytes of a file group into characters.
type Charset uint8

// The character sets that servers step through in whole characters, and all others.
const (
	Single Charset = iota
	UTF8MB3
	UTF8MB4
	GBK
	Big5
	SJIS
	CP932
	EUCKR
	GB2312
	UJIS
	EUCJPMS
	GB18030
)

var wide = map[string]Charset{
	"utf8": UTF8MB3, "utf8mb3": UTF8MB3, "utf8mb4": UTF8MB4, "gbk": GBK, "big5": Big5, "sjis": SJIS, "cp932": CP932, "euckr": EUCKR,
	"gb2312": GB2312, "ujis": UJIS, "eucjpms": EUCJPMS, "gb18030": GB18030,
}

const singleByte = " armscii8 ascii binary cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8 greek hebrew hp8 keybcs2 koi8r koi8u" +
	" latin1 latin2 latin5 latin7 macce macroman swe7 tis620 "

// CharsetOf returns the Charset of a character set by the server's name for it. ok is false for
// those that are not known, and for those whose ASCII characters take more than one byte: ucs2,
// utf16, utf16le, utf32.
func CharsetOf(name string) (cs Charset, ok bool) {
	name = strings.ToLower(name)
	if cs, ok = wide[name]; ok {
		return cs, true
	}
	return Single, name != "" && !strings.Contains(name, " ") && strings.Contains(singleByte, " "+name+" ")
}

func within(c, first, last byte) bool { return c >= first && c <= last }

// leads reports whether c begins a character of more than one byte in a set of two bytes at most.
func (cs Charset) leads(c byte) bool {
	switch cs {
	case GBK, EUCKR, GB18030:
		return within(c, 0x81, 0xFE)
	case Big5:
		return within(c, 0xA1, 0xF9)
	case SJIS, CP932:
		return within(c, 0x81, 0x9F) || within(c, 0xE0, 0xFC)
	case GB2312:
		return within(c, 0xA1, 0xF7)
	}
	return false
}

// pair reports whether two bytes are a character.
func (cs Charset) pair(c, d byte) bool {
	switch cs {
	case GBK, GB18030:
		return cs.leads(c) && (within(d, 0x40, 0x7E) || within(d, 0x80, 0xFE))
	case Big5:
		return cs.leads(c) && (within(d, 0x40, 0x7E) || within(d, 0xA1, 0xFE))
	case SJIS, CP932:
		return cs.leads(c) && (within(d, 0x40, 0x7E) || within(d, 0x80, 0xFC))
	case EUCKR:
		return cs.leads(c) && (within(d, 0x41, 0x5A) || within(d, 0x61, 0x7A) || within(d, 0x81, 0xFE))
	case GB2312:
		return cs.leads(c) && within(d, 0xA1, 0xFE)
	case UJIS, EUCJPMS:
		return c == 0x8E && within(d, 0xA0, 0xDF) || within(c, 0xA1, 0xFE) && within(d, 0xA1, 0xFE)
	case UTF8MB3, UTF8MB4:
		return within(c, 0xC2, 0xDF) && tail(d)
	}
	return false
}

// tail reports whether c continues a character of UTF-8.
func tail(c byte) bool { return c&0xC0 == 0x80 }

// valid reports whether b, of at least two bytes, is one character.
func (cs Charset) valid(b []byte) bool {
	switch {
	case len(b) == 2:
		return cs.pair(b[0], b[1])
	case cs == UJIS || cs == EUCJPMS:
		return len(b) == 3 && b[0] == 0x8F && within(b[1], 0xA1, 0xFE) && within(b[2], 0xA1, 0xFE)
	case cs == GB18030:
		return len(b) == 4 && within(b[0], 0x81, 0xFE) && within(b[1], '0', '9') && within(b[2], 0x81, 0xFE) && within(b[3], '0', '9')
	case cs != UTF8MB3 && cs != UTF8MB4:
		return false
	case len(b) == 3:
		return within(b[0], 0xE0, 0xEF) && tail(b[1]) && tail(b[2]) && (b[0] != 0xE0 || b[1] >= 0xA0)
	}
	return cs == UTF8MB4 && within(b[0], 0xF0, 0xF4) && tail(b[1]) && tail(b[2]) && tail(b[3]) &&
		(b[0] != 0xF0 || b[1] >= 0x90) && (b[0] != 0xF4 || b[1] <= 0x8F)
}

// These stand in the place of a length, for the prefix of a character.
const (
	tooShort = -1 // more bytes are needed
	broken   = 0  // no character begins so
)

// lengthMariaDB returns the length of the character that b is, as MariaDB's charlen does.
func (cs Charset) lengthMariaDB(b []byte) int {
	c := b[0]
	switch {
	case c < 0x80:
		return 1
	case cs == UTF8MB3 || cs == UTF8MB4:
		n := utf8Length(c)
		switch {
		case n == 0 || n == 4 && (cs == UTF8MB3 || c > 0xF4):
			return broken
		case len(b) < n:
			return tooShort
		case cs.valid(b):
			return n
		}
		return broken
	case cs == SJIS && within(c, 0xA1, 0xDF), cs == CP932 && within(c, 0xA1, 0xDF):
		return 1
	case len(b) < 2:
		return tooShort
	case cs.pair(c, b[1]):
		return 2
	case cs != UJIS && cs != EUCJPMS || c != 0x8F || !within(b[1], 0xA1, 0xFE):
		return broken
	case len(b) < 3:
		return tooShort
	case cs.valid(b):
		return 3
	}
	return broken
}

// utf8Length returns the length of the character that c begins; 0 when it begins none.
func utf8Length(c byte) int {
	switch {
	case c < 0x80:
		return 1
	case c < 0xC2:
		return 0
	case c < 0xE0:
		return 2
	case c < 0xF0:
		return 3
	case c < 0xF8:
		return 4
	}
	return 0
}

// lengthMySQL returns the length of the character that c begins, as MySQL's mbcharlen does; 0 when
// MySQL refuses it. next is the byte behind it, negative at the end of the file: one set needs it.
func (cs Charset) lengthMySQL(c byte, next int) int {
	switch {
	case c < 0x80:
		return 1
	case cs == UTF8MB4:
		return utf8Length(c)
	case cs == UTF8MB3:
		if n := utf8Length(c); n < 4 {
			return n
		}
		return 0
	case cs == GB18030:
		switch {
		case !cs.leads(c):
			return 1
		case next < 0:
			return 0
		case cs.pair(c, byte(next)):
			return 2
		case within(byte(next), '0', '9'):
			return 4
		}
		return 0
	case cs == UJIS || cs == EUCJPMS:
		switch {
		case c == 0x8F:
			return 3
		case c == 0x8E || within(c, 0xA1, 0xFE):
			return 2
		}
		return 1
	case cs.leads(c):
		return 2
	}
	return 1
}
