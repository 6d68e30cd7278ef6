package loaddata

import (
	"strings"

	"idproxy/charset"
)

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
	"utf8": UTF8MB3, "utf8mb3": UTF8MB3, "utf8mb4": UTF8MB4, "gbk": GBK, "big5": Big5, "sjis": SJIS,
	"cp932": CP932, "euckr": EUCKR, "gb2312": GB2312, "ujis": UJIS, "eucjpms": EUCJPMS, "gb18030": GB18030,
}

const singleByte = " armscii8 ascii binary cp1250 cp1251 cp1256 cp1257 cp850 cp852 cp866 dec8 geostd8" +
	" greek hebrew hp8 keybcs2 koi8r koi8u latin1 latin2 latin5 latin7 macce macroman swe7 tis620 "

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

// These stand in the place of a length, for the prefix of a character.
const (
	tooShort = -1 // more bytes are needed
	broken   = 0  // no character begins so
)

// encoding is how the characters of one Charset are made of bytes.
type encoding interface {
	// valid reports whether b, of at least two bytes, is one character.
	valid(b []byte) bool
	// lengthMariaDB returns the length of the character that b is, whose first byte is beyond
	// ASCII, as MariaDB's charlen does.
	lengthMariaDB(b []byte) int
	// lengthMySQL returns the length of the character that c, a byte beyond ASCII, begins, as
	// MySQL's mbcharlen does; 0 when MySQL refuses it. next is the byte behind it, negative at the
	// end of the file: gb18030 needs it.
	lengthMySQL(c byte, next int) int
}

var encodings = [...]encoding{
	Single:  singleBytes{},
	UTF8MB3: utf8{longest: 3},
	UTF8MB4: utf8{longest: 4},
	GBK:     pairs{Pairs: charset.GBK},
	Big5:    pairs{Pairs: charset.Big5},
	SJIS:    pairs{Pairs: charset.SJIS, kana: true},
	CP932:   pairs{Pairs: charset.SJIS, kana: true},
	EUCKR:   pairs{Pairs: charset.EUCKR},
	GB2312:  pairs{Pairs: charset.GB2312},
	UJIS:    eucJP{},
	EUCJPMS: eucJP{},
	GB18030: gb18030{pairs{Pairs: charset.GBK}},
}

func (cs Charset) lengthMariaDB(b []byte) int {
	if b[0] < 0x80 {
		return 1
	}
	return encodings[cs].lengthMariaDB(b)
}

func (cs Charset) lengthMySQL(c byte, next int) int {
	if c < 0x80 {
		return 1
	}
	return encodings[cs].lengthMySQL(c, next)
}

func (cs Charset) valid(b []byte) bool { return encodings[cs].valid(b) }

func within(c, first, last byte) bool { return c >= first && c <= last }

// singleBytes has a character for each byte.
type singleBytes struct{}

func (singleBytes) valid([]byte) bool         { return false }
func (singleBytes) lengthMariaDB([]byte) int  { return 1 }
func (singleBytes) lengthMySQL(byte, int) int { return 1 }

// pairs are characters of one and two bytes. kana: those of one byte have half-width katakana.
type pairs struct {
	*charset.Pairs
	kana bool
}

func (p pairs) valid(b []byte) bool { return len(b) == 2 && p.Has(b[0], b[1]) }

func (p pairs) lengthMariaDB(b []byte) int {
	switch {
	case p.kana && within(b[0], 0xA1, 0xDF):
		return 1
	case len(b) < 2:
		return tooShort
	case p.Has(b[0], b[1]):
		return 2
	}
	return broken
}

func (p pairs) lengthMySQL(c byte, _ int) int {
	if p.Leads(c) {
		return 2
	}
	return 1
}

// gb18030 are pairs and characters of four bytes. MariaDB does not know them.
type gb18030 struct{ pairs }

func (g gb18030) valid(b []byte) bool {
	return g.pairs.valid(b) || len(b) == 4 && g.leadsFour(b[0], b[1]) && g.leadsFour(b[2], b[3])
}

func (g gb18030) leadsFour(c, d byte) bool { return g.Leads(c) && within(d, '0', '9') }

func (g gb18030) lengthMySQL(c byte, next int) int {
	switch {
	case !g.Leads(c):
		return 1
	case next < 0:
		return 0
	case g.Has(c, byte(next)):
		return 2
	case g.leadsFour(c, byte(next)):
		return 4
	}
	return 0
}

// eucJP are characters of two bytes, and of three.
type eucJP struct{}

const (
	eucKana  = 0x8E // begins half-width katakana, of two bytes
	eucThree = 0x8F // begins a character of three bytes
)

func eucHigh(c byte) bool { return within(c, 0xA1, 0xFE) }

func (eucJP) valid(b []byte) bool {
	switch {
	case b[0] == eucKana:
		return len(b) == 2 && within(b[1], 0xA0, 0xDF)
	case b[0] == eucThree:
		return len(b) == 3 && eucHigh(b[1]) && eucHigh(b[2])
	}
	return len(b) == 2 && eucHigh(b[0]) && eucHigh(b[1])
}

func (e eucJP) lengthMariaDB(b []byte) int {
	switch {
	case len(b) < 2, len(b) == 2 && b[0] == eucThree && eucHigh(b[1]):
		return tooShort
	case e.valid(b):
		return len(b)
	}
	return broken
}

func (eucJP) lengthMySQL(c byte, _ int) int {
	switch {
	case c == eucThree:
		return 3
	case c == eucKana, eucHigh(c):
		return 2
	}
	return 1
}

// utf8 is UTF-8 with characters of at most longest bytes. Surrogates are characters to servers.
type utf8 struct{ longest int }

// length returns the length of the character that c begins; 0 when it begins none.
func (utf8) length(c byte) int {
	switch {
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

func (u utf8) valid(b []byte) bool {
	if len(b) > u.longest || len(b) != u.length(b[0]) || b[0] > 0xF4 {
		return false
	}
	for _, c := range b[1:] {
		if c&0xC0 != 0x80 {
			return false
		}
	}
	return u.shortest(b[0], b[1])
}

// shortest reports whether a character with these first bytes is written in as few bytes as can be,
// and is none behind U+10FFFF.
func (utf8) shortest(c, d byte) bool {
	switch c {
	case 0xE0:
		return d >= 0xA0
	case 0xF0:
		return d >= 0x90
	case 0xF4:
		return d <= 0x8F
	}
	return true
}

func (u utf8) lengthMariaDB(b []byte) int {
	switch n := u.length(b[0]); {
	case n == 0, n > u.longest, b[0] > 0xF4:
		return broken
	case len(b) < n:
		return tooShort
	case u.valid(b):
		return n
	}
	return broken
}

func (u utf8) lengthMySQL(c byte, _ int) int {
	if n := u.length(c); n <= u.longest {
		return n
	}
	return 0
}
