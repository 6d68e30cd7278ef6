package rewriter

import (
	"bytes"

	"idproxy/ascii"
)

// Mode is what the session's settings make of SQL text. The zero Mode is a MySQL server with a
// default sql_mode, a character set whose characters never hide ASCII bytes, and no
// multi-statements.
type Mode struct {
	ANSIQuotes         bool    // sql_mode ANSI_QUOTES: "x" is an identifier
	NoBackslashEscapes bool    // sql_mode NO_BACKSLASH_ESCAPES: \ is a plain byte in strings
	NoAutoValueOnZero  bool    // sql_mode NO_AUTO_VALUE_ON_ZERO: 0 and DEFAULT do not generate
	MariaDB            bool    // the server is MariaDB: /*M! */ is code, $$ quotes nothing
	MultiStatements    bool    // the server splits the text at ';'
	Charset            Charset // character_set_client: how bytes group into characters
	// the server's: 101119 is MariaDB 10.11.19, 90704 MySQL 9.7.4; 0 when it is not known
	Version uint32
}

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
	if !ascii.Valid(text) {
		d |= DoubtCharset
	}
	return d
}
