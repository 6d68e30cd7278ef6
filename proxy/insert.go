package proxy

import (
	"errors"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// filling is one column that a statement fills.
type filling struct {
	rule   *rule.Rule
	table  rewriter.Name // with its schema
	column rule.Column
	name   string // schema.table
	facts  *facts.Table
}

// filling returns the i-th column that the part fills.
func (p *part) filling(i int) *filling {
	return &filling{rule: p.rules[i], table: p.name, column: p.columns[i], name: p.facts.Name, facts: p.facts}
}

// admission names the i-th column of the part, and what it is compared with.
func (p *part) admission(i int) facts.Admission { return p.filling(i).admission() }

func (f *filling) admission() facts.Admission {
	return facts.Admission{Table: f.name, Column: f.rule.Column, Source: f.rule.Source}
}

// insertion is how an INSERT goes.
type insertion uint8

const (
	asItIs    insertion = iota
	unnoticed           // with ids that LAST_INSERT_ID() has nothing to do with
	noticed             // with ids
	alone               // with ids, and nothing behind it in its piece
)

// insert decides on an INSERT, REPLACE or LOAD.
func (d *decider) insert(st *statement, i int, head rewriter.Head, cx *reading) (insertion, error) {
	text := cx.inner
	if text == nil {
		text = st.text[st.spans[i].Start:st.spans[i].End]
	}
	if len(head.Target.Table) == 0 {
		return asItIs, d.unread(text, cx)
	}
	name, rules, err := d.rulesOf(head.Target, st, cx)
	if rules == nil || err != nil {
		return asItIs, err
	}
	p, plan := st.filled.room()
	p.result, p.span, p.head, p.text, p.name = i, st.spans[i], head, text, name
	err = d.concern(st, p, rules, cx)
	switch {
	case len(p.rules) == 0 || err != nil:
		return asItIs, err
	case p.view:
		return asItIs, d.unfilled(p, "INSERT through a view without column "+p.rules[0].Column, cx)
	case head.Kind == rewriter.Load:
		return d.load(st, p, cx)
	}
	return d.plan(st, p, plan, cx)
}

// concern is facts, but that an error is no more than seen by rules that only observe.
func (d *decider) concern(st *statement, p *part, rules []*rule.Rule, cx *reading) error {
	err := d.facts(st, p, rules, cx)
	e, ok := errors.AsType[*mysql.MyError](err)
	if !ok || !rules[0].Observe {
		return err
	}
	d.observe(rules[0], p, cx, "would refuse: "+e.Message)
	p.rules = p.rules[:0]
	return nil
}

// facts finds the columns of the rules in what is known of the table. A part
// without rules goes as it is.
func (d *decider) facts(st *statement, p *part, rules []*rule.Rule, cx *reading) error {
	if cx.remaking { // what is known now is of the table before that
		return lacks(needQuiet)
	}
	f := d.known(st, st.key)
	if f == nil {
		return errIncomplete{need{kind: needTable, table: p.name, key: string(st.key)}}
	}
	if f.Err != nil {
		if NoTable(f.Err.Code) {
			if cx.prepares { // or not: the table may have been made since
				st.prepared = &relay.Prepared{Kind: stale{}}
			}
			return nil // the server will say so itself
		}
		return clienterr.Facts(rules[0], f.Name, f.Err)
	}
	p.facts, st.facts = f, f
	for _, r := range rules {
		if !r.Exact() && !r.Unfit(f.Table).None() {
			if cx.prepares && !r.Observe {
				p.absent = append(p.absent, r)
			}
			continue
		}
		column, _, ok := f.Table.Column(r.Column)
		switch {
		case !ok:
			return clienterr.NoColumn(r, f.Name)
		case column.Form(r.IDs) == rule.FormNone:
			return clienterr.ColumnType(r, f.Name, column)
		}
		p.rules, p.columns = append(p.rules, r), append(p.columns, column)
	}
	switch {
	case len(p.rules) > 0:
	case f.View: // what it shows may well be a table that has them
		p.view = true
		p.rules, p.columns = append(p.rules, rules...), append(p.columns, make([]rule.Column, len(rules))...)
	default:
		cx.found.leftAlone++
		if p.absent != nil {
			st.prepared = &relay.Prepared{Kind: &bare{name: relay.CloneName(p.name), key: string(st.key), facts: f, rules: p.absent}}
		}
	}
	return nil
}

// NoTable reports whether an error code says that there is no table of a name, or
// can be none.
func NoTable(code uint16) bool {
	switch code {
	case mysql.ER_NO_SUCH_TABLE, mysql.ER_BAD_DB_ERROR, mysql.ER_WRONG_TABLE_NAME, mysql.ER_WRONG_DB_NAME, mysql.ER_TOO_LONG_IDENT,
		mysql.ER_INVALID_CHARACTER_STRING:
		return true
	}
	return false
}

// plan reads the INSERT and adds it to the parts of st.
func (d *decider) plan(st *statement, p *part, plan *rewriter.Plan, cx *reading) (insertion, error) {
	if d.observed(st, p, cx) {
		return asItIs, nil
	}
	read := &st.reading
	*read = rewriter.Statement{Text: p.text, Mode: cx.mode, Rules: p.rules, Table: p.facts.Table}
	if cx.prepares {
		read.Prepared, read.Bulk = true, cx.inner == nil && d.c.Caps&wire.MariaDBStmtBulkOperations != 0
	}
	if len(st.spans) == 1 {
		read.Values = st.values
	}
	if cx.snap.Known&relay.KnowUTF8 == 0 && keyedByText(p.rules) {
		return asItIs, lacks(needProbe)
	}
	st.speller = d.speller(cx)
	read.UTF8, read.Speller = cx.snap.UTF8, &st.speller
	err := plan.Read(read)
	if _, lacking := errors.AsType[errIncomplete](err); lacking || errors.Is(err, errCut) {
		return asItIs, err
	}
	if form, ok := errors.AsType[*rewriter.Unsupported](err); ok {
		return asItIs, d.unfilled(p, form.Form, cx)
	}
	if err == nil && plan.Asks && st.prefix[0] == mysql.COM_QUERY && !cx.prepares { // no server takes it
		return asItIs, d.unfilled(p, "parameter outside a prepared statement", cx)
	}
	switch {
	case plan.ByPosition && !cx.prepares && p.facts.At.Before(st.begun): // in another order of columns an id would take the place of a value
		return asItIs, errIncomplete{need{kind: needTable, table: p.name, key: string(st.key)}}
	case errors.Is(err, rewriter.ErrNeedValues):
		return asItIs, p.questions(st, plan, cx)
	case err != nil: // ErrRefusedByServer
		if p.facts.At.Before(st.begun) { // by what the table was; the server must be sure to refuse it now
			return asItIs, errIncomplete{need{kind: needTable, table: p.name, key: string(st.key)}}
		}
		if cx.prepares {
			st.prepared = &relay.Prepared{Kind: stale{}}
		}
		return asItIs, nil // it goes as it is, and the server says why not
	case plan.ZeroDoubt && cx.snap.Known&relay.KnowZero == 0, plan.Rows > 1 && cx.snap.Known&relay.KnowNumbers == 0:
		return asItIs, lacks(needProbe)
	case cx.prepares: // nothing happens yet
	case plan.Plain && !plan.NoLastID && len(st.spans) > 1, p.mayOwe(plan) && st.touch&(relay.TouchLastID|relay.TouchInsert) != 0:
		return asItIs, errCut // what LAST_INSERT_ID() is in front of it must be known
	}
	if d.second != nil {
		if err := d.second.Check(read, plan); err != nil {
			cx.found.disputes = append(cx.found.disputes, dispute{p.rules[0], p.facts.Name, err})
			return asItIs, d.unfilled(p, "what two readers read differently: "+err.Error(), cx)
		}
	}
	if cx.prepares {
		return asItIs, d.prepare(st, p, plan, cx)
	}
	if plan.Selected {
		err = d.selects(st, p, plan, cx)
	} else {
		err = d.admissible(st, p, plan, cx)
	}
	if err != nil {
		return asItIs, err
	}
	st.filled.add()
	switch {
	case plan.NoLastID:
		return unnoticed, nil
	case plan.Plain:
		return alone, nil
	}
	return noticed, nil
}

// observed takes the rules that only observe out of the part, says what they
// would do, and reports whether none is left.
func (d *decider) observed(st *statement, p *part, cx *reading) bool {
	kept := 0
	for i, rule := range p.rules {
		if rule.Observe {
			d.observe(rule, p, cx, d.would(st, p, i, cx))
			continue
		}
		p.rules[kept], p.columns[kept] = rule, p.columns[i]
		kept++
	}
	p.rules, p.columns = p.rules[:kept], p.columns[:kept]
	return kept == 0
}

// would says what the i-th rule of the part would do.
func (d *decider) would(st *statement, p *part, i int, cx *reading) string {
	var plan rewriter.Plan
	var load rewriter.LoadPlan
	read, only := plan.Read, &rewriter.Statement{Text: p.text, Mode: cx.mode, Rules: p.rules[i : i+1], Table: p.facts.Table, UTF8: cx.snap.UTF8, Speller: rewriter.UTF8{}}
	if p.head.Kind == rewriter.Load {
		read = load.Read
	}
	err := read(only)
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	switch {
	case unsupported:
		return "would refuse: " + form.Form
	case errors.Is(err, rewriter.ErrRefusedByServer):
		return "would forward what the server refuses"
	case err == nil && p.head.Kind != rewriter.Load && plan.Columns[0].Explicit+plan.Columns[0].Fallback > 0 && p.rules[i].Explicit == rule.Reject:
		return "would refuse: explicit value"
	}
	return "would fill ids"
}

// questions names the expressions that the server must be asked for. They mean
// what they will mean to the statement only when nothing stands in front.
func (p *part) questions(st *statement, plan *rewriter.Plan, cx *reading) error {
	switch {
	case len(st.spans) > 1:
		return errCut
	case cx.snap.Known&(relay.KnowZero|relay.KnowStrict) != relay.KnowZero|relay.KnowStrict:
		return lacks(needProbe)
	case cx.busy: // with what may set a variable
		return lacks(needQuiet)
	}
	n := need{kind: needValues, ignore: plan.Ignore}
	for i, q := range plan.Questions {
		n.values = append(n.values, string(p.text[q.Start:q.End]))
		n.columns = append(n.columns, p.columns[plan.AskedFor(i)])
	}
	return errIncomplete{n}
}

// admissible checks what the plan says of each column against its rule.
func (d *decider) admissible(st *statement, p *part, plan *rewriter.Plan, cx *reading) error {
	for i := range p.rules {
		r, filled := p.rules[i], &plan.Columns[i]
		switch {
		case filled.Explicit+filled.Fallback > 0 && r.Explicit == rule.Reject:
			return clienterr.Explicit(r)
		case r.IDs.Wide():
		case filled.Explicit > 0 && r.Explicit == rule.Advance && filled.GreatestUnknown:
			return clienterr.NoNumber(r)
		case filled.BelowZero && p.columns[i].Unsigned && !plan.Ignore && cx.snap.Known&relay.KnowStrict == 0:
			return lacks(needProbe)
		case filled.BelowZero && p.columns[i].Unsigned && (plan.Ignore || !cx.snap.Strict):
			return clienterr.BelowZero(r) // the server would make 0 of it, which natively generates
		case (filled.Generated > 0 || r.Explicit == rule.Advance) && !d.tables.IsAdmitted(p.admission(i)):
			return errIncomplete{need{kind: needMax, column: p.filling(i)}}
		}
	}
	if plan.NoLastID || plan.Columns[0].Generated == 0 {
		return nil
	}
	return d.begins(st, p, cx)
}

// prepare makes of the part what is sent in place of the PREPARE's text.
func (d *decider) prepare(st *statement, p *part, plan *rewriter.Plan, cx *reading) error {
	if cx.inner != nil && keyed(p.rules) {
		return d.unfilled(p, "INSERT in SQL PREPARE into a table whose ids have a gene", cx)
	}
	if plan.Selected && cx.inner != nil {
		return d.unfilled(p, "INSERT ... SELECT in SQL PREPARE", cx)
	}
	if plan.Selected {
		if cx.snap.Known&readAlike != readAlike {
			return lacks(needProbe)
		}
		st.prepared = &relay.Prepared{Kind: newPreparedQuery(st, p, cx)}
		return nil
	}
	made, err := plan.Prepare(&st.reading)
	if err != nil {
		return clienterr.TooManyParameters(p.facts.Name)
	}
	st.prepared = withIDs(&filler{
		plan: made, head: rewriter.Head{Kind: p.head.Kind}, key: string(st.key), facts: p.facts,
		name:  relay.CloneName(p.name),
		rules: slices.Clone(p.rules), absent: p.absent, columns: slices.Clone(p.columns), bound: boundIDs(made.Parameters),
		keyed: keyParams(made.Genes), keys: keyColumns(p.facts.Table, p.rules),
		noZero: cx.mode.NoAutoValueOnZero, strict: cx.snap.Strict,
	})
	return nil
}
