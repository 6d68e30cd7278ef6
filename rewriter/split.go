package rewriter

import "bytes"

// Span is one statement of a text: the bytes from Start up to, not including, End. The ';' is
// outside.
type Span struct {
	Start, End int
	// Doubt: servers may find other statements in these bytes than this one. It stands for text
	// behind a routine's block, for a ';' that version comments or quotes make uncertain, for text
	// that ends in a quote or comment, and for a zero byte, at which servers fail: what is in front
	// of it must not be run without it. Treat it as a Compound: ask Hidden what it may write to.
	Doubt bool
}

// Split appends the statements of text to dst: only one, the whole text, when m.MultiStatements is
// off. Empty statements at the end are left out. One between others takes all that follows, because
// the server stops at it with an error.
//
// Servers split by parsing: the ';' inside a block belong to it. A compound statement takes all
// that follows, and so does a CREATE of a routine with a block for its body.
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

// Next returns the first of the statements that Split finds in text[start:], where one begins; last
// is true when no other follows it. ok is false when there is none.
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
		// Servers refuse a ';' with nothing in front. What a server would run that does not is in
		// doubt.
		return Span{Start: start, End: len(text), Doubt: true}, true, true
	}
	return Span{Start: start, End: end, Doubt: doubt}, isBlank(text[end+1:], m), true
}

// Ends reports whether nothing stands behind a statement that ends at end.
func Ends(text []byte, end int, m Mode) bool {
	return end == len(text) || isBlank(text[end+1:], m)
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

// semicolon returns the index of the ';' that ends the statement, or len(text). It is the walk that
// big texts pay for, so it steps over plain bytes without making tokens of them.
func (s *splitter) semicolon(i int) (end int, doubt bool) {
	for i < len(s.text) {
		c := s.text[i]
		if skims[c] {
			i++
			continue
		}
		if classes[c] == classSemicolon {
			return i, s.dollars || i < s.codeEnd
		}
		code := s.codeEnd
		next := s.pass(i)
		if next < 0 {
			return len(s.text), true
		}
		// else it is the head of a version comment
		if s.codeEnd == code && i < code && next > code {
			s.straddled = true
		}
		i = next
	}
	return i, s.dollars
}

// pass returns the index behind the quoted text, comment or single byte at i; -1 for what is not
// understood.
func (s *splitter) pass(i int) int {
	switch class := classes[s.text[i]]; class {
	case classQuote, classDouble, classTick:
		_, escape := s.quoting(i, class)
		end, _ := s.quotes.quotedEnd(s.text, i, escape, s.mode.Charset)
		return end
	case classStar:
		if s.endsVersion(i) {
			return i + 2
		}
	case classDash, classSlash, classHash:
		end, ok := s.comment(i)
		if !ok {
			return -1
		}
		return max(end, i+1)
	case classDollar:
		if !s.goesOn(i) {
			return s.passDollar(i)
		}
	case classHigh:
		return i + s.mode.Charset.charLen(s.text[i:])
	case classBad:
		if s.text[i] == 0 && !s.ends(i) {
			return -1
		}
	}
	return i + 1
}

// passDollar is pass for a word or text that begins with a dollar sign.
func (s *splitter) passDollar(i int) int {
	s.pos = i
	t := s.dollar()
	if t.kind == tokBad {
		return -1
	}
	return max(t.end, i+1)
}

// routine returns the end of a CREATE of a routine. BEGIN and CASE open, END closes all but IF,
// LOOP and their like. The words are keywords only where the grammar wants them, so the count is
// trusted for one thing alone: that a block which closes once, at the end of the text, is all there
// is.
func (s *splitter) routine() (end int, doubt bool) {
	var b blockWalk
	for {
		t := s.next()
		switch {
		case t.kind == tokBad:
			return len(s.text), true
		case t.kind == tokEnd:
			return len(s.text), b.block && !b.closed
		case s.punct(t, ';') && !b.block:
			return t.start, s.straddled
		case s.punct(t, ';') && b.closed && b.depth == 0:
			return len(s.text), !isBlank(s.text[t.end:], s.mode)
		}
		if b.word(s, t); b.depth < 0 {
			return len(s.text), true
		}
	}
}

// blockWalk counts the blocks of a routine.
type blockWalk struct {
	depth  int
	block  bool // the routine has one
	closed bool // and it is closed
}

// word takes one word of the routine.
func (b *blockWalk) word(s *splitter, t token) {
	switch s.keyword(t) {
	case kwBegin, kwCase:
		b.block = true
		b.depth++
	case kwBlock:
		b.block = b.block || !s.isWord(t, "for") || !s.isWord(s.peek(), "each")
	case kwIf:
		b.block = b.block || !s.isWord(s.peek(), "not") && !s.isWord(s.peek(), "exists")
	case kwEnd:
		b.end(s)
	default: // sql_mode ORACLE has declarations before BEGIN
		b.block = b.block || s.mode.MariaDB && (s.isWord(t, "as") || s.isWord(t, "is"))
	}
}

// end takes END, and what it ends.
func (b *blockWalk) end(s *splitter) {
	switch s.keyword(s.peek()) {
	case kwBlock, kwIf: // these are not counted
		s.next()
		return
	case kwCase:
		s.next()
	}
	b.depth--
	b.closed = b.depth == 0
}

// peek returns the next token without taking it.
func (s *scanner) peek() token {
	ahead := *s
	return ahead.next()
}
