package rewriter

import "math/bits"

// The shape of a statement is what it is made of but for its literals: a hash of its words, names,
// operators and parentheses, noted while it is read. NULL, DEFAULT, TRUE and FALSE count as
// literals, the sign of a number too. Statements of one shape get their ids in the same way. Tuples
// have shapes of their own, so that a statement of many rows is no new one whenever its rows come
// in another order.

// note adds x to the shape.
func (s *scanner) note(x uint64) {
	high, low := bits.Mul64(s.shape^x, 0x9E3779B97F4A7C15)
	s.shape = high ^ low
}

// noteToken adds t to the shape, unless it is a literal.
func (s *scanner) noteToken(t token) {
	switch t.kind {
	case tokQuoted:
		if t.plain { // else it has a quote in it
			s.lastID = s.lastID || s.namesLastID(t)
		}
		fallthrough
	case tokWord:
		s.noteWord(s.text[t.start:t.end])
	case tokPunct:
		if c := s.text[t.start]; c == '?' {
			s.asks = true
		} else if c != ';' && !s.sign(t.start) {
			s.note(uint64(c))
		}
	}
}

// noteWord adds a word to the shape, in whatever case it is written.
func (s *scanner) noteWord(word []byte) {
	hash := uint64(len(word))
	for _, c := range word {
		hash = hash*131 + uint64(c|0x20)
	}
	switch hash {
	case nullHash, defaultHash, trueHash, falseHash:
		return
	case lastInsertIDHash, identityHash:
		s.lastID = true
	}
	s.note(hash)
}

// sign reports whether the byte at i is a + or - that a number follows: not told apart from no
// sign.
func (s *scanner) sign(i int) bool {
	c := s.text[i]
	return (c == '-' || c == '+') && i+1 < len(s.text) && (classes[s.text[i+1]] == classDigit || s.text[i+1] == '.')
}

func wordHash(word string) uint64 {
	hash := uint64(len(word))
	for i := range len(word) {
		hash = hash*131 + uint64(word[i]|0x20)
	}
	return hash
}

var (
	nullHash, defaultHash, trueHash, falseHash = wordHash("null"), wordHash("default"), wordHash("true"), wordHash("false")
	lastInsertIDHash, identityHash             = wordHash("last_insert_id"), wordHash("identity")
)

func (s *scanner) namesLastID(t token) bool {
	n := s.name(t)
	return foldEqual(n, "last_insert_id") || foldEqual(n, "identity")
}

// lastIDUses reports whether text[from:to], which has been read, reads the last insert id, as
// LAST_INSERT_ID() or a variable, and whether it sets it, as LAST_INSERT_ID(x).
func (s *scanner) lastIDUses(from, to int) (reads, sets bool) {
	ahead := scanner{text: s.text[:to], mode: s.mode, version: s.version, pos: from}
	for {
		t := ahead.next()
		switch {
		case t.kind == tokEnd, t.kind == tokBad:
			return reads, sets
		case t.kind != tokWord && t.kind != tokQuoted, !ahead.namesLastID(t):
		case !ahead.punct(ahead.peek(), '('):
			reads = true
		default:
			ahead.next()
			empty := ahead.punct(ahead.peek(), ')')
			reads, sets = reads || empty, sets || !empty
		}
	}
}
