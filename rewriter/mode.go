package rewriter

// Mode is what the session's settings make of SQL text. The zero Mode is a MySQL server with a default sql_mode, a
// character set whose characters never hide ASCII bytes, and no multi-statements.
type Mode struct {
	ANSIQuotes         bool    // sql_mode ANSI_QUOTES: "x" is an identifier
	NoBackslashEscapes bool    // sql_mode NO_BACKSLASH_ESCAPES: \ is a plain byte in strings
	NoAutoValueOnZero  bool    // sql_mode NO_AUTO_VALUE_ON_ZERO: 0 and DEFAULT do not generate
	MariaDB            bool    // the server is MariaDB: /*M! */ is code, $$ quotes nothing
	MultiStatements    bool    // the server splits the text at ';'
	Charset            Charset // character_set_client: how bytes group into characters
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
func CharsetOf(name string) Charset { return SingleByte }

// Doubt names the settings that the reading of a text depends on.
type Doubt uint8

// A text without any of these bytes reads the same under every [Mode] of one server.
const (
	DoubtQuotes    Doubt = 1 << iota // the text has a `"`: ANSI_QUOTES matters
	DoubtBackslash                   // the text has a `\`: NO_BACKSLASH_ESCAPES matters
	DoubtCharset                     // the text has a byte >= 0x80: character_set_client matters
)

// DoubtsOf returns the settings that the reading of text depends on.
func DoubtsOf(text []byte) Doubt { return 0 }
