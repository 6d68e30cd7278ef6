package rewriter

import "strconv"

// tailReader reads what follows the rows: the alias of the new row, ON DUPLICATE KEY UPDATE,
// RETURNING.
type tailReader struct{ *planReader }

// read reads what follows the rows, beginning with t.
func (r *tailReader) read(t token) (err error) {
	if start := t.start; r.isWord(t, "as") && !r.replace {
		if t, err = r.rowAlias(); err != nil {
			return err
		}
		r.plan.foreign = append(r.plan.foreign, Span{Start: start, End: t.start})
	}
	if r.isWord(t, "on") && !r.replace {
		if t, err = r.update(); err != nil {
			return err
		}
	}
	if start := t.start; r.isWord(t, "returning") {
		if t, err = r.returning(); err != nil {
			return err
		}
		r.plan.foreign = append(r.plan.foreign, Span{Start: start, End: t.start})
	}
	if t.kind != tokEnd && !r.punct(t, ';') {
		return r.unexpected(t)
	}
	switch {
	case t.kind != tokEnd:
		r.plan.End = t.start
	case r.open && t.start < len(r.text): // a zero byte, and a ';' may follow
		return ErrOpen
	default:
		r.plan.End = len(r.text)
	}
	for t.kind != tokEnd && !r.open {
		if t = r.next(); t.kind == tokBad {
			return r.unexpected(t)
		}
		if t.kind != tokEnd && !r.punct(t, ';') {
			return unsupported("more than one statement")
		}
	}
	return nil
}

// rowAlias reads the alias of the new row and returns what follows it. A list of column names needs
// one more for each column that is appended. Without a list the new row's columns are called as the
// table's: one is added where columns are appended, or the application's references to the table's
// id would become ambiguous.
func (r *tailReader) rowAlias() (token, error) {
	p := r.plan
	r.alias = true
	t := r.next()
	if r.name(t) == nil {
		return t, r.unexpected(t)
	}
	end := r.pos
	start := len(p.buffer)
	t = r.next()
	if !r.punct(t, '(') {
		if len(p.behind) == 0 {
			return t, nil
		}
		p.buffer = append(p.buffer, '(')
		if err := r.rowNames(); err != nil {
			return t, err
		}
		r.newNames()
		p.buffer[len(p.buffer)-1] = ')'
		p.insert(end, start)
		return t, nil
	}
	r.renamed = true
	for {
		if t = r.next(); r.name(t) == nil {
			return t, r.unexpected(t)
		}
		if t = r.next(); r.punct(t, ')') {
			break
		}
		if !r.punct(t, ',') {
			return t, r.unexpected(t)
		}
	}
	if len(p.behind) > 0 {
		p.buffer = append(p.buffer, ',')
		r.newNames()
		p.buffer = p.buffer[:len(p.buffer)-1]
		p.insert(t.start, start)
	}
	return r.next(), nil
}

// rowNames appends the names of the row's own columns, each with a comma behind it.
func (r *tailReader) rowNames() error {
	p := r.plan
	for _, t := range p.names {
		p.buffer = append(r.appendName(p.buffer, t), ',')
	}
	if len(p.names) > 0 || r.empty {
		return nil
	}
	for i := range r.table.Columns {
		name, err := spell(r.speller, r.table.Columns[i].Name)
		if err != nil {
			return err
		}
		p.buffer = append(AppendQuoted(p.buffer, name, r.mode), ',')
	}
	return nil
}

// appendName appends the name that t is, as the statement writes it but always in quotes. A word
// holds no quote but as part of a wider character, where it stands for itself.
func (r *tailReader) appendName(dst []byte, t token) []byte {
	name := r.text[t.start:t.end]
	if t.kind == tokQuoted {
		return append(dst, name...)
	}
	return append(append(append(dst, '`'), name...), '`')
}

// newNames appends a name for each column that is appended to the row, each with a comma behind it.
// They are words that the statement does not have.
func (r *tailReader) newNames() {
	p, n := r.plan, unusedNumber(r.text)
	for range p.behind {
		p.buffer = strconv.AppendUint(append(append(p.buffer, '`'), newName...), n, 10)
		p.buffer = append(p.buffer, "`,"...)
		n++
	}
}

