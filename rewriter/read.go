package rewriter

import (
	"fmt"
	"math"
	"slices"

	"idproxy/rule"
)

// Read reads an INSERT or REPLACE. A statement that cannot be read without the table's facts gives
// ErrNeedTable, one with expressions for ids ErrNeedValues until it is read with their values. An
// open one that cannot be read as such gives ErrOpen, whatever else is wrong with it.
// After any other error the plan must not be used.
//
// Understood: {INSERT [LOW_PRIORITY | HIGH_PRIORITY | DELAYED] [IGNORE] | REPLACE [LOW_PRIORITY |
// DELAYED]} [INTO] name [PARTITION (names)] {[([columns])] {{VALUES | VALUE} tuple [, tuple] ... |
// query} | SET column = value [, column = value] ...} [AS alias [(names)]] [ON DUPLICATE KEY UPDATE
// column = value [, column = value] ...] [RETURNING ...], where a tuple may be (). Any other form
// is *Unsupported.
func (p *Plan) Read(s *Statement) error {
	if len(s.Text) > math.MaxUint32 {
		return unsupported("statement over 4 GiB")
	}
	if len(s.Rules) > MaxColumns {
		return unsupported(fmt.Sprintf("more than %d generated columns", MaxColumns))
	}
	// A word near the end may decide on what stands in front. The statement is then read once more.
	for reads, move := false, false; ; {
		p.reset()
		p.ReadsLastID = reads
		r := planReader{plan: p, open: s.Open, table: s.Table, values: s.Values, move: move, prepared: s.Prepared, bulk: s.Bulk, utf8: s.UTF8, speller: s.Speller}
		r.scanner = scanner{text: s.Text, mode: s.Mode, version: versionRefuse}
		r.noteSession()
		err := r.read(s.Rules)
		switch {
		case r.lastID && !reads:
			reads = true
		case err != nil && s.Open:
			return ErrOpen
		case err != nil:
			return err
		case !move && r.mustMove():
			move = true
		default:
			err := r.finish()
			p.Asks = r.asks
			r.noteDecisions()
			return err
		}
	}
}

func (r *planReader) read(rules []*rule.Rule) error {
	for _, rule := range rules {
		if err := r.slot(rule); err != nil {
			return err
		}
	}
	if err := (&keyReader{r}).find(); err != nil {
		return err
	}
	r.plan.Plain = r.plan.Plain || r.table != nil && (r.counts(r.table.Columns, rules) || r.counts(r.table.Invisible, rules))
	t, err := r.names()
	if err != nil {
		return err
	}
	if r.plan.Selected && r.open {
		return ErrOpen
	}
	if r.plan.Selected && len(r.plan.keys) > 0 {
		return unsupported(r.otherRows(t) + " into a table whose ids have a gene")
	}
	if r.plan.Selected {
		for k := range r.plan.slots {
			if r.plan.slots[k].form.Wide() {
				return unsupported(r.otherRows(t) + " into column " + r.plan.slots[k].rule.Column + ", whose ids are no numbers")
			}
		}
		return (&queryReader{r}).read(t)
	}
	if err := (&tailReader{r}).read(t); err != nil {
		return err
	}
	if r.open && !r.endsSurely() {
		return ErrOpen
	}
	return r.decide()
}

// endsSurely reports whether an open statement ends where it was read to, and nothing looked behind
// that: for new names, or for what may change the value of an expression.
func (r *planReader) endsSurely() bool {
	return !r.dollars && !r.alias && len(r.plan.Questions) == 0
}

// counts reports whether the server itself counts in one of the columns, one that no rule names: it
// would report and remember that number, whatever LAST_INSERT_ID(first) says.
func (r *planReader) counts(columns []rule.Column, rules []*rule.Rule) bool {
	for i := range columns {
		named := func(r *rule.Rule) bool { return rule.SameColumn(r.Column, columns[i].Name) }
		if columns[i].AutoIncrement && !slices.ContainsFunc(rules, named) {
			return true
		}
	}
	return false
}

// names reads from the verb to the end of the rows, and returns the token behind them.
func (r *planReader) names() (token, error) {
	t, err := r.verbAndModifiers()
	if err != nil {
		return t, err
	}
	name, t, err := r.tableName(t)
	if err != nil {
		return t, err
	}
	end := r.pos
	t = r.next()
	if r.isWord(t, "partition") {
		if err := r.partitions(); err != nil {
			return t, err
		}
		end = r.pos
		t = r.next()
	}
	r.plan.body = t.end
	if r.isWord(t, "set") {
		return (&setReader{valueReader{r}}).read(name)
	}
	listed := r.punct(t, '(') && !r.beginsQuery()
	if listed {
		if err := r.columns(name); err != nil {
			return t, err
		}
		t = r.next()
	}
	r.plan.body = t.start
	if r.plan.Selected, err = r.rowsFrom(t); err != nil {
		return t, err
	}
	if !listed {
		if err := r.noColumns(end); err != nil {
			return t, err
		}
	}
	if r.plan.Selected {
		return t, nil
	}
	return (&tupleReader{valueReader{r}}).read()
}

// tableName reads the table, whose name begins with t.
func (r *planReader) tableName(t token) (Name, token, error) {
	if t.kind == tokWord && !r.qualifies(t) && reserved(r.text[t.start:t.end]) {
		return Name{}, t, r.unexpected(t)
	}
	name := r.target(t)
	if name.Table == nil {
		return name, t, r.unexpected(t)
	}
	r.into = r.named
	return name, t, nil
}

