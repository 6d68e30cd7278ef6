package rewriter

// tupleReader reads INSERT ... VALUES from the first tuple on.
type tupleReader struct{ valueReader }

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

// blank reports whether nothing but blanks and comments stands from i, which may be in a version
// comment, up to end.
func (r *tupleReader) blank(i, end int, inVersion bool) bool {
	inside := r.scanner
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
