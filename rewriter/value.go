package rewriter

import (
	"errors"
	"strconv"

	"idproxy/ascii"
)

// value is what a row has for an id.
type value struct {
	kind       valueKind
	negative   bool
	start, end int    // its bytes
	crossed    int    // beginnings and ends of version comments up to its last token
	number     uint64 // valueZero, valueNumber: as an OK packet shows it
	fixed      bool   // the number is written in place of the expression that it was read of
}

type valueKind uint8

const (
	valueOther   valueKind = iota // an expression
	valueNull                     // NULL: always generated
	valueDefault                  // DEFAULT: generated unless NO_AUTO_VALUE_ON_ZERO
	valueZero                     // 0 or '0': likewise
	valueNumber                   // an explicit integer
	valueUnknown                  // an explicit id that is no known number
	valueMade                     // an expression or literal that generates
	valueBound                    // a ?
	valueMaybe                    // an expression for a wide id: generated if it is NULL
	valueText                     // what a text column gets that is no whole number, or an expression: it stays as it is
)

// explicit reports whether v, once it is placed, is an id that the application gives.
func (v *value) explicit() bool {
	return v.kind != valueMade && v.kind != valueNull && v.kind != valueBound
}

// hasNumber reports whether v is a number that is known.
func (v *value) hasNumber() bool { return v.kind == valueNumber || v.kind == valueZero }

// tupleReader reads INSERT ... VALUES from the first tuple on.
type tupleReader struct{ *planReader }

// read reads the tuples and returns what follows the last.
func (r *tupleReader) read() (token, error) {
	shape := r.shape
	for {
		if r.plan.rowWord {
			if t := r.next(); !r.isWord(t, "row") {
				return t, r.unexpected(t)
			}
		}
		if r.pos < len(r.text) && r.text[r.pos] == '(' {
			r.pos++
		} else if t := r.next(); !r.punct(t, '(') {
			return t, r.unexpected(t)
		}
		start, asked := r.pos-1, len(r.plan.Questions)
		r.shape = 0
		end, err := r.tuple(r.pos)
		if err != nil {
			return token{}, err
		}
		if len(r.plan.Questions) > asked {
			r.note(1)
		}
		r.plan.noteTuple(r.shape, start, end+1)
		r.plan.Rows++
		r.pos = end + 1
		if r.pos < len(r.text) && r.text[r.pos] == ',' {
			r.pos++
			continue
		}
		r.shape = shape
		if t := r.next(); !r.punct(t, ',') {
			return t, nil
		}
	}
}

// tuple reads one tuple from its inside on and returns the index of its closing parenthesis.
func (r *tupleReader) tuple(inside int) (end int, err error) {
	p := r.plan
	inVersion := r.inVersion
	at, count, closed := inside, 0, false
	for _, k := range p.order {
		want := p.placeOf(k) - count
		next, seen := r.skim(at, want)
		if next < 0 {
			return 0, r.unexpected(r.bad(r.pos, r.fault))
		}
		if seen < want {
			return 0, ErrRefusedByServer
		}
		r.pos = next
		var behind token
		if k >= firstKey {
			var plain bool
			if behind, plain = r.keyValue(int(k - firstKey)); !plain {
				at, count = next, p.placeOf(k)
				continue
			}
		} else {
			if behind, err = r.value(int(k)); err != nil {
				return 0, err
			}
			p.calls = p.calls || p.slots[k].last.kind != valueNull && CallsUnknown(r.text[next:behind.start], nil)
			r.place(int(k), behind)
		}
		count = p.placeOf(k) + 1
		end, at = behind.start, behind.end
		if closed = r.punct(behind, ')'); closed {
			break
		}
	}
	if !closed {
		var seen int
		if end, seen = r.skim(at, allCommas); end < 0 {
			return 0, r.unexpected(r.bad(r.pos, r.fault))
		}
		count += seen + 1
	}
	if count == 1 && r.width <= 1 && r.blank(inside, end, inVersion) {
		count = 0
	}
	if count != r.width {
		return 0, ErrRefusedByServer // with 1136, before it writes a row
	}
	r.close(end)
	return end, (&keyReader{r.planReader}).row()
}

