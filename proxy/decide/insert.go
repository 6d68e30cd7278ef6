package decide

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// decideInsert decides on an INSERT, REPLACE or LOAD.
func (cx *reading) decideInsert(i int, head rewriter.Head) (insertion, error) {
	text := cx.inner
	if text == nil {
		text = cx.st.Text[cx.st.Spans[i].Start:cx.st.Spans[i].End]
	}
	if len(head.Target.Table) == 0 {
		return asItIs, cx.unread(text)
	}
	name, rules, err := cx.rulesOf(head.Target)
	if rules == nil || err != nil {
		return asItIs, err
	}
	p, plan := cx.st.Filled.room()
	p.result, p.span, p.head, p.Text, p.Name = i, cx.st.Spans[i], head, text, name
	err = cx.concern(p, rules)
	switch {
	case len(p.Rules) == 0 || err != nil:
		return asItIs, err
	case cx.open && (p.view || p.isObserved()): // what is said of it takes the whole statement
		return asItIs, errOpen
	case p.view:
		return asItIs, cx.unfilled(p, "INSERT through a view without column "+p.Rules[0].Column)
	case head.Kind == rewriter.Load:
		return inserting{cx, p, plan}.decideLoad()
	}
	return inserting{cx, p, plan}.decideFilling()
}

// decideFilling reads the INSERT and adds it to the parts of the piece.
func (x inserting) decideFilling() (insertion, error) {
	// 1. Rules that only observe say what they would do. The others go on.
	if x.observed() {
		return asItIs, nil
	}
	// 2. The INSERT is read. Not each one can be filled, and not each need be.
	if fills, err := x.readInsert(); !fills {
		return asItIs, err
	}
	// 3. What the plan depends on must be known.
	if err := x.settled(); err != nil {
		return asItIs, err
	}
	// 4. A second reader of SQL must have read the same.
	if x.second != nil {
		if err := x.second.Check(&x.st.reading, x.plan); err != nil {
			x.st.Found.Disputes = append(x.st.Found.Disputes, dispute{x.p.Rules[0], x.p.Facts.Name, err})
			return asItIs, x.unfilled(x.p, "what two readers read differently: "+err.Error())
		}
	}
	// 5. One to prepare is done: its ids come with its executions.
	if x.prepares {
		return asItIs, x.prepareInsert()
	}
	// 6. Its rows are counted where a query brings them, and ids of the columns may be drawn.
	if err := x.admit(); err != nil || x.plan.Selected && !x.st.selects() {
		return asItIs, err
	}
	// 7. It is a part of the piece.
	x.st.Filled.add()
	switch {
	case x.plan.NoLastID:
		return unnoticed, nil
	case x.plan.Plain:
		return alone, nil
	}
	return noticed, nil
}

// admit sees to it that ids may be drawn, for rows of a query once these were counted.
func (x inserting) admit() error {
	if x.plan.Selected {
		return x.decideQuery()
	}
	return x.admissible()
}

// readInsert reads the INSERT. fills: it gets ids. Else the error, if there is one, says what
// becomes of it.
func (x inserting) readInsert() (fills bool, err error) {
	if keyedByText(x.p.Rules) && x.now.Known&protocol.KnowUTF8 == 0 {
		return false, NeedProbe{}
	}
	if err = x.plan.Read(x.toRead()); errors.Is(err, rewriter.ErrOpen) {
		return false, errOpen
	}
	x.closes()
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	elsewhere, otherShard := errors.AsType[*rewriter.OtherShard](err)
	old := x.p.Facts.At.Before(x.st.Begun) // what is known is of what the table was
	switch {
	case undecided(err):
		return false, err
	case unsupported:
		return false, x.unfilled(x.p, form.Form)
	case otherShard && !old: // else the key may be in another place now
		return false, clienterr.OtherShard(elsewhere.Rule, elsewhere.Key, elsewhere.Gene)
	case err == nil && x.plan.Asks && !x.prepares && x.st.Prefix[0] == mysql.COM_QUERY: // no server takes it
		return false, x.unfilled(x.p, "parameter outside a prepared statement")
	case x.plan.ByPosition && !x.prepares && old: // in another order of columns an id would take the place of a value
		return false, x.needTable(x.p)
	case errors.Is(err, rewriter.ErrNeedValues):
		return false, x.questions()
	case errors.Is(err, rewriter.ErrNeedTable):
		return false, &UnknownColumns{x.p.Rules[0]}
	case err != nil && old: // the server must be sure to refuse it now
		return false, x.needTable(x.p)
	case err != nil: // ErrRefusedByServer: it goes as it is, and the server says why not
		x.leaveStale()
		x.st.Found.unedited(CauseInvalid)
		return false, nil
	}
	return true, nil
}

// closes notes where an open INSERT ends, once it was read.
func (x inserting) closes() {
	if !x.open {
		return
	}
	p := x.p
	p.Text = p.Text[:x.plan.End]
	p.span.End = p.span.Start + len(p.Text)
	x.open, x.st.reading.Text, x.st.Spans[p.result] = false, p.Text, p.span
}

// toRead is what a plan is read from.
func (x inserting) toRead() *rewriter.Statement {
	x.st.speller = x.speller()
	read := &x.st.reading
	*read = rewriter.Statement{Text: x.p.Text, Open: x.open, Mode: x.Mode, Rules: x.p.Rules, Table: x.p.Facts.Table, UTF8: int(x.now.UTF8), Speller: &x.st.speller}
	if x.prepares {
		read.Prepared, read.Bulk = true, x.inner == nil && x.now.Caps&wire.MariaDBStmtBulkOperations != 0
	}
	if len(x.st.Spans) == 1 {
		read.Values = x.st.Values
	}
	return read
}

// settled sees to it that what the plan depends on is known.
func (x inserting) settled() error {
	switch {
	case x.plan.ZeroDoubt && x.now.Known&protocol.KnowZero == 0, x.plan.Rows > 1 && x.now.Known&protocol.KnowNumbers == 0:
		return NeedProbe{}
	case x.prepares: // nothing happens yet
	case x.plan.Plain && !x.plan.NoLastID && len(x.st.Spans) > 1, x.p.mayOwe(x.plan) && x.st.Touch&(protocol.TouchLastID|protocol.TouchInsert) != 0:
		return errCut // what LAST_INSERT_ID() is in front of it must be known
	}
	return nil
}
