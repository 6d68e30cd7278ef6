package rewriter

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// Mode is what the session's settings make of SQL text. The zero Mode is a MySQL server with a default sql_mode, a
// character set whose characters never hide ASCII bytes, and no multi-statements.
type Mode struct {
	ANSIQuotes         bool    // sql_mode ANSI_QUOTES: "x" is an identifier
	NoBackslashEscapes bool    // sql_mode NO_BACKSLASH_ESCAPES: \ is a plain byte in strings
	NoAutoValueOnZero  bool    // sql_mode NO_AUTO_VALUE_ON_ZERO: 0 and DEFAULT do not generate
	MariaDB            bool    // the server is MariaDB: /*M! */ is code, $$ quotes nothing
	MultiStatements    bool    // the server splits the text at ';'
	Charset            Charset // character_set_client: how bytes group into characters
	Version            uint32  // the server's: 101119 is MariaDB 10.11.19, 90704 MySQL 9.7.4; 0 when it is not known
}

// Charset says how the bytes of character_set_client group into characters, as far as a scanner of SQL must know.
type Charset uint8

// The charsets whose characters may hide a quote, a backslash or a backtick in their second byte, and all the others.
const (
	SingleByte Charset = iota // ascii, latin1, utf8*, binary, euc*: no byte below 0x80 is ever part of another character
	GBK
	Big5
	SJIS // also cp932
	GB18030
)

// CharsetOf returns the Charset of a character set or collation name as the server spells it, such as "gbk" or
// "gbk_chinese_ci". Names it does not know are SingleByte: servers refuse any other such set for character_set_client.
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
	}
	return SingleByte
}

// maxChar is the length of the longest character of a set that charLen knows.
const maxChar = 4

// charLen returns the length of the character that b, which is not empty, begins with; 1 when it begins with none.
// The ranges are those of the servers' ctype tables, which differ from the standards' in places.
func (cs Charset) charLen(b []byte) int {
	if cs == SingleByte || b[0] < 0x80 || len(b) < 2 {
		return 1
	}
	c, d := b[0], b[1]
	var pair bool
	switch cs {
	case GBK:
		pair = c >= 0x81 && c <= 0xFE && (d >= 0x40 && d <= 0x7E || d >= 0x80 && d <= 0xFE)
	case Big5:
		pair = c >= 0xA1 && c <= 0xF9 && (d >= 0x40 && d <= 0x7E || d >= 0xA1 && d <= 0xFE)
	case SJIS:
		pair = (c >= 0x81 && c <= 0x9F || c >= 0xE0 && c <= 0xFC) && (d >= 0x40 && d <= 0x7E || d >= 0x80 && d <= 0xFC)
	case GB18030:
		if len(b) >= 4 && gb18030Digits(c, d) && gb18030Digits(b[2], b[3]) {
			return 4
		}
		pair = c >= 0x81 && c <= 0xFE && (d >= 0x40 && d <= 0x7E || d >= 0x80 && d <= 0xFE)
	}
	if pair {
		return 2
	}
	return 1
}

func gb18030Digits(c, d byte) bool { return c >= 0x81 && c <= 0xFE && d >= '0' && d <= '9' }

// Doubt names the settings that the reading of a text depends on.
type Doubt uint8

// A text without any of these bytes reads the same under every [Mode] of one server.
const (
	DoubtQuotes    Doubt = 1 << iota // the text has a `"`: ANSI_QUOTES matters
	DoubtBackslash                   // the text has a `\`: NO_BACKSLASH_ESCAPES matters
	DoubtCharset                     // the text has a byte >= 0x80: character_set_client matters
)

// DoubtsOf returns the settings that the reading of text depends on.
func DoubtsOf(text []byte) Doubt {
	var d Doubt
	if bytes.IndexByte(text, '"') >= 0 {
		d |= DoubtQuotes
	}
	if bytes.IndexByte(text, '\\') >= 0 {
		d |= DoubtBackslash
	}
	if hasHigh(text) {
		d |= DoubtCharset
	}
	return d
}

func hasHigh(text []byte) bool {
	for len(text) >= 32 {
		v := binary.LittleEndian.Uint64(text) | binary.LittleEndian.Uint64(text[8:]) |
			binary.LittleEndian.Uint64(text[16:]) | binary.LittleEndian.Uint64(text[24:])
		if v&highs != 0 {
			return true
		}
		text = text[32:]
	}
	for _, c := range text {
		if c >= 0x80 {
			return true
		}
	}
	return false
}
