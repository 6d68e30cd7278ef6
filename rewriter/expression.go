package rewriter

import (
	"bytes"
	"fmt"

	"idproxy/ascii"
)

// maxQuestions bounds the expressions of one statement that the server is asked for.
const maxQuestions = 256

// maxQuestion bounds one of them, in bytes.
const maxQuestion = 4096

// expression reads the id of a row for a slot where only the server can tell what it is: literals
// other than plain integers, variables and LAST_INSERT_ID(), alone or joined by + - * / % DIV MOD
// and parentheses. Their value does not depend on the row and asking for it has no effect.
func (r *valueReader) expression(k int) (behind token, err error) {
	v := &r.plan.slots[k].last
	*v = value{}
	before := r.crossed
	w := expressionWalk{operandReader: operandReader{&r.scanner}, open: true}
	for {
		t := r.next()
		if t.kind == tokBad {
			return t, r.unexpected(t)
		}
		if v.end == 0 {
			v.start, before = t.start, r.crossed
		}
		if !w.open && w.depth == 0 && r.ends(t) {
			if v.crossed != before {
				return t, unsupported(faultVersion)
			}
			return t, r.ask(k)
		}
		if !w.take(t) {
			return t, unsupported("expression for column " + r.plan.slots[k].rule.Column)
		}
		v.end, v.crossed = r.pos, r.crossed
	}
}

// expressionWalk is the walk over an expression for an id.
type expressionWalk struct {
	operandReader
	depth int  // of parentheses
	open  bool // an operand must follow
}

// take takes the part of the expression that begins with t. false: it may be none.
func (w *expressionWalk) take(t token) bool {
	if w.open {
		switch {
		case w.punct(t, '('):
			w.depth++
		case w.punct(t, '+'), w.punct(t, '-'): // a sign
		default:
			w.open = false
			return w.operand(t)
		}
		return true
	}
	if w.punct(t, ')') && w.depth > 0 {
		w.depth--
		return true
	}
	w.open = true
	return w.operator(t)
}

// ask makes a question of the last value of a slot.
func (r *valueReader) ask(k int) error {
	p, v := r.plan, &r.plan.slots[k].last
	switch {
	case v.end-v.start > maxQuestion:
		return unsupported(fmt.Sprintf("expression of more than %d bytes for column %s", maxQuestion, p.slots[k].rule.Column))
	case len(p.Questions) == maxQuestions:
		return unsupported(fmt.Sprintf("more than %d expressions for ids", maxQuestions))
	}
	return r.answer(k)
}

// answer makes of the last value of a slot, an expression, what the server said it is. While it has
// not been asked, that counts for nothing.
//
// A function in another value, or a trigger, may change a variable while the statement runs. So the
// number that the rule was held against is written in place of what reads one.
func (r *valueReader) answer(k int) error {
	p, v, n := r.plan, &r.plan.slots[k].last, len(r.plan.Questions)
	reads := readsVariable(r.text[v.start:v.end])
	if reads && r.prepared { // it may have another value at each execution
		return unsupported("variable for a generated column in a prepared statement")
	}
	p.Questions = append(p.Questions, Span{Start: v.start, End: v.end})
	p.asked = append(p.asked, question{slot: uint8(k), later: r.later()})
	v.kind = valueUnknown
	if n >= len(r.values) {
		return nil
	}
	switch said := r.values[n]; {
	case said.Generate:
		v.kind = valueMade
	case said.Known && reads && r.move && k == 0:
		return unsupported("variable for column " + p.slots[k].rule.Column + " in a statement whose values name it")
	case said.Known:
		v.kind, v.number = valueNumber, said.Number
		v.negative = said.Number > 1<<63-1 && p.slots[k].max <= 1<<63-1
		v.fixed = reads
	case p.slots[k].text:
		v.kind = valueText
	case reads:
		return unsupported("variable for column " + p.slots[k].rule.Column + " that holds no whole number")
	}
	return nil
}

// readsVariable reports whether an expression for an id reads what a statement may change.
func readsVariable(e []byte) bool { return bytes.IndexByte(e, '@') >= 0 || MentionsLastID(e) }

// operandReader reads what stands in an expression that servers may be asked for: literals and
// variables.
type operandReader struct{ *scanner }

// operator reports whether t joins two operands.
func (r *operandReader) operator(t token) bool {
	switch t.kind {
	case tokWord:
		return r.isWord(t, "div") || r.isWord(t, "mod")
	case tokPunct:
		switch r.text[t.start] {
		case '+', '-', '*', '/', '%':
			return true
		}
	}
	return false
}

// operand takes the rest of the operand that begins with t.
func (r *operandReader) operand(t token) bool {
	switch t.kind {
	case tokString:
		r.strings()
		return true
	case tokDigits:
		if r.touches('.') {
			r.next()
			return !r.joins() || r.fraction(r.next())
		}
		return true
	case tokNumber:
		return r.fraction(t)
	case tokPunct:
		switch r.text[t.start] {
		case '.':
			return r.joins() && r.fraction(r.next())
		case '@':
			return r.variable()
		}
	case tokWord:
		return r.wordOperand(t)
	}
	return false
}