// newName begins the names that are made up.
const newName = "idproxy"

// unusedNumber returns a number such that text has no word that begins with newName and has it, or
// one above it, behind.
func unusedNumber(text []byte) uint64 {
	unused := uint64(0)
	for i := 0; i+len(newName) <= len(text); i++ {
		if !foldEqual(text[i:i+len(newName)], newName) {
			continue
		}
		n := uint64(0)
		for at := i + len(newName); at < len(text) && text[at]-'0' <= 9 && n < 1<<40; at++ {
			n = n*10 + uint64(text[at]-'0')
		}
		unused = max(unused, n+1)
	}
	return unused
}

// update reads ON DUPLICATE KEY UPDATE behind its ON, and returns what follows it. The server is
// made to report the id of the row that it updates, as it does for AUTO_INCREMENT; the id keeps its
// value, whatever that is.
func (r *tailReader) update() (token, error) {
	p := r.plan
	for _, word := range [...]string{"duplicate", "key", "update"} {
		if t := r.next(); !r.isWord(t, word) {
			return t, r.unexpected(t)
		}
	}
	p.Update, r.assigning, r.updateAt = true, true, r.pos
	defer func() { r.assigning = false }()
	names, mentioned := len(p.names), r.mentioned
	end, behind, err := r.assignments()
	if err != nil {
		return behind, err
	}
	p.names, r.mentioned = p.names[:names], mentioned // neither is of the rows
	if p.ReadsLastID && !p.NoLastID {
		_, p.OwnLastID = r.lastIDUses(r.updateAt, end)
		_, p.RowLastID = r.lastIDUses(0, r.updateAt)
	}
	if r.canReportUpdated(behind) {
		r.reportUpdated(end)
	}
	return behind, nil
}

// assignments reads those of ON DUPLICATE KEY UPDATE. It returns the end of the last one, and what
// follows.
func (r *tailReader) assignments() (end int, behind token, err error) {
	table := Name{Table: r.nameBehindDot(r.into)}
	for {
		column, own, err := r.columnName(r.next(), table)
		if err != nil {
			return 0, own, err
		}
		if err := r.equals(); err != nil {
			return 0, own, err
		}
		if err := (&keyReader{r.planReader}).assigned(column); err != nil {
			return 0, own, err
		}
		end, behind, err = r.skip()
		if err != nil || !r.punct(behind, ',') {
			return end, behind, err
		}
	}
}

// canReportUpdated reports whether the server can be made to report the row that it updates; behind
// is what follows the assignments. What the application makes it report stands. From the first row that
// is updated on, the rows behind it and what is returned would read its id.
func (r *tailReader) canReportUpdated(behind token) bool {
	p, c := r.plan, &r.plan.slots[0]
	if p.ReadsLastID && (p.Rows > 1 || r.isWord(behind, "returning")) {
		return false
	}
	return !p.OwnLastID && !p.NoLastID && !p.Selected && !c.rule.Packet && !c.text
}

// reportUpdated appends the assignment `t`.`id`=IF(LAST_INSERT_ID(`t`.`id`),`t`.`id`,`t`.`id`). The
// function's own value would not do: it is unsigned, and not that of an id below zero.
func (r *tailReader) reportUpdated(end int) {
	p := r.plan
	p.Assigned = true
	id := func() {
		p.buffer = append(r.appendName(p.buffer, r.into), '.')
		p.buffer = append(p.buffer, p.buffer[p.slots[0].name.Start:p.slots[0].name.End]...)
	}
	start := len(p.buffer)
	p.buffer = append(p.buffer, ',')
	id()
	p.buffer = append(p.buffer, "=IF(LAST_INSERT_ID("...)
	id()
	p.buffer = append(p.buffer, "),"...)
	id()
	p.buffer = append(p.buffer, ',')
	id()
	p.buffer = append(p.buffer, ')')
	p.insert(end, start)
}

// returning reads what follows RETURNING, and returns what follows that.
func (r *tailReader) returning() (token, error) {
	r.plan.Returning = true
	for {
		t := r.next()
		switch {
		case t.kind == tokBad:
			return t, r.unexpected(t)
		case t.kind == tokEnd, r.punct(t, ';'):
			return t, nil
		case r.namesLastID(t):
			r.returned = true
		}
	}
}
