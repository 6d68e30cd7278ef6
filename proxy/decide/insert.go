package decide

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
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
	case errors.Is(err, rewriter.ErrNeedTable):
		return asItIs, &UnknownColumns{p.Rules[0]}
	case err != nil: // ErrRefusedByServer
		if p.Facts.At.Before(st.Begun) { // by what the table was; the server must be sure to refuse it now
			return asItIs, NeedTable{Table: p.Name, Key: string(st.Key)}
		}
		if cx.prepares {
			st.Prepared = &relay.Prepared{Kind: stale{}}
		}
		cx.found.unedited(CauseInvalid)
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
	if err != nil || plan.Selected && !st.selects() {
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
