package decide

import (
	"strings"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rule"
)

// questions names the expressions that the server must be asked for. They mean
// what they will mean to the statement only when nothing stands in front.
func (x inserting) questions() error {
	switch {
	case len(x.st.Spans) > 1:
		return errCut
	case x.now.Known&(protocol.KnowZero|protocol.KnowStrict) != protocol.KnowZero|protocol.KnowStrict:
		return NeedProbe{}
	case x.now.Busy: // with what may set a variable
		return NeedQuiet{}
	}
	n := NeedValues{Part: x.p}
	for i, q := range x.plan.Questions {
		strict, ask := refusesText(&x.now.Vars, x.p.Facts, x.plan.Ignore, x.plan.AskedLater(i))
		if ask {
			return x.p.lacksEngine()
		}
		n.Strict = append(n.Strict, strict)
		n.SQL = append(n.SQL, string(x.p.Text[q.Start:q.End]))
		n.Columns = append(n.Columns, x.p.columns[x.plan.AskedFor(i)])
	}
	return n
}

// admissible checks what the plan says of each column against its rule.
func (x inserting) admissible() error {
	for i := range x.p.Rules {
		if err := x.admitColumn(i); err != nil {
			return err
		}
	}
	if x.plan.NoLastID || x.plan.Columns[0].Generated == 0 {
		return nil
	}
	return x.begins()
}

// admitColumn checks what the plan says of the i-th column.
func (x inserting) admitColumn(i int) error {
	r, filled := x.p.Rules[i], &x.plan.Columns[i]
	switch {
	case r.Explicit == rule.Reject && filled.Explicit+filled.Fallback > 0:
		return clienterr.Explicit(r)
	case r.IDs.Wide():
		return nil
	case r.Explicit == rule.Advance && filled.Explicit > 0 && filled.GreatestUnknown:
		return clienterr.NoNumber(r)
	}
	if filled.BelowZero && x.p.columns[i].Unsigned {
		if err := x.belowZero(r); err != nil {
			return err
		}
	}
	if (filled.Generated > 0 || r.Explicit == rule.Advance) && !x.tables.IsAdmitted(x.p.Facts, r) {
		return NeedMax{Column: x.p.filling(i)}
	}
	return nil
}

// belowZero refuses an id below zero in an unsigned column, unless the server does so: else it
// makes 0 of it, which natively generates.
func (x inserting) belowZero(r *rule.Rule) error {
	if !x.plan.Ignore && x.now.Known&protocol.KnowStrict == 0 {
		return NeedProbe{}
	}
	switch refuses, ask := refusesText(&x.now.Vars, x.p.Facts, x.plan.Ignore, x.plan.Rows > 1); {
	case ask:
		return x.p.lacksEngine()
	case !refuses:
		return clienterr.BelowZero(r)
	}
	return nil
}

// begins sees to it that it is known what SET insert_id asks for where a part generates
// ids in the column that would be AUTO_INCREMENT: natively the next statement that does
// so counts from there, and uses that up.
func (x inserting) begins() error {
	native := counting(x.p.Facts.Table)
	switch {
	case native != "" && !strings.EqualFold(native, x.p.Rules[0].Column): // that one uses it up
	case x.p.Rules[0].Packet: // the server may not know it
	case x.now.Known&protocol.KnowAsked != 0 && x.now.InsertID == 0:
		if x.p.result == 0 && x.st.Asked != nil {
			x.p.asked = x.st.Asked
		}
	case x.p.result > 0: // what stands in front may use it up
		return errCut
	case x.now.Busy:
		return NeedQuiet{}
	default:
		return NeedAsked{Part: x.p}
	}
	return nil
}
