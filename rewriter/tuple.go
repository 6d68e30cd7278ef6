package rewriter

import "math"

// skim walks over values from i, the inside of a tuple. It stops behind the given number of commas, or at the parenthesis
// that ends the tuple, and returns how many commas it passed. end is -1, with a fault and pos set, at what it does not
// understand. What the values say is the server's business; only their extent must be certain.
func (s *scanner) skim(i, commas int) (end, seen int) {
	text, depth := s.text, 0
	if commas == 0 {
		return i, 0
	}
	for i < len(text) {
		c := text[i]
		if skims[c] {
			i++
			continue
		}
		switch classes[c] {
		case classComma:
			i++
			if depth == 0 {
				if seen++; seen == commas {
					return i, seen
				}
			}
		case classQuote:
			esc := byte('\\')
			if s.mode.NoBackslashEscapes {
				esc = c
			}
			next, _ := quotedEnd(text, i, esc, s.mode.Charset)
			if next < 0 {
				return s.stop(i, "quote without its end"), seen
			}
			i = next
		case classClose:
			if depth == 0 {
				return i, seen
			}
			depth--
			i++
		case classOpen:
			depth++
			i++
		default:
			if i = s.skimRare(i); i < 0 {
				return -1, seen
			}
		}
	}
	return s.stop(i, "end of the statement"), seen
}

// allCommas lets skim walk to the end of the tuple.
const allCommas = math.MaxInt

// skimRare passes what skim has no short way for.
func (s *scanner) skimRare(i int) int {
	text := s.text
	switch c := text[i]; classes[c] {
	case classDash, classSlash, classHash:
		end, ok := s.comment(i)
		if !ok {
			return s.stop(i, s.fault)
		}
		return max(end, i+1)
	case classDollar:
		if wordByte[text[i-1]] || text[i-1] >= 0x80 {
			return i + 1
		}
		return s.stop(i, "name that begins with a dollar sign")
	case classHigh:
		start := i
		for wordByte[text[start-1]] {
			start--
		}
		s.pos = start
		t := s.word(tokWord)
		if t.kind == tokBad {
			return s.stop(i, s.fault)
		}
		return t.end
	case classSemicolon:
		return s.stop(i, "semicolon inside a tuple")
	}
	s.pos = i
	t := s.next()
	if t.kind == tokBad {
		return s.stop(i, s.fault)
	}
	return t.end
}

// stop notes a fault at i and returns -1.
func (s *scanner) stop(i int, fault string) int {
	s.pos, s.fault = i, fault
	return -1
}
