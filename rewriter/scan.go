package rewriter

import (
	"bytes"
	"unicode/utf8"

	"idproxy/ascii"
)

// kind is what a token is.
type kind uint8

const (
	tokEnd    kind = iota
	tokBad         // what a server reads in no way or in one of several; scanner.fault says why
	tokWord        // an unquoted identifier or keyword
	tokDigits      // an integer without a sign
	// tokNumber is a number with letters, or an identifier that begins with a digit: 0x1F, 1e5, 2024_log.
	tokNumber
	tokQuoted // `x`, or "x" under ANSI_QUOTES
	tokString // 'x', or "x" without ANSI_QUOTES
	tokDollar // $$x$$ or $tag$x$tag$, on MySQL
	tokPunct  // one byte that stands for itself
)

type token struct {
	kind       kind
	plain      bool // quoted text without escapes and doubled quotes
	start, end int
}

// versionRule is how a scanner takes /*! */ comments when the server's version is not known.
type versionRule uint8

const (
	versionCode   versionRule = iota // all are code
	versionSkip                      // numbered ones are comments, as on an older server
	versionRefuse                    // all are tokBad
)

// scanner finds the tokens of a text. It allocates nothing.
type scanner struct {
	text    []byte
	pos     int
	mode    Mode
	version versionRule
	quotes  block

	inVersion bool // pos is inside a version comment that counts as code
	numbered  bool // a version comment with a number was seen
	// here no word goes on, though a word's byte stands in front: behind the number of a version
	// comment
	fresh   int
	codeEnd int // where the last numbered comment ends for a server that skips it
	crossed int // beginnings and ends of such comments passed
	// what began inside a numbered comment ended behind it: servers may split here differently
	straddled bool
	dollars   bool   // a dollar quote was passed: to a MySQL before 8.0.32 it is none
	touched   bool   // a token reached the end of the text and might go on behind it
	fault     string // why the last token was tokBad

	noting bool   // tokens are noted in shape
	shape  uint64 // what was noted
	lastID bool   // LAST_INSERT_ID or identity was among it
	asks   bool   // and a ?
}

// next returns the next token; blanks and comments between are passed.
func (s *scanner) next() token {
	if !s.blanks() {
		return s.bad(s.pos, s.fault)
	}
	i := s.pos
	if i == len(s.text) {
		s.touched = true
		return token{kind: tokEnd, start: i, end: i}
	}
	var t token
	switch class := classes[s.text[i]]; class {
	case classLetter, classHigh:
		t = s.word(tokWord)
	case classDigit:
		t = s.number()
	case classQuote, classDouble, classTick:
		t = s.quoted(class)
	case classDollar:
		t = s.dollar()
	case classBackslash:
		t = s.backslash()
	case classBad:
		t = s.controlByte()
	default:
		t = token{kind: tokPunct, start: i, end: i + 1}
	}
	s.pos = t.end
	s.touched = s.touched || t.end == len(s.text)
	if t.start < s.codeEnd && t.end > s.codeEnd {
		s.straddled = true
	}
	if s.noting {
		s.noteToken(t)
	}
	return t
}

// backslash reads \N.
func (s *scanner) backslash() token {
	i := s.pos
	if i+1 < len(s.text) && s.text[i+1]|0x20 != 'n' {
		return s.bad(i, `backslash`)
	}
	return token{kind: tokNumber, start: i, end: min(i+2, len(s.text))}
}

// controlByte reads a byte that is part of no statement. A zero byte may be its end.
func (s *scanner) controlByte() token {
	if s.ends(s.pos) {
		s.touched = true
		return token{kind: tokEnd, start: s.pos, end: s.pos}
	}
	return s.bad(s.pos, "control byte or bracket")
}

// ends reports whether the byte at i is zero and the last of the text, but for what servers cut off
// there: some clients send one. To a server any other zero byte outside quotes ends the statement
// where it stands, which is an error wherever it is, and so is what stands behind.
func (s *scanner) ends(i int) bool {
	return s.text[i] == 0 && len(bytes.TrimRight(s.text[i+1:], "; \t\n\v\f\r")) == 0
}

func (s *scanner) bad(at int, fault string) token {
	s.fault = fault
	return token{kind: tokBad, start: at, end: at}
}

// unfinished is bad for what the end of the text cuts off.
func (s *scanner) unfinished(at int, fault string) token {
	t := s.bad(at, fault)
	s.pos, s.touched = len(s.text), true
	t.end = s.pos
	return t
}

// quoting returns what the quote at text[i] begins, and what its escapes are: the quote itself
// where there are none.
func (s *scanner) quoting(i int, class class) (k kind, escape byte) {
	quote := s.text[i]
	switch {
	case class == classTick, class == classDouble && s.mode.ANSIQuotes:
		return tokQuoted, quote
	case s.mode.NoBackslashEscapes:
		return tokString, quote
	}
	return tokString, '\\'
}

func (s *scanner) quoted(class class) token {
	k, escape := s.quoting(s.pos, class)
	end, plain := s.quotes.quotedEnd(s.text, s.pos, escape, s.mode.Charset)
	if end < 0 {
		return s.unfinished(s.pos, "quote without its end")
	}
	if k == tokQuoted && bytes.IndexByte(s.text[s.pos:end], 0) >= 0 {
		return s.bad(s.pos, "zero byte in a name")
	}
	return token{kind: k, plain: plain, start: s.pos, end: end}
}