func (r *planReader) verbAndModifiers() (token, error) {
	t := r.next()
	switch r.keyword(t) {
	case kwInsert:
	case kwReplace:
		r.replace = true
	default:
		return t, r.unexpected(t)
	}
	t = r.next()
	switch {
	case r.isWord(t, "delayed"):
		r.plan.Delayed = r.mode.MariaDB
		t = r.next()
	case r.isWord(t, "low_priority"), r.isWord(t, "high_priority") && !r.replace:
		t = r.next()
	}
	if r.isWord(t, "ignore") && !r.replace {
		r.plan.Ignore = true
		t = r.next()
	}
	if r.isWord(t, "into") {
		t = r.next()
	}
	return t, nil
}

// reserved reports whether an unquoted word goes on the statement, and so is no table's name.
func reserved(word []byte) bool {
	for _, w := range [...]string{
		"into", "ignore", "delayed", "low_priority", "high_priority", "values", "set", "select", "with", "table", "partition",
		"as", "on", "insert", "replace", "default", "null",
	} {
		if foldEqual(word, w) {
			return true
		}
	}
	return false
}

// partitions reads the names behind PARTITION.
func (r *planReader) partitions() error {
	t := r.next()
	for want := byte('('); r.punct(t, want); want = ',' {
		if t = r.next(); r.name(t) == nil {
			return r.unexpected(t)
		}
		if t = r.next(); r.punct(t, ')') {
			return nil
		}
	}
	return r.unexpected(t)
}

// rowsFrom takes VALUES or VALUE, or finds that a query begins with t.
func (r *planReader) rowsFrom(t token) (selected bool, err error) {
	values := r.isWord(t, "values") || r.isWord(t, "value")
	switch {
	case values && r.isWord(r.peek(), "row"):
		if r.mode.MariaDB {
			return false, unsupported("VALUES ROW()")
		}
		r.plan.rowWord = true
		return false, nil
	case values:
		return false, nil
	case r.otherRows(t) != "":
		return true, nil
	}
	return false, r.unexpected(t)
}

// decide settles what only the whole statement tells.
func (r *planReader) decide() error {
	p := r.plan
	if len(p.Questions) > 0 && len(p.Questions) != len(r.values) {
		return ErrNeedValues
	}
	p.Expressions = len(p.Questions) > 0
	p.Plain = p.Plain || r.outcomeTells()
	p.variable = p.ReadsLastID && !r.mode.MariaDB
	if p.Expressions && r.changesVariables() {
		return unsupported("expression for a generated column in a statement that sets what it reads")
	}
	for k := range p.slots {
		p.noteLast(k)
		if r.mentioned && !r.mayBeRead(k) {
			return unsupported("value that reads a generated column before it")
		}
	}
	if r.mustCarry() {
		// The function is unsigned: nothing negative can be added to it. Neither can it be added to
		// DEFAULT or a text.
		c := &p.slots[0]
		p.Plain = !c.last.hasNumber() || c.last.negative || c.text
	}
	return nil
}

// outcomeTells reports whether only the outcome tells what a native column would report, or the
// function LAST_INSERT_ID would be seen.
func (r *planReader) outcomeTells() bool {
	p := r.plan
	return p.Ignore || p.Update || p.Delayed || p.Expressions || r.texts || r.alias ||
		p.Returning && r.returned || p.Columns[0].Bound > 0 || r.bulk && p.ReadsLastID
}

// noteLast notes the id of the last row, if that is an explicit number.
func (p *Plan) noteLast(k int) {
	if c := &p.slots[k]; c.last.kind == valueZero || c.last.kind == valueNumber {
		if !c.form.Wide() {
			p.Columns[k].Last, p.Columns[k].HasLast = c.last.number, true
		}
	}
}

// mayBeRead reports whether another value of a row may read the k-th column: it then finds what it
// finds natively. Only the first column can move behind what reads it, and natively its id is there
// to be read in explicit rows alone.
func (r *planReader) mayBeRead(k int) bool {
	c, filled := &r.plan.slots[k], &r.plan.Columns[k]
	if filled.Generated+filled.Bound == 0 || c.at < 0 || c.at == r.width-1 {
		return true
	}
	return k == 0 && filled.Explicit+filled.Texts+filled.Bound+filled.Fallback == 0 && !r.alias
}

// mustCarry reports whether an explicit row behind the last generated one must not read the new id.
func (r *planReader) mustCarry() bool {
	p := r.plan
	return !p.Plain && p.ReadsLastID && p.Columns[0].Generated > 0 && p.slots[0].last.explicit()
}

// mustMove reports whether a value behind the first column's id would read it, or the last insert
// id that it sets.
func (r *planReader) mustMove() bool {
	p := r.plan
	at := p.slots[0].at
	return at >= 0 && at < r.width-1 && p.Columns[0].Generated > 0 && (p.ReadsLastID && !p.Plain || r.mentioned)
}

// finish puts the function into the last row, whose explicit id it leaves as it is.
func (r *planReader) finish() error {
	if !r.mustCarry() {
		return nil
	}
	p, last := r.plan, r.plan.slots[0].last
	p.carry, p.carried = true, last.number
	if r.move {
		p.edits[r.atEnd].op = opMoveCarry
		return nil
	}
	carry := edit{start: uint32(last.start), end: uint32(last.end), op: opCarry}
	i := len(p.edits)
	for i > 0 && p.edits[i-1].start > carry.start {
		i--
	}
	p.edits = append(p.edits, edit{})
	copy(p.edits[i+1:], p.edits[i:])
	p.edits[i] = carry
	return nil
}
