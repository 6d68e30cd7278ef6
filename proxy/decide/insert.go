package decide

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

// Filling is one column that a statement fills.
type Filling struct {
	Rule   *rule.Rule
	Table  rewriter.Name // with its schema
	Column rule.Column
	Name   string // schema.table
	Facts  *facts.Table
}

// filling returns the i-th column that the part fills.
func (p *Part) filling(i int) *Filling {
	return &Filling{Rule: p.Rules[i], Table: p.Name, Column: p.columns[i], Name: p.Facts.Name, Facts: p.Facts}
}

// admission names the i-th column of the part, and what it is compared with.
func (p *Part) admission(i int) facts.Admission { return p.filling(i).Admission() }

func (f *Filling) Admission() facts.Admission {
	return facts.Admission{Table: f.Name, Column: f.Rule.Column, Source: f.Rule.Source}
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
func (d *Decider) insert(st *Statement, i int, head rewriter.Head, cx *reading) (insertion, error) {
	text := cx.inner
	if text == nil {
		text = st.Text[st.Spans[i].Start:st.Spans[i].End]
	}
	if len(head.Target.Table) == 0 {
		return asItIs, cx.unread(text)
	}
	name, rules, err := d.rulesOf(head.Target, st, cx)
	if rules == nil || err != nil {
		return asItIs, err
	}
	p, plan := st.Filled.room()
	p.result, p.span, p.head, p.Text, p.Name = i, st.Spans[i], head, text, name
	err = d.concern(st, p, rules, cx)
	switch {
	case len(p.Rules) == 0 || err != nil:
		return asItIs, err
	case p.view:
		return asItIs, cx.unfilled(p, "INSERT through a view without column "+p.Rules[0].Column)
	case head.Kind == rewriter.Load:
		return d.load(st, p, cx)
	}
	return d.plan(st, p, plan, cx)
}

// concern is facts, but that an error is no more than seen by rules that only observe.
func (d *Decider) concern(st *Statement, p *Part, rules []*rule.Rule, cx *reading) error {
	err := d.facts(st, p, rules, cx)
	e, ok := errors.AsType[*mysql.MyError](err)
	if !ok || !rules[0].Observe {
		return err
	}
	cx.observe(rules[0], p, "would refuse: "+e.Message)
	p.Rules = p.Rules[:0]
	return nil
}

// facts finds the columns of the rules in what is known of the table. A part
// without rules goes as it is.
func (d *Decider) facts(st *Statement, p *Part, rules []*rule.Rule, cx *reading) error {
	if cx.now.Remaking { // what is known now is of the table before that
		return NeedQuiet{}
	}
	f := d.known(st, st.Key)
	if f == nil {
		return NeedTable{Table: p.Name, Key: string(st.Key)}
	}
	if f.Err != nil {
		if NoTable(f.Err.Code) {
			if cx.prepares { // or not: the table may have been made since
				st.Prepared = &relay.Prepared{Kind: stale{}}
			}
			return nil // the server will say so itself
		}
		return clienterr.Facts(rules[0], f.Name, f.Err)
	}
	p.Facts, st.Facts = f, f
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
		p.Rules, p.columns = append(p.Rules, r), append(p.columns, column)
	}
	switch {
	case len(p.Rules) > 0:
	case f.View: // what it shows may well be a table that has them
		p.view = true
		p.Rules, p.columns = append(p.Rules, rules...), append(p.columns, make([]rule.Column, len(rules))...)
	default:
		cx.found.LeftAlone++
		if p.absent != nil {
			st.Prepared = &relay.Prepared{Kind: &bare{name: relay.CloneName(p.Name), key: string(st.Key), facts: f, rules: p.absent}}
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
func (d *Decider) plan(st *Statement, p *Part, plan *rewriter.Plan, cx *reading) (insertion, error) {
	if cx.observed(st, p) {
		return asItIs, nil
	}
	read := &st.reading
	*read = rewriter.Statement{Text: p.Text, Mode: cx.Mode, Rules: p.Rules, Table: p.Facts.Table}
	if cx.prepares {
		read.Prepared, read.Bulk = true, cx.inner == nil && cx.now.Caps&wire.MariaDBStmtBulkOperations != 0
	}
	if len(st.Spans) == 1 {
		read.Values = st.Values
	}
	if cx.now.Known&relay.KnowUTF8 == 0 && keyedByText(p.Rules) {
		return asItIs, NeedProbe{}
	}
	st.speller = d.speller(cx)
	read.UTF8, read.Speller = cx.now.UTF8, &st.speller
	err := plan.Read(read)
	if _, lacking := errors.AsType[Need](err); lacking || errors.Is(err, errCut) {
		return asItIs, err
	}
	if form, ok := errors.AsType[*rewriter.Unsupported](err); ok {
		return asItIs, cx.unfilled(p, form.Form)
	}
	if err == nil && plan.Asks && st.Prefix[0] == mysql.COM_QUERY && !cx.prepares { // no server takes it
		return asItIs, cx.unfilled(p, "parameter outside a prepared statement")
	}
	switch {
	case plan.ByPosition && !cx.prepares && p.Facts.At.Before(st.Begun): // in another order of columns an id would take the place of a value
		return asItIs, NeedTable{Table: p.Name, Key: string(st.Key)}
	case errors.Is(err, rewriter.ErrNeedValues):
		return asItIs, p.questions(st, plan, cx)
	case err != nil: // ErrRefusedByServer
		if p.Facts.At.Before(st.Begun) { // by what the table was; the server must be sure to refuse it now
			return asItIs, NeedTable{Table: p.Name, Key: string(st.Key)}
		}
		if cx.prepares {
			st.Prepared = &relay.Prepared{Kind: stale{}}
		}
		return asItIs, nil // it goes as it is, and the server says why not
	case plan.ZeroDoubt && cx.now.Known&relay.KnowZero == 0, plan.Rows > 1 && cx.now.Known&relay.KnowNumbers == 0:
		return asItIs, NeedProbe{}
	case cx.prepares: // nothing happens yet
	case plan.Plain && !plan.NoLastID && len(st.Spans) > 1, p.mayOwe(plan) && st.Touch&(relay.TouchLastID|relay.TouchInsert) != 0:
		return asItIs, errCut // what LAST_INSERT_ID() is in front of it must be known
	}
	if d.Second != nil {
		if err := d.Second.Check(read, plan); err != nil {
			cx.found.Disputes = append(cx.found.Disputes, dispute{p.Rules[0], p.Facts.Name, err})
			return asItIs, cx.unfilled(p, "what two readers read differently: "+err.Error())
		}
	}
	if cx.prepares {
		return asItIs, cx.prepare(st, p, plan)
	}
	if plan.Selected {
		err = d.selects(st, p, plan, cx)
	} else {
		err = d.admissible(st, p, plan, cx)
	}
	if err != nil {
		return asItIs, err
	}
	st.Filled.add()
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
func (cx *reading) observed(st *Statement, p *Part) bool {
	kept := 0
	for i, rule := range p.Rules {
		if rule.Observe {
			cx.observe(rule, p, cx.would(st, p, i))
			continue
		}
		p.Rules[kept], p.columns[kept] = rule, p.columns[i]
		kept++
	}
	p.Rules, p.columns = p.Rules[:kept], p.columns[:kept]
	return kept == 0
}

// would says what the i-th rule of the part would do.
func (cx *reading) would(st *Statement, p *Part, i int) string {
	var plan rewriter.Plan
	var load rewriter.LoadPlan
	read, only := plan.Read, &rewriter.Statement{Text: p.Text, Mode: cx.Mode, Rules: p.Rules[i : i+1], Table: p.Facts.Table, UTF8: cx.now.UTF8, Speller: rewriter.UTF8{}}
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
	case err == nil && p.head.Kind != rewriter.Load && plan.Columns[0].Explicit+plan.Columns[0].Fallback > 0 && p.Rules[i].Explicit == rule.Reject:
		return "would refuse: explicit value"
	}
	return "would fill ids"
}

// questions names the expressions that the server must be asked for. They mean
// what they will mean to the statement only when nothing stands in front.
func (p *Part) questions(st *Statement, plan *rewriter.Plan, cx *reading) error {
	switch {
	case len(st.Spans) > 1:
		return errCut
	case cx.now.Known&(relay.KnowZero|relay.KnowStrict) != relay.KnowZero|relay.KnowStrict:
		return NeedProbe{}
	case cx.now.Busy: // with what may set a variable
		return NeedQuiet{}
	}
	n := NeedValues{Ignore: plan.Ignore}
	for i, q := range plan.Questions {
		n.SQL = append(n.SQL, string(p.Text[q.Start:q.End]))
		n.Columns = append(n.Columns, p.columns[plan.AskedFor(i)])
	}
	return n
}

// admissible checks what the plan says of each column against its rule.
func (d *Decider) admissible(st *Statement, p *Part, plan *rewriter.Plan, cx *reading) error {
	for i := range p.Rules {
		r, filled := p.Rules[i], &plan.Columns[i]
		switch {
		case filled.Explicit+filled.Fallback > 0 && r.Explicit == rule.Reject:
			return clienterr.Explicit(r)
		case r.IDs.Wide():
		case filled.Explicit > 0 && r.Explicit == rule.Advance && filled.GreatestUnknown:
			return clienterr.NoNumber(r)
		case filled.BelowZero && p.columns[i].Unsigned && !plan.Ignore && cx.now.Known&relay.KnowStrict == 0:
			return NeedProbe{}
		case filled.BelowZero && p.columns[i].Unsigned && (plan.Ignore || !cx.now.Strict):
			return clienterr.BelowZero(r) // the server would make 0 of it, which natively generates
		case (filled.Generated > 0 || r.Explicit == rule.Advance) && !d.Tables.IsAdmitted(p.admission(i)):
			return NeedMax{Column: p.filling(i)}
		}
	}
	if plan.NoLastID || plan.Columns[0].Generated == 0 {
		return nil
	}
	return cx.begins(st, p)
}

// prepare makes of the part what is sent in place of the PREPARE's text.
func (cx *reading) prepare(st *Statement, p *Part, plan *rewriter.Plan) error {
	if cx.inner != nil && keyed(p.Rules) {
		return cx.unfilled(p, "INSERT in SQL PREPARE into a table whose ids have a gene")
	}
	if plan.Selected && cx.inner != nil {
		return cx.unfilled(p, "INSERT ... SELECT in SQL PREPARE")
	}
	if plan.Selected {
		if cx.now.Known&readAlike != readAlike {
			return NeedProbe{}
		}
		st.Prepared = &relay.Prepared{Kind: newPreparedQuery(st, p, cx)}
		return nil
	}
	made, err := plan.Prepare(&st.reading)
	if err != nil {
		return clienterr.TooManyParameters(p.Facts.Name)
	}
	st.Prepared = withIDs(&filler{
		Plan: made, head: rewriter.Head{Kind: p.head.Kind}, key: string(st.Key), facts: p.Facts,
		name:  relay.CloneName(p.Name),
		rules: slices.Clone(p.Rules), absent: p.absent, columns: slices.Clone(p.columns), bound: boundIDs(made.Parameters),
		keyed: keyParams(made.Genes), keys: keyColumns(p.Facts.Table, p.Rules),
		noZero: cx.Mode.NoAutoValueOnZero, strict: cx.now.Strict,
	})
	return nil
}