// word reads an identifier. Where the character set is none of those that are known, some bytes >=
// 0x80 may be blanks, and what is no UTF-8 is not understood.
func (s *scanner) word(k kind) token {
	i, high := s.pos, false
	for i < len(s.text) {
		c := s.text[i]
		if ascii.IsWord(c) {
			i++
			continue
		}
		if c < 0x80 {
			break
		}
		n := s.mode.Charset.letterLen(s.text[i:])
		if n == 0 && (s.mode.Charset < firstNarrow || i == s.pos) {
			s.touched = s.touched || len(s.text)-i < maxChar
			return s.bad(s.pos, "byte that is no letter")
		}
		if n == 0 {
			break
		}
		high = true
		i += n
	}
	if high && s.mode.Charset == SingleByte && !utf8.Valid(s.text[s.pos:i]) {
		s.touched = s.touched || i == len(s.text)
		return s.bad(s.pos, "name that is not UTF-8, outside quotes")
	}
	return token{kind: k, start: s.pos, end: i}
}

func (s *scanner) number() token {
	i := s.pos
	for i < len(s.text) && s.text[i]-'0' <= 9 {
		i++
	}
	if i < len(s.text) && (ascii.IsWord(s.text[i]) || s.text[i] >= 0x80) {
		return s.word(tokNumber)
	}
	return token{kind: tokDigits, start: s.pos, end: i}
}

// dollar reads a dollar-quoted text of MySQL 9, or else the identifier that $ begins.
func (s *scanner) dollar() token {
	w := s.word(tokWord)
	s.touched = s.touched || w.end == len(s.text) // also where the quote ends before
	if s.mode.MariaDB || w.kind == tokBad {
		return w
	}
	n := bytes.IndexByte(s.text[s.pos+1:w.end], '$')
	if n < 0 {
		return w
	}
	tag := s.text[s.pos : s.pos+n+2]
	end := bytes.Index(s.text[s.pos+len(tag):], tag)
	if end < 0 {
		return s.unfinished(s.pos, "dollar quote without its end")
	}
	s.dollars = true
	return token{kind: tokDollar, start: s.pos, end: s.pos + end + 2*len(tag)}
}

// spot is a place to go back to.
type spot struct {
	pos       int
	inVersion bool
	crossed   int
}

func (s *scanner) spot() spot { return spot{s.pos, s.inVersion, s.crossed} }

func (s *scanner) goBack(to spot) { s.pos, s.inVersion, s.crossed = to.pos, to.inVersion, to.crossed }

// nesting is what t adds to the depth of parentheses.
func (s *scanner) nesting(t token) int {
	if t.kind == tokPunct {
		switch s.text[t.start] {
		case '(':
			return 1
		case ')':
			return -1
		}
	}
	return 0
}

// goesOn reports whether the byte at i goes on a word or number.
func (s *scanner) goesOn(i int) bool {
	return i > 0 && i != s.fresh && (ascii.IsWord(s.text[i-1]) || s.text[i-1] >= 0x80 && !s.mode.Charset.blank(s.text[i-1]))
}

// punct reports whether t is the byte c.
func (s *scanner) punct(t token, c byte) bool { return t.kind == tokPunct && s.text[t.start] == c }

// isWord reports whether t is the keyword lower, in any case.
func (s *scanner) isWord(t token, lower string) bool {
	return t.kind == tokWord && foldEqual(s.text[t.start:t.end], lower) && !s.qualifies(t)
}

// qualifies reports whether a dot and a name are right behind the word t. Servers then take it for
// a name, whatever it is: INSERT INTO.t is into the schema INTO. A quoted name is none in this.
func (s *scanner) qualifies(t token) bool {
	if t.end == len(s.text) || s.text[t.end] != '.' {
		return false
	}
	if t.end+1 == len(s.text) {
		s.touched = true
		return false
	}
	c := s.text[t.end+1]
	return ascii.IsWord(c) || c >= 0x80
}

// name returns the identifier that t is, without its quotes; nil when it is none.
func (s *scanner) name(t token) []byte {
	switch t.kind {
	case tokWord:
		return s.text[t.start:t.end]
	case tokNumber:
		if s.text[t.start] == '\\' || mayBeNumber(s.text[t.start:t.end]) {
			return nil
		}
		return s.text[t.start:t.end]
	case tokQuoted:
		inner := s.text[t.start+1 : t.end-1]
		if t.plain && (!s.mode.MariaDB || bytes.IndexByte(inner, s.text[t.start]) < 0) {
			return inner
		}
		return undouble(s.text, t.start, t.end, s.mode)
	}
	return nil
}

// mayBeNumber reports whether a server could read the beginning of a word that starts with digits
// as a number: 0x1F, 0b1, 1e5.
func mayBeNumber(word []byte) bool {
	i := 0
	for i < len(word) && word[i]-'0' <= 9 {
		i++
	}
	if i == len(word) {
		return true
	}
	switch word[i] | 0x20 {
	case 'e':
		return true
	case 'x', 'b':
		return i == 1 && word[0] == '0'
	}
	return false
}