// touches reports whether the next byte is c: nothing stands between it and the last token.
func (r *scanner) touches(c byte) bool { return r.pos < len(r.text) && r.text[r.pos] == c }

// joins reports whether the next byte goes on a word or number.
func (r *scanner) joins() bool {
	return r.pos < len(r.text) && (ascii.IsWord(r.text[r.pos]) || r.text[r.pos] >= 0x80)
}

// strings takes the strings that follow a string, which servers join.
func (r *operandReader) strings() {
	for r.peek().kind == tokString {
		r.next()
	}
}

// fraction takes a number that begins with t: 5, 1e5, 1e-5, 0x1F, 0b1.
func (r *operandReader) fraction(t token) bool {
	if t.kind != tokNumber {
		return t.kind == tokDigits
	}
	word := r.text[t.start:t.end]
	if len(word) > 2 && word[0] == '0' && word[1] == 'x' {
		return allHex(word[2:])
	}
	if len(word) > 2 && word[0] == '0' && word[1] == 'b' {
		return len(bytes.Trim(word[2:], "01")) == 0
	}
	digits := bytes.TrimLeft(word, "0123456789")
	if len(digits) == 0 || digits[0]|0x20 != 'e' {
		return false
	}
	if power := digits[1:]; len(power) > 0 {
		return allDigits(power)
	}
	if !r.touches('-') && !r.touches('+') {
		return false
	}
	r.next()
	return r.joins() && r.next().kind == tokDigits
}

func allDigits(word []byte) bool {
	for _, c := range word {
		if c-'0' > 9 {
			return false
		}
	}
	return len(word) > 0
}

// variable takes the name behind an @, or behind the two of a system variable.
func (r *operandReader) variable() bool {
	system := r.touches('@')
	if system {
		r.next()
	}
	for first := !system; ; first = false {
		if r.pos == len(r.text) || classes[r.text[r.pos]] == classBlank {
			return false
		}
		at := r.pos
		switch t := r.next(); {
		case t.start != at:
			return false
		case t.kind == tokWord, t.kind == tokQuoted, t.kind == tokDigits, t.kind == tokNumber:
		case t.kind != tokString || !first:
			return false
		}
		if !r.touches('.') {
			return true
		}
		r.next()
	}
}

// wordOperand takes TRUE, FALSE, NULL, LAST_INSERT_ID(), and strings with something in front of
// them.
func (r *operandReader) wordOperand(t token) bool {
	word := r.text[t.start:t.end]
	switch {
	case foldEqual(word, "null"), foldEqual(word, "true"), foldEqual(word, "false"):
		return true
	case foldEqual(word, "last_insert_id"):
		return r.punct(r.next(), '(') && r.punct(r.next(), ')')
	case len(word) == 1 && bytesAny("nNxXbB", word[0]):
		if !r.touches('\'') || r.next().kind != tokString {
			return false
		}
		r.strings()
		return true
	case word[0] == '_':
		return r.introduced()
	}
	return false
}

// introduced takes what follows the name of a character set: a string, or one of digits.
func (r *operandReader) introduced() bool {
	switch t := r.next(); {
	case t.kind == tokString:
		r.strings()
		return true
	case t.kind == tokNumber:
		return r.text[t.start] == '0' && r.fraction(t)
	case t.kind == tokWord && t.end == t.start+1 && bytesAny("xXbB", r.text[t.start]) && r.touches('\''):
		return r.next().kind == tokString
	}
	return false
}

func bytesAny(set string, c byte) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}

// defaultOf returns the end of DEFAULT(column) for a DEFAULT that ends at end: end itself when it
// names no column, or another than that of the slot.
func (r *valueReader) defaultOf(k, end int) int {
	if !r.punct(r.peek(), '(') {
		return end
	}
	r.next()
	var name []byte
	for range 3 {
		name = r.nameBehindDot(r.next())
		if !r.punct(r.peek(), '.') {
			break
		}
		r.next()
	}
	if t := r.next(); r.punct(t, ')') && name != nil && r.plan.slotOf(name) == k {
		return t.end
	}
	r.pos = end
	return end
}

// changesVariables reports whether the statement may change, while it runs, what its expressions
// for ids read: whether it has := or LAST_INSERT_ID(...) where a later row's id, or the same row's,
// is still to come.
func (r *planReader) changesVariables() bool {
	reads := false
	for _, q := range r.plan.Questions {
		reads = reads || readsVariable(r.text[q.Start:q.End])
	}
	if !reads {
		return false
	}
	s := scanner{text: r.text, mode: r.mode}
	if r.updateAt > 0 && r.plan.Rows == 1 {
		s.text = s.text[:r.updateAt]
	}
	for {
		t := s.next()
		switch {
		case t.kind == tokEnd:
			return false
		case t.kind == tokBad:
			return true
		case s.punct(t, ':') && s.punct(s.peek(), '='):
			return true
		case s.isWord(t, "last_insert_id") && s.punct(s.peek(), '('):
			s.next()
			if !s.punct(s.peek(), ')') {
				return true
			}
		}
	}
}
