package decide

import (
	"errors"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// dynamic decides on a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE in
// SQL. ends: nothing else is in its piece.
func (d *Decider) dynamic(st *Statement, i int, head rewriter.Head, cx *reading) (ends bool, err error) {
	sql := st.Text[st.Spans[i].Start:st.Spans[i].End]
	dyn, err := rewriter.ReadDynamic(sql, cx.Mode)
	switch {
	case err != nil && (errors.Is(err, rewriter.ErrRefusedByServer) || cx.rules.Empty()):
		if head.Kind == rewriter.Prepare && cx.rules.Empty() {
			cx.found.unread = append(cx.found.unread, unread{text: sql, by: cx.rules.List})
		}
		if err != nil && !cx.rules.Empty() {
			cx.found.unedited(CauseInvalid)
		}
		st.Owing = cx.now.Owes
		cx.follow(st, i, head)
		return false, nil
	case i > 0:
		return false, errCut
	case err != nil:
		return false, d.unreadDynamic(st, head, dyn, cx)
	}
	st.Dynamic = dyn
	switch dyn.Verb {
	case rewriter.VerbPrepare:
		err := d.text(st, sql, cx)
		st.Order = &NamePreparation{Dyn: dyn, E: st.Prepared, source: st.Source, mode: cx.Mode, by: cx.rules.List}
		return true, err
	case rewriter.VerbImmediate:
		return true, d.immediate(st, i, head, cx)
	case rewriter.VerbExecute:
		return true, d.name(st, i, head, cx)
	case rewriter.VerbDeallocate:
		st.Order = &deallocation{sqlText: sqlText{&st.Filled}, name: dyn.Name}
	}
	return true, nil
}

// unreadDynamic answers for a PREPARE or the like, the first of its piece, of which dyn
// is what could be read. It goes as it is, but where it may write to a table with a rule: by what it
// names, or as the execution of a statement that gets ids.
func (d *Decider) unreadDynamic(st *Statement, head rewriter.Head, dyn *rewriter.Dynamic, cx *reading) error {
	if head.Kind != rewriter.Deallocate {
		for name, e := range cx.now.Statements.ByName {
			if (dyn.Name == name || dyn.Name == "") && FillerOf(e) != nil {
				return clienterr.Undecided(errors.New("the arguments of a statement that gets ids could not be read"))
			}
		}
		if err := cx.unread(st.Text[st.Spans[0].Start:st.Spans[0].End]); err != nil {
			return err
		}
		cx.found.unread = append(cx.found.unread, unread{name: dyn.Name})
	}
	st.Owing = cx.now.Owes
	cx.follow(st, 0, head)
	return nil
}

// text decides on the text of a statement, and sets st.prepared.
func (d *Decider) text(st *Statement, sql []byte, cx *reading) error {
	dyn := st.Dynamic
	in := *cx
	in.Mode.MultiStatements = false
	inner := InnerText{Text: dyn.Literal, Wide: !in.Mode.MariaDB && in.Mode.Charset.Hides() && beyondASCII(dyn.Literal)}
	switch {
	case dyn.From == rewriter.SourceLiteral:
	case cx.rules.Empty():
		st.Prepared = &relay.Prepared{Touch: relay.TouchAll | relay.TouchLastID, Reads: true, Unread: true}
		return nil
	case dyn.From == rewriter.SourceOther, st.Source != nil && st.Source.Unknown:
		cx.found.unedited(CauseUnseen)
		st.Prepared = &relay.Prepared{Touch: relay.TouchAll | relay.TouchLastID, Reads: true, Unseen: true}
		return nil
	case st.Source != nil:
		if len(st.Source.Text) > SmallText && cx.now.Known&relay.KnowNumbers == 0 {
			return NeedProbe{}
		}
		if inner = *st.Source; inner.Wide {
			in.Mode.Charset = rewriter.SingleByte
		}
	case cx.now.Known&(relay.KnowMode|relay.KnowCharset) != relay.KnowMode|relay.KnowCharset:
		return NeedProbe{}
	case cx.now.Busy: // with what may set a variable
		return NeedQuiet{}
	default:
		return NeedSource{SQL: string(sql[dyn.Source.Start:dyn.Source.End])}
	}
	head, more := rewriter.ReadHead(inner.Text, in.Mode)
	if cut := more && len(head.Target.Table) == 0; !cut {
		if err := d.inside(st, inner, head, &in); err != nil {
			return err
		}
	} else if relay.Inserts(head) || head.Kind == rewriter.Load {
		cx.found.unedited(CauseInvalid)
	}
	e := relay.NewPrepared(head, inner.Text, true)
	if e == nil {
		e = &relay.Prepared{}
	}
	e.Unseen, st.Unseen = e.Unseen || st.Unseen, false
	if key := d.makes(head, inner.Text, cx); key != "" {
		e.Makes, e.Touch = key, relay.TouchTables
	}
	st.Prepared = with(st.Prepared, e)
	if relay.Inserts(head) && dyn.Verb == rewriter.VerbPrepare {
		st.Prepared.Aims(head, inner.Text, &cx.now.State, cx.rules.List)
		st.Prepared.Own.Asked = dyn.From == rewriter.SourceAsked
		if inner.Wide && dyn.From != rewriter.SourceLiteral { // it is not in the client's character set
			st.Prepared.Own = nil
		}
	}
	if FillerOf(st.Prepared) == nil {
		return nil
	}
	switch {
	case in.Mode.MariaDB && rewriter.NamesParameters(inner.Text, in.Mode):
		return clienterr.Unsupported(FillerOf(st.Prepared).rules[0], FillerOf(st.Prepared).name, "SQL PREPARE of a text with named parameters")
	case dyn.Verb == rewriter.VerbPrepare && dyn.Name == "":
		return clienterr.Unsupported(FillerOf(st.Prepared).rules[0], FillerOf(st.Prepared).name, "SQL PREPARE under a name beyond ASCII")
	}
	return nil
}

// inside decides on a statement whose text another one brings.
func (d *Decider) inside(st *Statement, inner InnerText, head rewriter.Head, cx *reading) error {
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return d.hidden(st, head, inner.Text, cx)
	case rewriter.DDL:
		return d.creates(st, head, inner.Text, cx)
	default:
		return nil
	}
	cx.prepares, cx.inner = true, inner.Text
	_, err := d.insert(st, 0, head, cx)
	if err == nil && inner.Wide && st.Prepared != nil && FillerOf(st.Prepared) != nil {
		return clienterr.Unsupported(FillerOf(st.Prepared).rules[0], FillerOf(st.Prepared).name, "SQL PREPARE of a text with such characters in this character set")
	}
	return err
}

