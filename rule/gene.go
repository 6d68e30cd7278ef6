package rule

import (
	"hash/crc32"
	"math"
	"strconv"
	"unicode/utf8"

	"idproxy/ascii"
)

// MaxGeneBits bounds the bits of a Gene.
const MaxGeneBits = 16

// Gene says that the low bits of an id are those of another column of the row, its key.
type Gene struct {
	Column string
	Bits   int    // 1 to MaxGeneBits
	CRC32  bool   // the key is a text, whose CRC-32 has the bits; else it is a whole number, which has them itself
	Shard  *Shard // that the rows must be of; nil: they are of any
}

// Shard is one of 2^Bits: that of the rows whose gene ends in Value.
type Shard struct {
	Listener string // that leads to it
	Bits     int    // no more than the gene has
	Value    uint16
}

// Of returns the shard that a gene is of.
func (s *Shard) Of(gene uint16) uint16 { return gene & (1<<s.Bits - 1) }

// Elsewhere reports whether a row with a gene is of another shard.
func (g *Gene) Elsewhere(gene uint16) bool {
	return g.Shard != nil && g.Shard.Of(gene) != g.Shard.Value
}

// Size is how many values the gene can have, 2^Bits.
func (g *Gene) Size() uint64 { return 1 << g.Bits }

// Of returns the id with the gene among the Size ids from first on, which all are the caller's.
func (g *Gene) Of(first uint64, gene uint16) uint64 {
	return first + (uint64(gene)-first)&(g.Size()-1)
}

// String is what ids and keys have in common, as SQL of the table.
func (g *Gene) String() string {
	n := strconv.FormatUint(g.Size(), 10)
	if g.CRC32 {
		return "CRC32(" + g.Column + ") % " + n
	}
	return g.Column + " % " + n
}

// OfNumber returns the gene of a key that is a whole number. why is not empty when the column may
// store another value.
func (g *Gene) OfNumber(n uint64, key Column) (gene uint16, why string) {
	switch {
	case g.CRC32:
		return 0, "a number for a gene by crc32"
	case n > key.Max:
		return 0, "a number above what the column holds"
	}
	return uint16(n & (g.Size() - 1)), ""
}

// OfText returns the gene of a key that is a text, in the character set of the connection. longest
// is the length in bytes of the longest UTF-8 character that reaches the server unchanged; 0: only
// ASCII is known to; -1: not even that. why is not empty when the column may store another value.
func (g *Gene) OfText(text []byte, key Column, longest int) (gene uint16, why string) {
	if !g.CRC32 {
		n, ok := WholeNumber(text)
		if !ok {
			return 0, "a text that is no plain whole number"
		}
		return g.OfNumber(n, key)
	}
	switch {
	case longest < 0:
		return 0, "a text in a character set that may change ASCII"
	case len(text) == 0:
		return 0, "a text of no characters, which may be NULL,"
	}
	length := len(text)
	if !ascii.Valid(text) {
		if key.Charset == "utf8mb3" || key.Charset == "utf8" {
			longest = min(longest, 3)
		} else if key.Charset != "utf8mb4" && key.Charset != "binary" {
			longest = 0
		}
		for rest := text; len(rest) > 0; {
			r, n := utf8.DecodeRune(rest)
			if n > longest && n > 1 || r == utf8.RuneError && n == 1 {
				return 0, "characters beyond ASCII that may be stored as other bytes"
			}
			rest = rest[n:]
		}
		if !key.Bytes {
			length = utf8.RuneCount(text)
		}
	}
	switch {
	case length > key.Length:
		return 0, "a text longer than the column holds"
	case key.Padded && key.Bytes && length < key.Length:
		return 0, "a value shorter than its BINARY column, which is filled up"
	case key.Padded && !key.Bytes && length > 0 && text[len(text)-1] == ' ':
		return 0, "a text for a CHAR column that ends in a space"
	}
	return uint16(uint64(crc32.ChecksumIEEE(text)) & (g.Size() - 1)), ""
}

// Fits returns why a column cannot be the key, and "" when it can.
func (g *Gene) Fits(key Column) (why string) {
	switch {
	case key.AutoIncrement:
		return "has AUTO_INCREMENT"
	case !g.CRC32 && !key.integer():
		return "is no integer, which by: mod needs"
	case g.CRC32 && (key.Length == 0 || key.UUID):
		return "is no CHAR, VARCHAR, BINARY or VARBINARY, which by: crc32 needs"
	case g.CRC32 && !keyCharsets[key.Charset]:
		return "has character set " + key.Charset + ": by: crc32 knows utf8mb4, utf8mb3, latin1, ascii and binary"
	}
	return ""
}

// keyCharsets are those in which ASCII is ASCII, as far as keys are known to be in use in them.
var keyCharsets = map[string]bool{"utf8mb4": true, "utf8mb3": true, "utf8": true, "latin1": true, "ascii": true, "binary": true}

// WholeNumber returns the number that a text of digits alone is, up to 64 bits.
func WholeNumber(text []byte) (n uint64, ok bool) {
	for _, c := range text {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(text) > 0
}
