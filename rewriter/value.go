package rewriter

// value is what a tuple has for its id.
type value struct {
	kind       valueKind
	start, end int    // its bytes
	number     uint64 // valueNumber: as an OK packet shows it
	negative   bool
}

type valueKind uint8

const (
	valueOther   valueKind = iota // an expression
	valueNull                     // NULL: always generated
	valueDefault                  // DEFAULT: generated unless NO_AUTO_VALUE_ON_ZERO
	valueZero                     // 0 or '0': likewise
	valueNumber                   // an explicit integer
	valueHuge                     // an explicit integer that no column holds
)

// tuples reads the tuples and what follows the last.
func (r *planReader) tuples() error {
	for {
		if r.pos < len(r.text) && r.text[r.pos] == '(' {
			r.pos++
		} else if t := r.next(); !r.punct(t, '(') {
			return r.unexpected(t)
		}
		end, err := r.tuple(r.pos)
		if err != nil {
			return err
		}
		r.plan.Rows++
		r.pos = end + 1
		if r.pos < len(r.text) && r.text[r.pos] == ',' {
			r.pos++
			continue
		}
		if t := r.next(); !r.punct(t, ',') {
			return r.tail(t)
		}
	}
}

// tuple reads one tuple from its inside on and returns the index of its closing parenthesis.
func (r *planReader) tuple(inside int) (end int, err error) {
	if r.id < 0 {
		end, seen := r.skim(inside, allCommas)
		if err := r.checkWidth(inside, end, seen+1); err != nil {
			return 0, err
		}
		r.plan.edit(end, end, opAppendID)
		r.plan.Columns[0].Generated++
		r.last.kind = valueNull
		return end, nil
	}
	at, seen := r.skim(inside, r.id)
	if at < 0 || seen < r.id {
		return 0, r.checkWidth(inside, at, seen+1)
	}
	r.pos = at
	v, behind, err := r.value()
	if err != nil {
		return 0, err
	}
	end = behind.start
	count := r.id + 1
	if r.punct(behind, ',') {
		end, seen = r.skim(behind.end, allCommas)
		count += seen + 1
	}
	if err := r.checkWidth(inside, end, count); err != nil {
		return 0, err
	}
	return end, r.place(v, behind, end)
}

// checkWidth compares the number of values with that of the columns. Servers refuse a difference with 1136 before they
// write a row.
func (r *planReader) checkWidth(inside, end, count int) error {
	if end < 0 {
		return r.unexpected(r.bad(r.pos, r.fault))
	}
	if count == 1 {
		empty := r.scanner
		empty.pos = inside
		if t := empty.next(); t.kind == tokPunct && t.start == end {
			return unsupported("VALUES ()")
		}
	}
	if count != r.width {
		return ErrRefusedByServer
	}
	return nil
}

// value reads the id of a tuple and the ',' or ')' behind it.
func (r *planReader) value() (v value, behind token, err error) {
	t := r.next()
	v.start, v.end = t.start, t.end
	switch t.kind {
	case tokBad:
		return v, t, r.unexpected(t)
	case tokWord:
		if r.isWord(t, "null") {
			v.kind = valueNull
		} else if r.isWord(t, "default") {
			v.kind = valueDefault
		}
	case tokDigits:
		v.integer(r.text[t.start:t.end], 0)
	case tokString:
		if t.plain {
			v.quoted(r.text[t.start+1 : t.end-1])
		}
	case tokPunct:
		sign := r.text[t.start]
		if sign == ')' && r.id == 0 {
			return v, t, unsupported("VALUES ()")
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
	behind = r.next()
	if behind.kind == tokBad {
		return v, behind, r.unexpected(behind)
	}
	if v.kind == valueOther || !r.punct(behind, ',') && !r.punct(behind, ')') {
		return v, behind, unsupported("expression for column " + r.rule.Column)
	}
	return v, behind, nil
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

// integer reads digits with a sign, or 0 for none. A zero with a sign is an expression.
func (v *value) integer(digits []byte, sign byte) {
	v.kind, v.negative = valueNumber, sign == '-'
	for _, c := range digits {
		d := uint64(c - '0')
		if v.number > (1<<64-1-d)/10 {
			v.kind = valueHuge
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
		v.kind = valueHuge
	case v.negative:
		v.number = -v.number
	}
}

// place makes the edits for a tuple that has a place for its id; behind is what follows it, end the tuple's parenthesis.
func (r *planReader) place(v value, behind token, end int) error {
	p := r.plan
	if v.kind == valueHuge {
		return unsupported("number out of range for column " + r.rule.Column)
	}
	zero := v.kind == valueZero || v.kind == valueDefault
	p.ZeroDoubt = p.ZeroDoubt || zero
	generated := v.kind == valueNull || zero && !r.mode.NoAutoValueOnZero
	c := &p.Columns[0]
	if generated {
		c.Generated++
	} else {
		c.Explicit++
		if !v.negative {
			c.Greatest = max(c.Greatest, v.number)
		}
	}
	r.last = v
	if generated {
		r.last.kind = valueNull
	}
	switch {
	case r.move:
		p.edit(v.start, v.end, opDelete)
		p.edit(behind.start, behind.end, opDelete)
		if generated {
			p.edit(end, end, opAppendID)
			break
		}
		p.edit(end, end, opMove)
		p.moves = append(p.moves, Span{Start: v.start, End: v.end})
	case generated:
		p.edit(v.start, v.end, opID)
	}
	return nil
}

// tail reads what follows the tuples: blanks, comments, ';'.
func (r *planReader) tail(t token) error {
	switch {
	case r.isWord(t, "on"):
		if r.isWord(r.next(), "duplicate") {
			return unsupported("ON DUPLICATE KEY UPDATE")
		}
		return r.unexpected(t)
	case r.isWord(t, "returning"):
		return unsupported("RETURNING")
	case r.isWord(t, "as"):
		return unsupported("alias of the table or row")
	case t.kind != tokEnd && !r.punct(t, ';'):
		return r.unexpected(t)
	}
	for t.kind != tokEnd {
		if t = r.next(); t.kind == tokBad {
			return r.unexpected(t)
		}
		if t.kind != tokEnd && !r.punct(t, ';') {
			return unsupported("more than one statement")
		}
	}
	return nil
}

// finish settles what the last tuple decides.
func (r *planReader) finish() error {
	p, last := r.plan, r.last
	explicit := last.kind != valueNull
	c := &p.Columns[0]
	if explicit {
		c.Last, c.HasLast = last.number, true
	}
	if !explicit || c.Generated == 0 || !p.ReadsLastID {
		return nil
	}
	// A row behind the last generated one must not read the new id: the function goes into the last row, whose id it leaves
	// as it is. Nothing negative can be added to it, for it is unsigned.
	if last.negative || last.kind == valueDefault {
		return unsupported("id below zero, or DEFAULT, behind generated ones in a statement that reads LAST_INSERT_ID")
	}
	p.carry, p.carried = true, last.number
	if r.move {
		p.edits[len(p.edits)-1].op = opMoveCarry
		return nil
	}
	p.edit(last.start, last.end, opCarry)
	return nil
}
