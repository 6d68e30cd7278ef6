package rewriter

import (
	"errors"

	"idproxy/ascii"
)

// valueReader reads the values that rows have for ids.
type valueReader struct{ *planReader }

// null reads a NULL that nothing but one space stands before, and what follows it, faster than
// tokens do.
func (r *valueReader) null() (start int, ok bool) {
	i := r.pos
	if i < len(r.text) && r.text[i] == ' ' {
		i++
	}
	if !nullAt(r.text, i) {
		return 0, false
	}
	c := r.text[i+4]
	return i, !r.assigning && (c == ',' || c == ')')
}

// value reads the last value of a slot, the id of a row, and returns what follows it: ',' or ')' in
// a tuple.
func (r *valueReader) value(k int) (behind token, err error) {
	c := &r.plan.slots[k]
	if i, ok := r.null(); ok {
		c.last = value{kind: valueNull, start: i, end: i + 4}
		r.pos = i + 5
		behind = token{kind: tokPunct, start: i + 4, end: i + 5}
		r.noteToken(behind)
		return behind, nil
	}
	if c.form.Wide() {
		return r.wideID(k)
	}
	start := r.spot()
	if behind, ok, err := r.literal(k); ok || err != nil {
		return behind, err
	}
	r.goBack(start)
	behind, err = r.expression(k)
	if _, unknown := errors.AsType[*Unsupported](err); !unknown || !c.text {
		return behind, err
	}
	r.goBack(start)
	return r.textExpression(k)
}

// literal reads the last value of a slot, and what follows it, where the value is one literal that
// is understood. Where it is not, ok is false.
func (r *valueReader) literal(k int) (behind token, ok bool, err error) {
	c := &r.plan.slots[k]
	v := &c.last
	t := r.next()
	*v = value{start: t.start, end: t.end}
	before := r.crossed
	if r.punct(t, ')') && !r.assigning {
		return t, false, ErrRefusedByServer
	}
	switch t.kind {
	case tokWord, tokNumber:
		r.wordLiteral(k, t)
	case tokDigits:
		v.integer(r.text[t.start:t.end], 0)
	case tokString:
		if t.plain {
			v.quoted(r.text[t.start+1 : t.end-1])
		}
		if v.kind == valueOther && c.text && isText(r.text[t.start+1:t.end-1]) {
			v.kind = valueText
		}
	case tokPunct:
		r.signedLiteral(v, t)
	}
	v.crossed = r.crossed
	if v.kind == valueUnknown && c.text { // more digits than any id has
		v.kind = valueText
	}
	if v.kind == valueOther || v.crossed != before {
		return t, false, nil
	}
	behind = r.next()
	return behind, r.ends(behind), nil
}

// wordLiteral reads NULL, \N and DEFAULT.
func (r *valueReader) wordLiteral(k int, t token) {
	v := &r.plan.slots[k].last
	switch {
	case r.isNull(t):
		v.kind = valueNull
	case r.isWord(t, "default"):
		v.kind, v.end = valueDefault, r.defaultOf(k, t.end)
	}
}

// isNull reports whether t is NULL or a \N that the server takes for one.
func (r *valueReader) isNull(t token) bool {
	return r.isWord(t, "null") ||
		t.kind == tokNumber && string(r.text[t.start:t.end]) == `\N` && r.knowsBackslashN()
}

// signedLiteral reads a ?, or digits right behind a sign.
func (r *valueReader) signedLiteral(v *value, t token) {
	sign := r.text[t.start]
	switch {
	case sign == '?' && r.prepared:
		v.kind = valueBound
	case sign == '-' || sign == '+':
		if digits := r.peek(); digits.kind == tokDigits && digits.start == t.end {
			r.next()
			v.end = digits.end
			v.integer(r.text[digits.start:digits.end], sign)
		}
	}
}

// textExpression passes the expression for a slot of a text column, which stays as it is.
func (r *valueReader) textExpression(k int) (behind token, err error) {
	crossed := r.crossed
	r.texts = true
	v := &r.plan.slots[k].last
	*v = value{kind: valueText, start: v.start}
	if v.end, behind, err = r.skip(); err == nil && r.crossed != crossed {
		err = unsupported(faultVersion)
	}
	return behind, err
}

// knowsBackslashN reports whether the server is known to read \N as NULL: MySQL does not since 8.0.
func (r *valueReader) knowsBackslashN() bool {
	return r.mode.MariaDB || r.mode.Version > 0 && r.mode.Version < 80000
}

// place counts the last value of a slot and makes the edits for it where it stands; behind is what
// follows it.
func (r *valueReader) place(k int, behind token) {
	p := r.plan
	v := &p.slots[k].last
	if v.kind == valueZero || v.kind == valueDefault {
		p.ZeroDoubt = true
		if !r.mode.NoAutoValueOnZero {
			v.kind = valueMade
		}
	}
	if v.kind == valueNull {
		v.kind = valueMade
	}
	p.Columns[k].count(v)
	if v.kind == valueBound {
		p.marks = append(p.marks, mark{at: v.start, slot: uint8(k), later: r.later()})
	}
	r.note(uint64(v.kind)<<8 | uint64(k))
	switch {
	case r.move && k == 0:
		p.edit(v.start, v.end, opDelete, 0)
		p.edit(behind.start, behind.end, opDelete, 0)
	case v.kind == valueMade:
		p.edit(v.start, v.end, opID, k)
	case v.kind == valueMaybe:
		p.wrap(k)
	case v.fixed:
		r.fix(v)
	}
}

// count counts the value of a row.
func (f *Filled) count(v *value) {
	switch v.kind {
	case valueMade:
		f.Generated++
	case valueMaybe:
		f.Generated++
		f.Fallback++
	case valueText:
		f.Texts++
	case valueBound:
		f.Bound++
	default:
		f.Explicit++
		f.compare(v)
	}
}

// compare notes where an explicit id lies.
func (f *Filled) compare(v *value) {
	known := v.hasNumber()
	switch {
	case v.negative:
		f.BelowZero = f.BelowZero || known || v.kind == valueUnknown
	case known:
		f.Greatest = max(f.Greatest, v.number)
	case v.kind == valueUnknown:
		f.GreatestUnknown = true
	}
}

// fix writes the number of a value in its place.
func (r *valueReader) fix(v *value) {
	p := r.plan
	start := len(p.buffer)
	p.buffer = v.appendNumber(p.buffer)
	if v.end < len(r.text) && ascii.IsWord(r.text[v.end]) { // as in SET id=@'x'ON DUPLICATE KEY ...
		p.buffer = append(p.buffer, ' ')
	}
	p.insert(v.start, start)
	p.edits[len(p.edits)-1].end = uint32(v.end)
}