// immediate decides on EXECUTE IMMEDIATE.
func (d *Decider) immediate(st *Statement, i int, head rewriter.Head, cx *reading) error {
	if err := d.text(st, st.Text[st.Spans[i].Start:st.Spans[i].End], cx); err != nil {
		return err
	}
	if FillerOf(st.Prepared) != nil {
		return d.fillsNamed(st, i, cx)
	}
	cx.unfilledName(st, i, head)
	st.Prepared = nil
	return nil
}

// name decides on EXECUTE.
func (d *Decider) name(st *Statement, i int, head rewriter.Head, cx *reading) error {
	e := cx.now.Statements.ByName[st.Dynamic.Name]
	switch {
	case st.Dynamic.Name == "" || e == nil: // a routine may have prepared it
		if !cx.rules.Empty() && cx.now.Statements.Passed.MayInsert(cx.rules.List) {
			return clienterr.ReadLate()
		}
		st.Owing = cx.now.Owes
		cx.follow(st, i, head)
		return nil
	case e.Failed.Raised(): // the server says so itself
		return nil
	case e.Unread && !cx.rules.Empty():
		return clienterr.ReadLate()
	}
	st.Prepared = e
	if f := FillerOf(e); f != nil && len(st.Dynamic.Arguments) != f.Plan.Client {
		return miscounted(st, f)
	}
	if err := d.allowed(st, e, cx); err != nil {
		return err
	}
	if FillerOf(e) != nil {
		return d.fillsNamed(st, i, cx)
	}
	if cx.now.Busy && cx.now.Owes {
		return NeedQuiet{}
	}
	cx.unfilledName(st, i, head)
	st.Prepared = nil
	return nil
}

