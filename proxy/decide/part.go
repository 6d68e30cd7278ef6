package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/draw"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Part is one statement of the text that gets ids, or brings its own.
type Part struct {
	result  int
	span    rewriter.Span
	head    rewriter.Head
	Text    []byte        // of the span
	Name    rewriter.Name // with its schema
	Rules   []*rule.Rule
	Facts   *catalog.Table
	columns []rule.Column // by rule
	absent  []*rule.Rule  // of a statement to prepare: those whose columns the table does not have
	view    bool          // it is a view that has none of the columns
	ids     [][]uint64    // by rule
	asked   *draw.Asked   // for the first rule, in place of its source's; nil: none
}

// Filling is one column that a statement fills.
type Filling struct {
	Rule   *rule.Rule
	Table  rewriter.Name // with its schema
	Column rule.Column
	Name   string // schema.table
	Facts  *catalog.Table
}

// filling returns the i-th column that the part fills.
func (p *Part) filling(i int) *Filling {
	return &Filling{Rule: p.Rules[i], Table: p.Name, Column: p.columns[i], Name: p.Facts.Name, Facts: p.Facts}
}

// Admission names the column, and what it is compared with.
func (f *Filling) Admission() catalog.Admission { return catalog.AdmissionOf(f.Facts, f.Rule) }

// expect says what is to be expected of the part's reply.
func (p *Part) expect(plan *rewriter.Plan, foundRows bool) protocol.Expect {
	first, ids := &plan.Columns[0], p.ids[0]
	e := protocol.Expect{
		Result: p.result, Form: formOf(plan), Rows: plan.Rows,
		Generated: first.Generated, Explicit: first.Last, HasExplicit: first.HasLast,
		Ignore: plan.Ignore, Unnamed: plan.Update && !plan.Assigned && !plan.OwnLastID, RowLastID: plan.RowLastID, FoundRows: foundRows, Returning: plan.Returning, Packet: p.Rules[0].Packet,
		Table: p.Facts.Name, Facts: p.Facts,
	}
	others := p.ids[1:]
	if plan.NoLastID {
		e.Generated, ids, others = 0, nil, p.ids
	}
	if len(ids) > 0 {
		e.First, e.Last = ids[0], ids[len(ids)-1]
	}
	e.Askable = plan.Plain && !p.columns[0].Text && (e.Generated > 0 || e.HasExplicit)
	for i, ids := range others {
		if k := len(p.ids) - len(others) + i; len(ids) > 0 {
			a := protocol.Assigned{Column: p.Rules[k].Column, Form: p.form(k)}
			copy(a.First[:], ids[:p.Rules[k].IDs.Words(1)])
			copy(a.Last[:], ids[len(ids)-p.Rules[k].IDs.Words(1):])
			e.Others = append(e.Others, a)
		}
	}
	return e
}

// form says how the ids of the i-th column are written.
func (p *Part) form(i int) rule.Form { return p.columns[i].Form(p.Rules[i].IDs) }

func formOf(plan *rewriter.Plan) protocol.Form {
	switch {
	case plan.NoLastID:
		return protocol.FormElsewhere
	case plan.Update && plan.OwnLastID:
		return protocol.FormOwnUpdate
	case plan.Update:
		return protocol.FormUpdate
	case plan.Delayed:
		return protocol.FormDelayed
	case plan.Ignore:
		return protocol.FormIgnore
	case plan.Plain:
		return protocol.FormPlain
	}
	return protocol.FormInline
}

// mayOwe reports whether the value that LAST_INSERT_ID() has before the part
// must be known.
func (p *Part) mayOwe(plan *rewriter.Plan) bool {
	return !p.Rules[0].Packet && !plan.NoLastID && (plan.Update || !plan.Plain && plan.Columns[0].Generated > 0)
}

// askAgain begins anew with the ids that SET insert_id asks for.
func (p *Part) askAgain() {
	if p.asked != nil {
		p.asked.Next = p.asked.First
	}
}
