package rewriter

import (
	"bytes"
	"unicode/utf8"

	"idproxy/ascii"
)

// maxOutline is how long an outline gets, in bytes.
const maxOutline = 240

// Outline returns the shape of a statement: the words of SQL in it, its punctuation, and those of
// its names that known reports. All else is a question mark, so nothing that a client made up is
// in it: no value, and no name that nobody else has said, such as an alias or a variable. Comments
// are left out, and one of several equal tuples stands for all. Where it is not certain what is a
// string, or the outline gets long, it ends with "...". known is given names without quotes; nil:
// none is known.
func Outline(text []byte, m Mode, known func(name []byte) bool) string {
	o := outliner{scanner: scanner{text: text, mode: m}, known: known, names: m.ANSIQuotes}
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
	known  func([]byte) bool
	names  bool // "x" may be one
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
		if inner := raw[1 : len(raw)-1]; o.names && raw[0] == '"' && t.plain && o.isKnown(inner) {
			o.word(string(raw))
			return true
		}
		o.word("?")
		// Another sql_mode or character set would see another end of it.
		return bytes.IndexByte(raw, '\\') < 0 && (ascii.Valid(raw) || utf8.Valid(raw))
	case tokDigits, tokNumber:
		if bytes.HasSuffix(o.out, []byte("?.")) { // the digits behind the point
			o.out = o.out[:len(o.out)-1]
			return true
		}
		o.word("?")
	case tokWord, tokQuoted:
		o.name(t)
	case tokPunct:
		o.punctuation(raw[0])
	default:
		return false
	}
	return true
}

// name writes a word of SQL or a known name.
func (o *outliner) name(t token) {
	raw := o.text[t.start:t.end]
	switch {
	case t.kind == tokWord && isOf(outlineWords, raw), o.isKnown(o.scanner.name(t)):
		o.word(string(raw))
	case t.end < len(o.text) && (o.text[t.end] == '\'' || o.text[t.end] == '"'): // of a string: N'..', _latin1'..'
	default:
		o.word("?")
	}
}

func (o *outliner) isKnown(name []byte) bool { return o.known != nil && len(name) > 0 && o.known(name) }

// outlineWords are words of SQL: those of functions and types, and of the statements that can
// write. TRUE and FALSE are values. NULL and DEFAULT are, too, but they ask for an id.
var outlineWords = outlineSet()

func outlineSet() map[string]struct{} {
	words := union(ownWords, reservedWords, wordList(`
add after algorithm alter analyze apply at autocommit begin boolean both bulk cache call cascade charset character chain change close column
comment commit committed concurrent connection consistent continue create cursor data day_hour day_minute day_second deallocate declare
delayed delete describe disable do drop dual dumpfile duplicate each empty enable enclosed engine error escaped except exclusive execute
exit explain fetch fields file first following full function global go handler high_priority hour_minute hour_second identified if immediate
import infile insert interval into invoker isolation keys last leading level lines load local lock locked loop low_priority master_pos_wait
max_statement_time merge minute_second mode modifies names new next nothing no nowait null offset old only open optimize option optionally
out outer outfile over overwrite package partial preceding prepare previous primary procedure quick range read reads rename repair
repeatable replace reset restrict return returning returns rollback rollup rows savepoint schema serializable session set share show signal
skip snapshot sql sql_big_result sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache sql_small_result start starting statement
straight_join table tables temporary terminated ties to trailing transaction trigger truncate unbounded uncommitted undo unlock until
update usage use value values view wait while with within without work write xa xml year_month zone`))
	delete(words, "true")
	delete(words, "false")
	return words
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
