package rewriter

import "idproxy/ascii"

// columns reads the column list behind its parenthesis and finds the ids in it.
func (r *planReader) columns(table Name) error {
	p := r.plan
	t := r.next()
	if r.punct(t, ')') {
		return r.emptyList(t.start, false)
	}
	for n := 0; ; n++ {
		before := r.crossed
		column, span, err := r.columnName(t, table)
		if err != nil {
			return err
		}
		k, crossed := r.plan.slotOf(column), r.crossed != before
		t = r.next()
		if k >= 0 {
			c := &p.slots[k]
			if c.at >= 0 {
				return ErrRefusedByServer
			}
			if crossed && r.move {
				return unsupported(faultVersion)
			}
			c.at, c.own, c.comma = n, span, t
		} else if k = r.plan.keyOf(column); k >= 0 {
			if r.plan.keys[k].at >= 0 {
				return ErrRefusedByServer
			}
			r.plan.keys[k].at = n
		}
		if r.punct(t, ')') {
			r.width = n + 1
			return r.listEdits(t)
		}
		if !r.punct(t, ',') {
			return r.unexpected(t)
		}
		t = r.next()
	}
}

// listEdits puts the columns that the list lacks at its end, and the first one where its id goes
// there.
func (r *planReader) listEdits(end token) error {
	p := r.plan
	r.arrange()
	if r.move {
		c := &p.slots[0]
		p.edit(c.own.start, c.own.end, opDelete, 0)
		p.edit(c.comma.start, c.comma.end, opDelete, 0)
	}
	start := len(p.buffer)
	for _, k := range p.behind {
		p.buffer = append(p.buffer, ',')
		p.buffer = append(p.buffer, p.buffer[p.slots[k].name.Start:p.slots[k].name.End]...)
	}
	if len(p.buffer) > start {
		p.insert(end.start, start)
	}
	return nil
}

// arrange orders the slots that have a place in the tuples by that place, and behind them those
// whose ids are appended: the first slot is the last of these, so that no other value is behind it.
func (r *planReader) arrange() {
	p := r.plan
	for k := 1; k < len(p.slots); k++ {
		if p.slots[k].at < 0 {
			p.behind = append(p.behind, uint8(k))
		}
	}
	if p.slots[0].at < 0 || r.move {
		p.behind = append(p.behind, 0)
	}
	for k := range p.slots {
		if p.slots[k].at < 0 {
			continue
		}
		p.inOrder(uint8(k))
	}
	for k := range p.keys {
		if p.keys[k].at >= 0 {
			p.inOrder(uint8(firstKey + k))
		}
	}
}

// columnName reads column, table.column or schema.table.column, of which t is the first token, and
// notes the column.
func (r *planReader) columnName(t token, table Name) (column []byte, span token, err error) {
	var parts [3][]byte
	span = t
	parts[0] = r.name(t)
	n, last := 1, t
	for parts[n-1] != nil {
		span.end = t.end
		last = t
		if t = r.peek(); !r.punct(t, '.') {
			break
		}
		if n == len(parts) {
			return nil, span, r.unexpected(t)
		}
		r.next()
		t = r.next()
		parts[n] = r.nameBehindDot(t)
		n++
	}
	if parts[n-1] == nil {
		return nil, span, r.unexpected(t)
	}
	if n > 1 && !ascii.EqualFold(parts[n-2], string(table.Table)) {
		return nil, span, unsupported("column list with a column of another table")
	}
	r.plan.names = append(r.plan.names, last)
	return parts[n-1], span, nil
}

// emptyList is for tuples that are all (): the list gets the columns of the rules. own: it has no
// parentheses yet.
func (r *planReader) emptyList(at int, own bool) error {
	p := r.plan
	r.empty = true
	r.arrange()
	start := len(p.buffer)
	if own {
		p.buffer = append(p.buffer, " ("...)
	}
	names := len(p.buffer)
	for _, k := range p.behind {
		if len(p.buffer) > names {
			p.buffer = append(p.buffer, ',')
		}
		p.buffer = append(p.buffer, p.buffer[p.slots[k].name.Start:p.slots[k].name.End]...)
	}
	if own {
		p.buffer = append(p.buffer, ')')
	}
	p.insert(at, start)
	return nil
}

// noColumns finds the ids by the table's facts. A list is added only where an id is not among the
// visible columns or must move to the end.
func (r *planReader) noColumns(nameEnd int) error {
	p := r.plan
	ahead := r.scanner
	t := ahead.next()
	if p.rowWord {
		t = ahead.next()
	}
	if ahead.punct(t, '(') && ahead.punct(ahead.next(), ')') {
		return r.emptyList(nameEnd, true)
	}
	if r.table == nil {
		return ErrNeedTable
	}
	r.width, p.ByPosition = len(r.table.Columns), true
	for k := range p.keys {
		p.keys[k].at = r.table.Index(p.keys[k].name)
	}
	list := r.move
	for k := range p.slots {
		c := &p.slots[k]
		if c.at = r.table.Index(c.rule.Column); c.at >= 0 {
			continue
		}
		if r.table.Find(c.rule.Column) == nil {
			return unsupported("no column list, and no column " + c.rule.Column)
		}
		list = true
	}
	r.arrange()
	if !list {
		return nil
	}
	start := len(p.buffer)
	// with the blank, or a table called mid or count would read as a function
	p.buffer = append(p.buffer, " ("...)
	for i := range r.table.Columns {
		name, err := spell(r.speller, r.table.Columns[i].Name)
		if err != nil {
			return err
		}
		if !r.move || i != p.slots[0].at {
			p.buffer = append(AppendQuoted(p.buffer, name, r.mode), ',')
		}
	}
	for _, k := range p.behind {
		p.buffer = append(p.buffer, p.buffer[p.slots[k].name.Start:p.slots[k].name.End]...)
		p.buffer = append(p.buffer, ',')
	}
	p.buffer[len(p.buffer)-1] = ')'
	p.insert(nameEnd, start)
	return nil
}
