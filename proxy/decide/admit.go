package decide

import (
	"strings"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

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
	n := NeedValues{Part: p}
	for i, q := range plan.Questions {
		strict, ask := refusesText(&cx.now.State, p.Facts, plan.Ignore, plan.AskedLater(i))
		if ask {
			return p.lacksEngine()
		}
		n.Strict = append(n.Strict, strict)
		n.SQL = append(n.SQL, string(p.Text[q.Start:q.End]))
		n.Columns = append(n.Columns, p.columns[plan.AskedFor(i)])
	}
	return n
}

// lacksEngine says that the engine of the part's table is to be asked for.
func (p *Part) lacksEngine() error { return NeedEngine{Table: p.Name, Facts: p.Facts} }

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
		case filled.BelowZero && p.columns[i].Unsigned:
			refuses, ask := refusesText(&cx.now.State, p.Facts, plan.Ignore, plan.Rows > 1)
			if ask {
				return p.lacksEngine()
			}
			if !refuses {
				return clienterr.BelowZero(r) // the server would make 0 of it, which natively generates
			}
		case (filled.Generated > 0 || r.Explicit == rule.Advance) && !d.Tables.IsAdmitted(p.admission(i)):
			return NeedMax{Column: p.filling(i)}
		}
	}
	if plan.NoLastID || plan.Columns[0].Generated == 0 {
		return nil
	}
	return cx.begins(st, p)
}

// begins sees to it that it is known what SET insert_id asks for where a part generates
// ids in the column that would be AUTO_INCREMENT: natively the next statement that does
// so counts from there, and uses that up.
func (cx *reading) begins(st *Statement, p *Part) error {
	native := counting(p.Facts.Table)
	switch {
	case native != "" && !strings.EqualFold(native, p.Rules[0].Column): // that one uses it up
	case p.Rules[0].Packet: // the server may not know it
	case cx.now.Known&relay.KnowAsked != 0:
		if p.result == 0 && st.Asked != nil {
			p.asked = st.Asked
		}
	case p.result > 0: // what stands in front may use it up
		return errCut
	case cx.now.Busy:
		return NeedQuiet{}
	default:
		return NeedAsked{Part: p}
	}
	return nil
}
