package rewriter

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// skim walks over values from i, the inside of a tuple. It stops behind the given number of commas, or at the parenthesis
// that ends the tuple, and returns how many commas it passed. end is -1, with a fault and pos set, at what it does not
// understand. What the values say is the server's business; only their extent must be certain.
//
// On its way it adds to shape what the values are made of: words, operators and parentheses, but no literal.
func (r *planReader) skim(i, commas int) (end, seen int) {
	if commas == 0 {
		return i, 0
	}
	text, depth, nested := r.text, 0, 0
	esc := byte('\\')
	if r.mode.NoBackslashEscapes {
		esc = '\''
	}
	for i < len(text) {
		c := text[i]
		if literals[c] {
			i++
			continue
		}
		switch classes[c] {
		case classComma:
			i++
			if depth > 0 {
				nested++
			} else if seen++; seen == commas {
				return i, seen
			}
		case classQuote:
			next, _ := quotedEnd(text, i, esc, r.mode.Charset)
			if next < 0 {
				return r.stop(i, "quote without its end"), seen
			}
			i = next
		case classLetter:
			i = r.skimWord(i)
		case classClose:
			if depth == 0 {
				return i, seen
			}
			r.note(uint64(nested)<<8 | uint64(c))
			depth, nested = depth-1, 0
			i++
		case classOpen:
			r.note(uint64(nested)<<8 | uint64(c))
			depth, nested = depth+1, 0
			i++
		default:
			if i = r.skimRare(i); i < 0 {
				return -1, seen
			}
		}
	}
	return r.stop(i, "end of the statement"), seen
}

// allCommas lets skim walk to the end of the tuple.
const allCommas = math.MaxInt

// eight returns the bytes from text[i] on; those behind the end are zero.
func eight(text []byte, i int) uint64 {
	if len(text)-i >= 8 {
		return binary.LittleEndian.Uint64(text[i:])
	}
	var b [8]byte
	copy(b[:], text[i:])
	return binary.LittleEndian.Uint64(b[:])
}

// passable returns how many of the eight bytes of v a walk over values passes without a look, from the lowest on: digits,
// dots, spaces and commas. It marks the highest bit of each comma among them.
func passable(v uint64) (n int, commas uint64) {
	low := v &^ highs // so that no sum below carries from byte to byte
	noDigit := low ^ lows*'0' + lows*(0x80-10)
	noDot := (low | lows*2) ^ lows*'.' + lows*0x7F // nor comma, which has one bit less
	noSpace := low ^ lows*' ' + lows*0x7F
	stop := (noDigit&noDot&noSpace | v) & highs
	return bits.TrailingZeros64(stop) >> 3, ^(noDot | v<<6) & highs & (stop - 1) &^ stop
}

// skimWord passes a word: part of an expression, a literal, or the rest of one, such as 0x1F and 1e5.
func (r *planReader) skimWord(i int) int {
	text, end := r.text, i+1
	if len(text)-i > 4 && binary.LittleEndian.Uint32(text[i:])|0x20202020 == 'n'|'u'<<8|'l'<<16|'l'<<24 && !wordByte[text[i+4]] {
		return i + 4
	}
	hash := uint64(text[i] | 0x20)
	for end < len(text) && wordByte[text[end]] {
		hash = hash*131 + uint64(text[end]|0x20)
		end++
	}
	switch {
	case hash == nullHash, hash == defaultHash, hash == trueHash, hash == falseHash:
	case wordByte[text[i-1]]:
	default:
		r.note(hash)
		r.mention(text[i:end])
	}
	return end
}

// mention notes a name that a value has: perhaps that of a column that gets ids, which the value then reads.
func (r *planReader) mention(name []byte) {
	if r.lengths>>min(len(name), 63)&1 != 0 && r.slotOf(name) >= 0 {
		r.mentioned = true
	}
}

var nullHash, defaultHash, trueHash, falseHash = wordHash("null"), wordHash("default"), wordHash("true"), wordHash("false")

func wordHash(word string) (hash uint64) {
	for i := range len(word) {
		hash = hash*131 + uint64(word[i]|0x20)
	}
	return hash
}

// note adds x to the shape of the tuple.
func (r *planReader) note(x uint64) {
	high, low := bits.Mul64(r.shape^x, 0x9E3779B97F4A7C15)
	r.shape = high ^ low
}

// skimRare passes what skim has no short way for.
func (r *planReader) skimRare(i int) int {
	text := r.text
	switch c := text[i]; classes[c] {
	case classPunct:
		if c != '?' && !r.sign(i) {
			r.note(uint64(c))
		}
		return i + 1
	case classStar:
		if r.inVersion && i+1 < len(text) && text[i+1] == '/' {
			r.inVersion = false
			r.crossed++
			return i + 2
		}
		r.note(uint64(c))
		return i + 1
	case classDash, classSlash, classHash:
		if r.sign(i) {
			return i + 1
		}
		end, ok := r.comment(i)
		if !ok {
			return r.stop(i, r.fault)
		}
		r.note(uint64(c))
		return max(end, i+1)
	case classDollar:
		if wordByte[text[i-1]] || text[i-1] >= 0x80 {
			return i + 1
		}
		return r.stop(i, "name that begins with a dollar sign")
	case classHigh:
		start := i
		for wordByte[text[start-1]] {
			start--
		}
		r.pos = start
		t := r.word(tokWord)
		if t.kind == tokBad {
			return r.stop(i, r.fault)
		}
		r.note(tokenHash(text[t.start:t.end]))
		return t.end
	case classSemicolon:
		return r.stop(i, "semicolon inside a tuple")
	}
	r.pos = i
	t := r.next()
	if t.kind == tokBad {
		return r.stop(i, r.fault)
	}
	if t.kind == tokQuoted {
		r.note(tokenHash(text[t.start:t.end]))
		r.mention(r.name(t))
	}
	return t.end
}

// sign reports whether the + or - at i belongs to the number behind it.
func (r *planReader) sign(i int) bool {
	if c := r.text[i]; c != '-' && c != '+' || i+1 == len(r.text) || classes[r.text[i+1]] != classDigit && r.text[i+1] != '.' {
		return false
	}
	before := r.text[i-1]
	return before == ',' || before == '(' || classes[before] == classBlank
}

func tokenHash(token []byte) (hash uint64) {
	for _, c := range token {
		hash = hash*131 + uint64(c)
	}
	return hash
}

// stop notes a fault at i and returns -1.
func (s *scanner) stop(i int, fault string) int {
	s.pos, s.fault = i, fault
	return -1
}
