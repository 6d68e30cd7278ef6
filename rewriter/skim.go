package rewriter

import (
	"encoding/binary"
	"math"

	"idproxy/ascii"
)

// skim walks over values from i, the inside of a tuple. It stops behind the given number of commas,
// or at the parenthesis that ends the tuple, and returns how many commas it passed. end is -1, with
// a fault and pos set, at what it does not understand. What the values say is the server's
// business; only their extent must be certain.
//
// On its way it notes what the values are made of.
func (r *tupleReader) skim(i, commas int) (end, seen int) {
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
			next, _ := r.quotes.quotedEnd(text, i, esc, r.mode.Charset)
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
			r.opens(i)
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

// opens notes whether the parenthesis at i may begin the arguments of a function that is none of
// the servers' own. Behind a comment it may always.
func (r *tupleReader) opens(i int) {
	p := r.plan
	p.calls = p.calls || r.remarked || mayCall(r.text, i)
}

// allCommas lets skim walk to the end of the tuple.
const allCommas = math.MaxInt

// skimWord passes a word: part of an expression, a literal, or the rest of one, such as 0x1F and
// 1e5.
func (r *tupleReader) skimWord(i int) int {
	text, end := r.text, i+1
	if nullAt(text, i) {
		return i + 4
	}
	for end < len(text) && ascii.IsWord(text[end]) {
		end++
	}
	if r.goesOn(i) {
		return end
	}
	word := text[i:end]
	r.noteWord(word)
	r.mention(word)
	return end
}

// nullAt reports whether the word NULL stands at text[i], and something behind it.
func nullAt(text []byte, i int) bool {
	return len(text)-i > 4 && binary.LittleEndian.Uint32(text[i:])|0x20202020 == 'n'|'u'<<8|'l'<<16|'l'<<24 && !ascii.IsWord(text[i+4])
}

// skimRare passes what skim has no short way for.
func (r *tupleReader) skimRare(i int) int {
	switch c := r.text[i]; classes[c] {
	case classPunct:
		if c == '?' {
			r.asks = true
		} else if !r.sign(i) {
			r.note(uint64(c))
		}
		return i + 1
	case classDash, classSlash, classHash:
		return r.skimComment(i)
	case classDollar:
		if r.goesOn(i) {
			return i + 1
		}
		return r.stop(i, "name that begins with a dollar sign")
	case classHigh:
		if r.mode.Charset.blank(c) {
			return i + 1
		}
		return r.skimHigh(i)
	case classSemicolon:
		return r.stop(i, "semicolon inside a tuple")
	case classStar:
		if r.endsVersion(i) {
			r.crossed++
			return i + 2
		}
		r.note(uint64(c))
		return i + 1
	}
	return r.skimToken(i)
}

// skimComment passes a comment, or the operator that does not begin one.
func (r *tupleReader) skimComment(i int) int {
	if r.sign(i) {
		return i + 1
	}
	end, ok := r.comment(i)
	if !ok {
		return r.stop(i, r.fault)
	}
	if end > i {
		r.remarked = true
		return end
	}
	r.note(uint64(r.text[i]))
	return i + 1
}

// skimHigh passes the word that the byte at i, beyond ASCII, goes on or begins.
func (r *tupleReader) skimHigh(i int) int {
	start := i
	for start != r.fresh && ascii.IsWord(r.text[start-1]) {
		start--
	}
	r.pos = start
	t := r.word(tokWord)
	if t.kind == tokBad {
		return r.stop(i, r.fault)
	}
	if t.end <= i {
		return r.stop(i, "byte that is no letter")
	}
	r.noteWord(r.text[t.start:t.end])
	r.mention(r.text[t.start:t.end])
	return t.end
}

// skimToken passes what is read as everywhere else.
func (r *tupleReader) skimToken(i int) int {
	r.pos = i
	t := r.next()
	switch t.kind {
	case tokBad:
		return r.stop(i, r.fault)
	case tokEnd: // a zero byte
		return r.stop(i, "end of the statement")
	case tokQuoted:
		r.mention(r.name(t))
	}
	r.fresh = t.end // \N ends like a word
	return t.end
}

// stop notes a fault at i and returns -1.
func (r *tupleReader) stop(i int, fault string) int {
	r.pos, r.fault = i, fault
	return -1
}