// placeOf returns the position among the values of what stands in order.
func (p *places) placeOf(k uint8) int {
	if k >= firstKey {
		return p.keys[k-firstKey].at
	}
	return p.slots[k].at
}

// blank reports whether nothing but blanks and comments stands from i, which may be in a version comment, up to end.
func (r *scanner) blank(i, end int, inVersion bool) bool {
	inside := *r
	inside.pos, inside.inVersion = i, inVersion
	return inside.blanks() && inside.pos == end
}

// close makes the edits at the end of a tuple.
func (r *tupleReader) close(end int) {
	p := r.plan
	o := opAppendID
	if r.empty {
		o = opID
	}
	for _, k := range p.behind {
		if k == 0 && r.move {
			r.atEnd = len(p.edits)
			if moved := &p.slots[0].last; moved.explicit() {
				o = opMove
				p.moves = append(p.moves, Span{Start: moved.start, End: moved.end})
			}
		} else {
			p.Columns[k].Generated++
			p.slots[k].last.kind = valueMade
		}
		p.edit(end, end, o, int(k))
		o = opAppendID
	}
}

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

// ends reports whether t ends a value.
func (r *planReader) ends(t token) bool {
	if !r.assigning {
		return r.punct(t, ',') || r.punct(t, ')')
	}
	switch t.kind {
	case tokEnd:
		return true
	case tokPunct:
		return r.text[t.start] == ',' || r.text[t.start] == ';'
	case tokWord: // RETURNING is a name on MySQL
		return r.isWord(t, "on") || r.isWord(t, "as") || r.mode.MariaDB && r.isWord(t, "returning")
	}
	return false
}

// quoted reads the inside of a string. Servers take more for zero than '0', some of it with warnings; that is left to them.
func (v *value) quoted(inner []byte) {
	sign := byte(0)
	if len(inner) > 0 && (inner[0] == '-' || inner[0] == '+') {
		sign, inner = inner[0], inner[1:]
	}
	for _, c := range inner {
		if c-'0' > 9 {
			return
		}
	}
	if len(inner) > 0 && (len(inner) == 1 || inner[0] != '0' || !allZeros(inner)) {
		v.integer(inner, sign)
	}
}

func allZeros(digits []byte) bool {
	for _, c := range digits {
		if c != '0' {
			return false
		}
	}
	return true
}

// isText reports whether the inside of a string is surely no whole number, whatever its escapes stand for.
func isText(inner []byte) bool {
	for _, c := range inner {
		if c-'0' > 9 && c != '\\' && c != '-' && c != '+' {
			return true
		}
	}
	return len(inner) == 0
}

// integer reads digits with a sign, or 0 for none. A zero with a sign is an expression.
func (v *value) integer(digits []byte, sign byte) {
	v.kind, v.negative = valueNumber, sign == '-'
	for _, c := range digits {
		d := uint64(c - '0')
		if v.number > (1<<64-1-d)/10 {
			v.kind = valueUnknown
			return
		}
		v.number = v.number*10 + d
	}
	switch {
	case v.number == 0 && sign != 0:
		v.kind = valueOther
	case v.number == 0:
		v.kind = valueZero
	case v.negative && v.number > 1<<63:
		v.kind = valueUnknown
	case v.negative:
		v.number = -v.number
	}
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
		p.marks = append(p.marks, mark{at: v.start, slot: uint8(k)})
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

func (v *value) appendNumber(dst []byte) []byte {
	if v.negative {
		return strconv.AppendInt(dst, int64(v.number), 10)
	}
	return strconv.AppendUint(dst, v.number, 10)
}
