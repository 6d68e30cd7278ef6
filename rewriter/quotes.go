package rewriter

import (
	"encoding/binary"
	"math/bits"
)

// block is what is known of 64 bytes of a text, or of the fewer at its end, by a bit for each. One
// look at a block finds the ends of all strings in it. The zero block knows nothing.
type block struct {
	at     int // where it begins: in quoted text, and not behind an escape
	size   int // 64, or 65 where the last byte escapes the one behind
	quote  byte
	escape byte   // quote itself where there are no escapes
	ends   uint64 // quotes that no escape stands in front of
	marks  uint64 // escapes
}

// quotedEnd returns the index behind the quoted text whose opening quote stands at text[start], or
// -1 when text ends before it does. escape is the byte that takes the next one with it, or the
// quote itself when there is none. plain is false when a doubled quote or an escape stands inside.
func (b *block) quotedEnd(text []byte, start int, escape byte, cs Charset) (end int, plain bool) {
	quote := text[start]
	if cs.Hides() {
		return wideQuotedEnd(text, start, escape, cs)
	}
	plain = true
	for i := start + 1; i < len(text); {
		if uint(i-b.at) >= 64 || b.quote != quote || b.escape != escape {
			b.read(text, i, i-start > longQuote, quote, escape)
			i = b.at
		}
		from := uint(i - b.at)
		ends, marks := b.ends>>from, b.marks>>from
		if ends == 0 {
			plain = plain && marks == 0
			i = b.at + b.size
			continue
		}
		plain = plain && marks&(ends-1)&^ends == 0 // no escape in front of the lowest bit
		i += bits.TrailingZeros64(ends) + 1
		if i == len(text) || text[i] != quote {
			return i, plain
		}
		plain = false
		i++
	}
	return -1, plain
}

// longQuote is the length from which the search leaps to the next quote or escape. Shorter texts are
// read block by block: how many blocks a leap takes is a guess that a processor gets wrong.
const longQuote = 4 * 64

// read reads the block that begins at text[at]; leap: or the next one that has quotes or escapes.
func (b *block) read(text []byte, at int, leap bool, quote, escape byte) {
	skipped, marks := 0, uint64(0)
	switch {
	case leap && len(text)-at >= 64:
		skipped, b.ends, marks = find2(text[at:], quote, escape)
	case len(text)-at >= 64:
		_, b.ends, marks = find2(text[at:at+64], quote, escape)
	default:
		b.ends, marks = findLast2(text[at:], quote, escape)
	}
	b.at, b.size, b.quote, b.escape, b.marks = at+skipped, 64, quote, escape, 0
	if marks != 0 && escape != quote {
		b.escapes(marks)
	}
}

// findLast2 is find2 for less than 64 bytes.
func findLast2(in []byte, a, b byte) (as, bs uint64) {
	var block [64]byte // neither is a zero byte
	copy(block[:], in)
	_, as, bs = find2(block[:], a, b)
	return as, bs
}

// escapes notes the escapes of a block. Of each run of them the first takes the second with it, the
// third the fourth, and so on: adding up from where the runs begin tells odd places in them from
// even ones. This is simdjson's.
func (b *block) escapes(marks uint64) {
	const odd = 0xAAAAAAAAAAAAAAAA
	taking := ((marks<<1 | odd) - marks) ^ odd
	b.marks = marks
	b.ends &^= taking ^ marks
	b.size += int(taking & marks >> 63)
}

// wideQuotedEnd is quotedEnd in a character set whose characters may hide a quote or an escape.
// Servers step over whole characters first, and a byte that begins none stands alone; an escape
// takes one byte with it, not one character.
func wideQuotedEnd(text []byte, start int, escape byte, cs Charset) (end int, plain bool) {
	quote := text[start]
	plain = true
	for i := start + 1; i < len(text); {
		switch c := text[i]; {
		case c == quote && (i+1 == len(text) || text[i+1] != quote):
			return i + 1, plain
		case c == quote || c == escape:
			plain = false
			i += 2
		case c >= 0x80:
			i += cs.charLen(text[i:])
		default:
			i++
		}
	}
	return -1, plain
}

// find2Anywhere is find2 in Go: eight bytes at a time.
func find2Anywhere(in []byte, a, b byte) (at int, as, bs uint64) {
	for {
		for i := 0; i < 64; i += 8 {
			v := binary.LittleEndian.Uint64(in[at+i:])
			as |= bitsOf(zeros(v^lows*uint64(a))) << i
			bs |= bitsOf(zeros(v^lows*uint64(b))) << i
		}
		if as|bs != 0 || len(in)-at < 2*64 {
			return at, as, bs
		}
		at += 64
	}
}

// zeros marks the highest bit of each byte of v that is zero.
func zeros(v uint64) uint64 { return ^((v&^highs + lows*0x7F) | v) & highs }

// bitsOf puts the highest bits of the eight bytes of v beside each other.
func bitsOf(v uint64) uint64 { return v >> 7 * 0x0102040810204080 >> 56 }