// miscounted decides on an execution with another number of arguments than the statement has
// parameters. The server says so before it looks at the table, if it does not take them
// for those of ids.
func miscounted(st *Statement, f *filler) error {
	if st.Dynamic.Verb == rewriter.VerbExecute && len(st.Dynamic.Arguments) == len(f.Plan.Parameters) {
		st.Order = &shortExecution{dyn: st.Dynamic}
	}
	st.Prepared = nil
	return nil
}

// fillsNamed decides on the execution of a statement that gets ids.
func (d *Decider) fillsNamed(st *Statement, i int, cx *reading) error {
	e := st.Prepared
	f := FillerOf(e)
	if len(st.Dynamic.Arguments) != f.Plan.Client {
		return miscounted(st, f)
	}
	sql := st.Text[st.Spans[i].Start:st.Spans[i].End]
	p, plan := st.Filled.room()
	p.head, p.Name, p.span, p.Text = f.head, f.name, st.Spans[i], sql
	p.Rules, p.columns = append(p.Rules, f.rules...), append(p.columns, f.columns...)
	if err := d.asPrepared(st, e, cx); err != nil {
		return err
	}
	p.Facts = st.Facts
	if err := cx.boundArguments(st, p); err != nil {
		return err
	}
	f.Plan.Bind(plan, st.Execution.values, 1, p.columns)
	reads := f.Plan.Reads || rewriter.MentionsLastID(sql)
	if err := d.bound(st, p, plan, e, reads, cx); err != nil {
		return err
	}
	if plan.NoLastID {
		st.Owing = cx.now.Owes && (reads || e.Reads)
	}
	st.Order = &nameExecution{
		filled: &st.Filled, values: st.Execution.values,
		prepared: NamePreparation{Dyn: st.Dynamic, E: e, source: st.Source, mode: cx.Mode},
	}
	return nil
}

// maxBound bounds the ids of one execution that the server is asked for.
const maxBound = wire.MaxColumns / 2

// boundArguments finds out what the ids among the arguments are worth.
func (cx *reading) boundArguments(st *Statement, p *Part) error {
	f, args, sql := FillerOf(st.Prepared), st.Dynamic.Arguments, p.Text
	st.Execution.values = st.Execution.values[:0]
	if len(f.bound) == 0 {
		return nil
	}
	var n NeedValues
	for _, b := range f.bound {
		if !args[b.param].Default {
			strict, ask := refusesText(&cx.now.State, p.Facts, f.Plan.Ignore, b.later)
			if ask {
				return p.lacksEngine()
			}
			n.Strict = append(n.Strict, strict)
			n.SQL = append(n.SQL, string(sql[args[b.param].Start:args[b.param].End]))
			n.Columns = append(n.Columns, f.columns[b.column])
			n.Wide = append(n.Wide, f.wide(b.column))
		}
	}
	for _, a := range args {
		if a.From == rewriter.SourceOther && len(n.SQL) > 0 { // it may change them
			return clienterr.Unsupported(f.rules[0], f.name, "EXECUTE with a bound id and an expression that may have another value the next time")
		}
	}
	switch {
	case len(n.SQL) > maxBound:
		return clienterr.Unsupported(f.rules[0], f.name, "EXECUTE with so many bound ids")
	case cx.now.Known&(relay.KnowZero|relay.KnowStrict) != relay.KnowZero|relay.KnowStrict:
		return NeedProbe{}
	case len(n.SQL) > len(st.Bound) && cx.now.Busy: // with what may set a variable
		return NeedQuiet{}
	case len(n.SQL) > len(st.Bound):
		return n
	}
	next := 0
	for _, b := range f.bound {
		v := rewriter.Value{Generate: f.wide(b.column) || !cx.now.Mode.NoAutoValueOnZero, Known: true} // DEFAULT stores 0, which generates or not
		if !args[b.param].Default {
			v = st.Bound[next]
			next++
		}
		st.Execution.values = append(st.Execution.values, v)
	}
	return nil
}
