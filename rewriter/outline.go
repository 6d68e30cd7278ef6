package rewriter

import (
	"bytes"
	"unicode/utf8"

	"idproxy/ascii"
)

// maxOutline is how long an outline gets, in bytes.
const maxOutline = 240

// Outline returns a statement for a log: its words and names, with ? for each literal, without
// comments, and with one of several equal tuples. It has nothing in it that the statement says of
// its rows. Where that is not certain, or the outline gets long, it ends with "...".
func Outline(text []byte, m Mode) string {
	o := outliner{scanner: scanner{text: text, mode: m}}
	o.mode.ANSIQuotes = false // what may be a string is taken for one
	for len(o.out) < maxOutline {
		t := o.next()
		if t.kind == tokEnd {
			return string(o.out)
		}
		if !o.token(t) {
			break
		}
	}
	return string(append(o.out[:min(len(o.out), maxOutline)], "..."...))
}

type outliner struct {
	scanner
	out    []byte
	depth  int    // of parentheses
	start  int    // of the outermost one in out
	before string // the tuple that ended last
	again  bool   // it stands there more than once
}

// token writes t, and reports whether it is certain what that is.
func (o *outliner) token(t token) bool {
	raw := o.text[t.start:t.end]
	switch t.kind {
	case tokString, tokDollar:
		// Another sql_mode or character set would see another end of it.
		if bytes.IndexByte(raw, '\\') >= 0 || !ascii.Valid(raw) && !utf8.Valid(raw) {
			o.word("?")
			return false
		}
		o.word("?")
	case tokDigits, tokNumber:
		if bytes.HasSuffix(o.out, []byte("?.")) { // the digits behind the point
			o.out = o.out[:len(o.out)-1]
			return true
		}
		o.word("?")
	case tokWord, tokQuoted:
		if !ascii.Valid(raw) && !utf8.Valid(raw) {
			return false
		}
		o.word(string(raw))
	case tokPunct:
		o.punctuation(raw[0])
	default:
		return false
	}
	return true
}

// word writes what must not run into what stands in front of it.
func (o *outliner) word(text string) {
	if n := len(o.out); n > 0 {
		if c := o.out[n-1]; ascii.IsWord(c) || c >= 0x80 || c == '?' || c == '`' || c == ')' || bytes.HasSuffix(o.out, []byte(",..")) {
			o.out = append(o.out, ' ')
		}
	}
	o.out = append(o.out, text...)
}

func (o *outliner) punctuation(c byte) {
	switch c {
	case '(':
		if o.depth == 0 {
			o.start = len(o.out)
		}
		o.depth++
	case ')':
		o.depth--
	}
	o.out = append(o.out, c)
	if c != ')' || o.depth != 0 {
		return
	}
	tuple := string(o.out[o.start:])
	if tuple == o.before && o.start > 0 && o.out[o.start-1] == ',' {
		o.out = o.out[:o.start-1] // and the comma
		if !o.again {
			o.out = append(o.out, ",.."...)
			o.again = true
		}
		return
	}
	o.before, o.again = tuple, false
}
