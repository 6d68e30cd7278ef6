package rewriter

import (
	"errors"

	"idproxy/ascii"
)

// null reads a NULL that nothing but one space stands before, and what follows it, faster than tokens do.
func (r *planReader) null() (start int, ok bool) {
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

// value reads the last value of a slot, the id of a row, and returns what follows it: ',' or ')' in a tuple.
func (r *planReader) value(k int) (behind token, err error) {
	v := &r.plan.slots[k].last
	if i, ok := r.null(); ok {
		*v = value{kind: valueNull, start: i, end: i + 4}
		r.pos = i + 5
		behind = token{kind: tokPunct, start: i + 4, end: i + 5}
		r.noteToken(behind)
		return behind, nil
	}
	if r.plan.slots[k].form.Wide() {
		return r.wideID(k)
	}
	pos, inVersion, crossed := r.pos, r.inVersion, r.crossed
	t := r.next()
	*v = value{start: t.start, end: t.end}
	before := r.crossed
	switch t.kind {
	case tokWord:
		if r.isWord(t, "null") {
			v.kind = valueNull
		} else if r.isWord(t, "default") {
			v.kind = valueDefault
			v.end = r.defaultOf(k, t.end)
		}
	case tokNumber:
		if string(r.text[t.start:t.end]) == `\N` && r.knowsBackslashN() {
			v.kind = valueNull
		}
	case tokDigits:
		v.integer(r.text[t.start:t.end], 0)
	case tokString:
		if t.plain {
			v.quoted(r.text[t.start+1 : t.end-1])
		}
		if v.kind == valueOther && r.plan.slots[k].text && isText(r.text[t.start+1:t.end-1]) {
			v.kind = valueText
		}
	case tokPunct:
		sign := r.text[t.start]
		if sign == ')' && !r.assigning {
			return t, ErrRefusedByServer
		}
		if sign == '?' && r.prepared {
			v.kind = valueBound
			break
		}
		if sign != '-' && sign != '+' {
			break
		}
		if digits := r.peek(); digits.kind == tokDigits && digits.start == t.end {
			r.next()
			v.end = digits.end
			v.integer(r.text[digits.start:digits.end], sign)
		}
	}
	v.crossed = r.crossed
	if v.kind == valueUnknown && r.plan.slots[k].text { // more digits than any id has
		v.kind = valueText
	}
	if v.kind != valueOther && v.crossed == before {
		if behind = r.next(); r.ends(behind) {
			return behind, nil
		}
	}
	r.pos, r.inVersion, r.crossed = pos, inVersion, crossed
	behind, err = r.expression(k)
	if _, unknown := errors.AsType[*Unsupported](err); !unknown || !r.plan.slots[k].text {
		return behind, err
	}
	r.pos, r.inVersion, r.crossed, r.texts = pos, inVersion, crossed, true
	*v = value{kind: valueText, start: t.start}
	if v.end, behind, err = r.skip(); err == nil && r.crossed != crossed {
		err = unsupported(faultVersion)
	}
	return behind, err
}

// knowsBackslashN reports whether the server is known to read \N as NULL: MySQL does not since 8.0.
func (r *scanner) knowsBackslashN() bool {
	return r.mode.MariaDB || r.mode.Version > 0 && r.mode.Version < 80000
}

// place counts the last value of a slot and makes the edits for it where it stands; behind is what follows it.
func (r *planReader) place(k int, behind token) {
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
	c := &p.Columns[k]
	switch v.kind {
	case valueMade:
		c.Generated++
	case valueMaybe:
		c.Generated++
		c.Fallback++
	case valueText:
		c.Texts++
	case valueBound:
		c.Bound++
		p.marks = append(p.marks, mark{at: v.start, slot: uint8(k), later: r.later()})
	default:
		c.Explicit++
		c.BelowZero = c.BelowZero || v.negative && (v.hasNumber() || v.kind == valueUnknown)
		c.GreatestUnknown = c.GreatestUnknown || v.kind == valueUnknown && !v.negative
		if v.hasNumber() && !v.negative {
			c.Greatest = max(c.Greatest, v.number)
		}
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
		start := len(p.buffer)
		p.buffer = v.appendNumber(p.buffer)
		if v.end < len(r.text) && ascii.IsWord(r.text[v.end]) { // as in SET id=@'x'ON DUPLICATE KEY ...
			p.buffer = append(p.buffer, ' ')
		}
		p.insert(v.start, start)
		p.edits[len(p.edits)-1].end = uint32(v.end)
	}
}
