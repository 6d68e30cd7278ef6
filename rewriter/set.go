package rewriter

// setReader reads INSERT ... SET.
type setReader struct{ valueReader }

// read reads the assignments behind SET and returns what follows them.
func (r *setReader) read(table Name) (token, error) {
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
		k := r.plan.slotOf(column)
		if k >= 0 && p.slots[k].at >= 0 {
			return own, ErrRefusedByServer
		}
		var behind token
		var end int
		if k < 0 {
			end, behind, err = r.other(column, n)
		} else {
			p.slots[k].at = n
			if behind, err = r.value(k); err == nil {
				end = p.slots[k].last.end
				err = r.assigned(k, Span{Start: own.start, End: behind.end}, before)
			}
		}
		if err != nil {
			return behind, err
		}
		if !r.punct(behind, ',') {
			r.width = n + 1
			r.arrange()
			r.assign(end)
			return behind, (&keyReader{r.planReader}).row()
		}
	}
}

// other reads the n-th assignment, to a column that gets no id.
func (r *setReader) other(column []byte, n int) (end int, behind token, err error) {
	if i := r.plan.keyOf(column); i >= 0 {
		k := &r.plan.keys[i]
		if k.at >= 0 {
			return 0, behind, ErrRefusedByServer
		}
		k.at = n
		if behind, ok := r.keyValue(i); ok {
			return k.last.token.end, behind, nil
		}
	}
	return r.skip()
}

// assigned makes the edits for an assignment to a slot. The first slot's goes to the end where
// another value reads it, or the last insert id. span is all of it with the comma behind, crossed
// how many version comments began and ended up to it.
func (r *setReader) assigned(k int, span Span, crossed int) error {
	p, v := r.plan, &r.plan.slots[k].last
	if k > 0 || !r.move {
		r.place(k, token{})
		return nil
	}
	if v.crossed != crossed {
		return unsupported(faultVersion)
	}
	p.ZeroDoubt = !p.NoLastID && (v.kind == valueZero || v.kind == valueDefault)
	p.edit(span.Start, v.end, opDelete, 0)
	p.edit(span.End-1, span.End, opDelete, 0)
	return nil
}

// assign appends assignments to the slots that have none, behind the last value.
func (r *setReader) assign(end int) {
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
