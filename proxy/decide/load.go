package decide

import (
	"errors"
	"slices"

	"idproxy/proxy/loaddata"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// decideLoad decides on a LOAD DATA or LOAD XML into a table with a rule.
func (x inserting) decideLoad() (insertion, error) {
	// 1. It is a piece of its own, of rules that do more than observe.
	switch {
	case x.prepares:
		return asItIs, x.unfilled(x.p, "LOAD DATA in a prepared statement")
	case x.observed():
		return asItIs, nil
	case len(x.st.Spans) > 1:
		return asItIs, errCut
	case x.now.Busy:
		return asItIs, NeedQuiet{}
	}
	// 2. It is read, and how the server will read its file is known.
	l := &Loading{part: *x.p, stride: uint64(x.now.Increment)}
	if fills, err := x.readLoad(&l.plan); !fills {
		return asItIs, err
	}
	charset := l.plan.Charset
	if charset == "" {
		charset = x.st.FileCharset
	}
	if charset == "" {
		return asItIs, NeedCharset{}
	}
	if form := loadForm(&l.plan, charset); form != "" {
		return asItIs, x.unfilled(x.p, form)
	}
	if _, ask := refusesText(&x.now.Vars, x.p.Facts, !l.plan.Replace, true); ask {
		return asItIs, x.p.lacksEngine()
	}
	l.Format = x.format(l, charset)
	// 3. Ids may be drawn.
	for i := range x.p.Rules {
		if !x.tables.IsAdmitted(x.p.Facts, x.p.Rules[i]) {
			return asItIs, NeedMax{Column: x.p.filling(i)}
		}
	}
	if err := x.begins(); err != nil {
		return asItIs, err
	}
	// 4. The load outlives the decision, while its file passes.
	l.part.Rules, l.part.columns = slices.Clone(x.p.Rules), slices.Clone(x.p.columns)
	l.part.Name, l.part.asked = protocol.CloneName(x.p.Name), x.p.asked
	x.st.Order, x.st.Facts = l, nil // errors of rows are the file's
	if x.p.head.Effects(x.p.Text)&rewriter.SetsLastID != 0 {
		x.st.Touch |= protocol.TouchLastID
	}
	return alone, nil
}

// readLoad reads the LOAD. fills: its file gets ids. Else the error, if there is one, says what
// becomes of it.
func (x inserting) readLoad(plan *rewriter.LoadPlan) (fills bool, err error) {
	const settings = protocol.KnowMode | protocol.KnowNumbers
	x.st.speller = x.speller()
	err = plan.Read(&rewriter.Statement{Text: x.p.Text, Mode: x.Mode, Rules: x.p.Rules, Table: x.p.Facts.Table, Speller: &x.st.speller})
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	_, missing := errors.AsType[Need](err)
	switch {
	case missing:
		return false, err
	case unsupported:
		return false, x.unfilled(x.p, form.Form)
	case errors.Is(err, rewriter.ErrNeedTable):
		return false, &UnknownColumns{x.p.Rules[0]}
	case err != nil: // ErrRefusedByServer
		x.st.Found.unedited(CauseInvalid)
		return false, nil
	case x.p.Facts.At.Before(x.st.Begun): // how many fields a line has must be certain: no server says when it was not
		return false, x.needTable(x.p)
	case x.now.Known&settings != settings:
		return false, NeedProbe{}
	}
	return true, nil
}

// loadForm says why a file cannot get ids as it passes; it is empty when it can. charset
// is that of the file.
func loadForm(plan *rewriter.LoadPlan, charset string) string {
	if _, known := loaddata.CharsetOf(charset); !known {
		return "LOAD DATA of a file in character set " + charset
	}
	f := separated(plan)
	if err := f.Check(); err != nil {
		return "LOAD DATA with " + err.Error()
	}
	return ""
}

// separated is how the statement cuts its file.
func separated(plan *rewriter.LoadPlan) loaddata.Format {
	f := loaddata.Format{FieldTerm: plan.FieldTerm, LineStart: plan.LineStart, LineTerm: plan.LineTerm, Enclosed: loaddata.None, Escape: loaddata.None}
	if len(plan.Enclosed) > 0 {
		f.Enclosed = int(plan.Enclosed[0])
	}
	if len(plan.Escaped) > 0 {
		f.Escape = int(plan.Escaped[0])
	}
	return f
}

// format is how the server will read the file.
func (x inserting) format(l *Loading, charset string) loaddata.Format {
	f := separated(&l.plan)
	f.Skip, f.Fields, f.Bytes = l.plan.Skip, l.plan.Fields, l.plan.Bytes
	f.Charset, _ = loaddata.CharsetOf(charset)
	f.MariaDB = x.Mode.MariaDB
	// MariaDB forgets that a field was given when it fills the columns of SET.
	f.KeepZero = x.Mode.NoAutoValueOnZero && !(f.MariaDB && l.plan.Sets)
	f.Strict, _ = refusesText(&x.now.Vars, l.part.Facts, !l.plan.Replace, true)
	f.StrictFirst, _ = refusesText(&x.now.Vars, l.part.Facts, !l.plan.Replace, false)
	for i, at := range l.plan.At {
		f.Columns = append(f.Columns, loaddata.Column{Field: at, Text: l.part.columns[i].Text, Unsigned: l.part.columns[i].Unsigned})
	}
	return f
}
