package rewriter

// ShowsAll reports whether an INSERT or REPLACE, whose row is written with SET, has RETURNING with a
// * that stands for all columns.
func ShowsAll(text []byte, m Mode) bool {
	s := scanner{text: text, mode: m}
	sets, returns, begins := false, false, false
	for depth := 0; ; {
		t := s.next()
		switch {
		case t.kind == tokEnd, t.kind == tokBad:
			return false
		case s.punct(t, '('):
			depth++
		case s.punct(t, ')'):
			depth--
		case depth > 0:
		case returns && begins && s.punct(t, '*'):
			return true
		case s.isWord(t, "set"):
			sets = true
		case sets && s.isWord(t, "returning"):
			returns = true
		}
		begins = s.isWord(t, "returning") || s.punct(t, ',') || s.punct(t, '.')
	}
}
