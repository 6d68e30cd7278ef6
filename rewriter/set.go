package rewriter

// set reads the assignments behind SET and returns what follows them.
func (r *planReader) set(table Name) (token, error) {
	p := r.plan
	r.assigning = true
	defer func() { r.assigning = false }()
	p.Rows = 1
	for n := 0; ; n++ {
		t := r.next()
		before := r.crossed
		column, own, err := r.columnName(t, table)
		if err != nil {
			return own, err
		}
		if err := r.equals(); err != nil {
			return own, err
		}
		k := r.slotOf(column)
		if k >= 0 && p.slots[k].at >= 0 {
			return own, ErrRefusedByServer
		}
		var v value
		var behind token
		if k >= 0 {
			p.slots[k].at = n
			v, behind, err = r.value(k)
		} else {
			v.end, behind, err = r.skip()
		}
		if err != nil {
			return behind, err
		}
		if k >= 0 {
			if err := r.assigned(k, v, Span{Start: own.start, End: behind.end}, v.crossed != before); err != nil {
				return behind, err
			}
		}
		if !r.punct(behind, ',') {
			r.width = n + 1
			r.arrange()
			r.assign(v.end)
			return behind, nil
		}
	}
}

// assigned makes the edits for an assignment to a slot; span is all of it with the comma behind. The first slot's goes to the
// end where another value reads it, or the last insert id.
func (r *planReader) assigned(k int, v value, span Span, crossed bool) error {
	p := r.plan
	if k > 0 || !r.move {
		r.place(k, v, token{})
		return nil
	}
	if crossed {
		return unsupported(faultVersion)
	}
	r.place(k, v, token{start: span.End - 1, end: span.End})
	p.edits = p.edits[:len(p.edits)-2]
	p.edit(span.Start, v.end, opDelete, 0)
	p.edit(span.End-1, span.End, opDelete, 0)
	p.Columns[0].Generated-- // assign counts it
	return nil
}

// assign appends assignments to the slots that have none, behind the last value.
func (r *planReader) assign(end int) {
	p := r.plan
	for _, k := range p.behind {
		start := len(p.buffer)
		p.buffer = append(p.buffer, ',')
		p.buffer = append(p.buffer, p.buffer[p.slots[k].name.Start:p.slots[k].name.End]...)
		p.buffer = append(p.buffer, '=')
		p.insert(end, start)
		p.edit(end, end, opID, int(k))
		p.Columns[k].Generated++
		p.slots[k].last.kind = valueMade
	}
}

// equals takes = or :=.
func (r *planReader) equals() error {
	t := r.next()
	if r.punct(t, ':') && r.touches('=') {
		t = r.next()
	}
	if !r.punct(t, '=') {
		return r.unexpected(t)
	}
	return nil
}

// skip passes a value of an assignment. It returns the end of its last token and what follows it.
func (r *planReader) skip() (end int, behind token, err error) {
	for depth := 0; ; {
		t := r.next()
		switch {
		case t.kind == tokBad, t.kind == tokEnd && depth > 0, r.punct(t, ';') && depth > 0:
			return 0, t, r.unexpected(t)
		case depth == 0 && r.ends(t):
			if end == 0 {
				return 0, t, r.unexpected(t)
			}
			return end, t, nil
		case r.punct(t, '('):
			depth++
		case r.punct(t, ')'):
			if depth--; depth < 0 {
				return 0, t, r.unexpected(t)
			}
		case t.kind == tokWord || t.kind == tokQuoted:
			r.mention(r.name(t))
		}
		end = t.end
	}
}
