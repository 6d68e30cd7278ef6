package decide

import (
	"errors"

	"idproxy/proxy/infile"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// load decides on a LOAD DATA or LOAD XML into a table with a rule.
func (d *Decider) load(st *Statement, p *Part, cx *reading) (insertion, error) {
	if cx.prepares {
		return asItIs, cx.unfilled(p, "LOAD DATA in a prepared statement")
	}
	if cx.observed(st, p) {
		return asItIs, nil
	}
	const settings = relay.KnowMode | relay.KnowNumbers
	switch {
	case len(st.Spans) > 1:
		return asItIs, errCut
	case cx.now.Busy:
		return asItIs, NeedQuiet{}
	}
	l := &Loading{part: *p, stride: cx.now.Increment}
	st.speller = d.speller(cx)
	err := l.plan.Read(&rewriter.Statement{Text: p.Text, Mode: cx.Mode, Rules: p.Rules, Table: p.Facts.Table, Speller: &st.speller})
	form, unsupported := errors.AsType[*rewriter.Unsupported](err)
	_, lacking := errors.AsType[Need](err)
	switch {
	case lacking:
		return asItIs, err
	case unsupported:
		return asItIs, cx.unfilled(p, form.Form)
	case errors.Is(err, rewriter.ErrNeedTable):
		return asItIs, &UnknownColumns{p.Rules[0]}
	case err != nil: // ErrRefusedByServer
		cx.found.unedited(CauseInvalid)
		return asItIs, nil
	case p.Facts.At.Before(st.Begun): // how many fields a line has must be certain: no server says when it was not
		return asItIs, NeedTable{Table: p.Name, Key: string(st.Key)}
	case cx.now.Known&settings != settings:
		return asItIs, NeedProbe{}
	}
	charset := l.plan.Charset
	if charset == "" {
		if st.FileCharset == "" {
			return asItIs, NeedCharset{}
		}
		charset = st.FileCharset
	}
	if form := loadForm(&l.plan, charset); form != "" {
		return asItIs, cx.unfilled(p, form)
	}
	if _, ask := refusesText(&cx.now.State, p.Facts, !l.plan.Replace, true); ask {
		return asItIs, p.lacksEngine()
	}
	l.Format = cx.format(l, charset)
	for i := range p.Rules {
		if !d.Tables.IsAdmitted(p.admission(i)) {
			return asItIs, NeedMax{Column: p.filling(i)}
		}
	}
	l.part.Rules, l.part.columns = append([]*rule.Rule(nil), p.Rules...), append([]rule.Column(nil), p.columns...)
	if err := cx.begins(st, p); err != nil {
		return asItIs, err
	}
	l.part.Name, l.part.asked = relay.CloneName(p.Name), p.asked
	st.Order, st.Facts = l, nil // errors of rows are the file's
	if p.head.Effects(p.Text)&rewriter.SetsLastID != 0 {
		st.Touch |= relay.TouchLastID
	}
	return alone, nil
}

// loadForm says why a file cannot get ids as it passes; it is empty when it can. charset
// is that of the file.
func loadForm(plan *rewriter.LoadPlan, charset string) string {
	if _, known := infile.CharsetOf(charset); !known {
		return "LOAD DATA of a file in character set " + charset
	}
	f := separated(plan)
	if err := f.Check(); err != nil {
		return "LOAD DATA with " + err.Error()
	}
	return ""
}

// separated is how the statement cuts its file.
func separated(plan *rewriter.LoadPlan) infile.Format {
	f := infile.Format{FieldTerm: plan.FieldTerm, LineStart: plan.LineStart, LineTerm: plan.LineTerm, Enclosed: infile.None, Escape: infile.None}
	if len(plan.Enclosed) > 0 {
		f.Enclosed = int(plan.Enclosed[0])
	}
	if len(plan.Escaped) > 0 {
		f.Escape = int(plan.Escaped[0])
	}
	return f
}

// format is how the server will read the file.
func (cx *reading) format(l *Loading, charset string) infile.Format {
	f := separated(&l.plan)
	f.Skip, f.Fields, f.Bytes = l.plan.Skip, l.plan.Fields, l.plan.Bytes
	f.Charset, _ = infile.CharsetOf(charset)
	f.MariaDB, f.KeepZero = cx.Mode.MariaDB, cx.Mode.NoAutoValueOnZero
	f.Strict, _ = refusesText(&cx.now.State, l.part.Facts, !l.plan.Replace, true)
	f.StrictFirst, _ = refusesText(&cx.now.State, l.part.Facts, !l.plan.Replace, false)
	for i, at := range l.plan.At {
		f.Columns = append(f.Columns, infile.Column{Field: at, Text: l.part.columns[i].Text, Unsigned: l.part.columns[i].Unsigned})
	}
	return f
}
