package rewriter

import "bytes"

// Span is one statement of a text: the bytes from Start up to, not including, End. The ';' is outside.
type Span struct {
	Start, End int
	// Doubt: servers may find other statements in these bytes than this one. It stands for text behind a routine's block,
	// for a ';' that version comments or quotes make uncertain, for text that ends in a quote or comment, and for a zero byte,
	// at which servers fail: what is in front of it must not be run without it. Treat it as a Compound: ask Hidden what it may
	// write to.
	Doubt bool
}

// Split appends the statements of text to dst: only one, the whole text, when m.MultiStatements is off. Empty statements
// at the end are left out. One between others takes all that follows, for the server stops at it with an error.
//
// Servers split by parsing: the ';' inside a block belong to it. A compound statement takes all that follows, and so does
// a CREATE of a routine with a block for its body.
func Split(dst []Span, text []byte, m Mode) []Span {
	for start := 0; ; {
		s, last, ok := Next(text, start, m)
		if !ok {
			return dst
		}
		dst = append(dst, s)
		if last {
			return dst
		}
		start = s.End + 1
	}
}

// Next returns the first of the statements that Split finds in text[start:], where one begins; last is true when no other
// follows it. ok is false when there is none.
func Next(text []byte, start int, m Mode) (span Span, last, ok bool) {
	if !m.MultiStatements {
		return Span{Start: start, End: len(text)}, true, true
	}
	if start == len(text) {
		return Span{}, true, false
	}
	s := splitter{headReader: headReader{scanner: scanner{text: text, pos: start, mode: m}}}
	end, doubt := s.statement()
	if end == len(text) {
		rest := scanner{text: text, pos: start, mode: m}
		return Span{Start: start, End: end, Doubt: doubt}, true, doubt || rest.next().kind != tokEnd
	}
	if len(bytes.TrimLeft(text[start:end], " \t\r\n")) == 0 {
		// Nothing stands in front of the ';', which servers refuse. Should one go on, it is in doubt what with.
		return Span{Start: start, End: len(text), Doubt: true}, true, true
	}
	return Span{Start: start, End: end, Doubt: doubt}, isBlank(text[end+1:], m), true
}

// isBlank reports whether text has nothing but blanks, comments and ';'.
func isBlank(text []byte, m Mode) bool {
	s := scanner{text: text, mode: m}
	for {
		t := s.next()
		if t.kind == tokEnd {
			return true
		}
		if !s.punct(t, ';') {
			return false
		}
	}
}

// splitter finds the end of the statement at pos.
type splitter struct{ headReader }

func (s *splitter) statement() (end int, doubt bool) {
	start := s.pos
	head := s.headReader
	head.read()
	switch head.body {
	case bodyBlock:
		return len(s.text), false
	case bodyPackage:
		return len(s.text), true
	case bodyRoutine:
		return s.routine()
	}
	s.pos = start
	end, doubt = s.semicolon(start)
	return end, doubt || s.straddled
}

// semicolon returns the index of the ';' that ends the statement, or len(text). It is the walk that big texts pay for,
// so it steps over plain bytes without making tokens of them.
func (s *splitter) semicolon(i int) (end int, doubt bool) {
	text := s.text
	for i < len(text) {
		c := text[i]
		if skims[c] {
			i++
			continue
		}
		next, ok := i+1, true
		switch classes[c] {
		case classSemicolon:
			return i, doubt || i < s.codeEnd
		case classQuote, classDouble, classTick:
			esc := c
			if c != '`' && !s.mode.NoBackslashEscapes && (c != '"' || !s.mode.ANSIQuotes) {
				esc = '\\'
			}
			next, _ = quotedEnd(text, i, esc, s.mode.Charset)
			ok = next >= 0
		case classStar:
			if s.inVersion && i+1 < len(text) && text[i+1] == '/' {
				s.inVersion = false
				next = i + 2
			}
		case classDash, classSlash, classHash:
			code := s.codeEnd
			next, ok = s.comment(i)
			next = max(next, i+1)
			if s.codeEnd != code { // the head of a version comment
				i = next
				continue
			}
		case classDollar:
			if s.goesOn(i) {
				break
			}
			s.pos = i
			t := s.dollar()
			next, ok = max(t.end, i+1), t.kind != tokBad
			doubt = doubt || t.kind == tokDollar
		case classHigh:
			next = i + s.mode.Charset.charLen(text[i:])
		case classBad:
			ok = c != 0 || s.ends(i)
		}
		if !ok {
			return len(text), true
		}
		if i < s.codeEnd && next > s.codeEnd {
			s.straddled = true
		}
		i = next
	}
	return i, doubt
}

// routine returns the end of a CREATE of a routine. BEGIN and CASE open, END closes all but IF, LOOP and their like. The
// words are keywords only where the grammar wants them, so the count is trusted for one thing alone: that a block which
// closes once, at the end of the text, is all there is.
func (s *splitter) routine() (end int, doubt bool) {
	var depth int
	var block, closed bool
	for {
		t := s.next()
		switch {
		case t.kind == tokBad:
			return len(s.text), true
		case t.kind == tokEnd:
			return len(s.text), block && !closed
		case s.punct(t, ';') && !block:
			return t.start, s.straddled
		case s.punct(t, ';') && closed && depth == 0:
			return len(s.text), !isBlank(s.text[t.end:], s.mode)
		}
		switch s.keyword(t) {
		case kwBegin, kwCase:
			block = true
			depth++
		case kwBlock:
			block = block || !s.isWord(t, "for") || !s.isWord(s.peek(), "each")
		case kwIf:
			block = block || !s.isWord(s.peek(), "not") && !s.isWord(s.peek(), "exists")
		case kwEnd:
			switch s.keyword(s.peek()) {
			case kwBlock, kwIf:
				s.next()
				continue
			case kwCase:
				s.next()
			}
			depth--
			if depth < 0 {
				return len(s.text), true
			}
			closed = depth == 0
		default:
			if s.mode.MariaDB && (s.isWord(t, "as") || s.isWord(t, "is")) { // ORACLE: declarations before BEGIN
				block = true
			}
		}
	}
}

// peek returns the next token without taking it.
func (s *scanner) peek() token {
	ahead := *s
	return ahead.next()
}
