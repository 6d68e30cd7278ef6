package decide

import (
	"errors"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// decideDynamic decides on a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE in
// SQL. ends: nothing else is in its piece.
func (x naming) decideDynamic(i int, head rewriter.Head) (ends bool, err error) {
	sql := x.st.Text[x.st.Spans[i].Start:x.st.Spans[i].End]
	dyn, err := rewriter.ReadDynamic(sql, x.Mode)
	switch {
	case err != nil && (errors.Is(err, rewriter.ErrRefusedByServer) || x.rules.Empty()):
		if head.Kind == rewriter.Prepare && x.rules.Empty() {
			x.st.Found.unread = append(x.st.Found.unread, unread{text: sql, by: x.rules.List})
		}
		if err != nil && !x.rules.Empty() {
			x.st.Found.unedited(CauseInvalid)
		}
		x.st.Owing = x.now.Owes
		x.follow(i, head)
		return false, nil
	case i > 0:
		return false, errCut
	case err != nil:
		return false, x.unreadDynamic(head, dyn)
	}
	x.st.Dynamic = dyn
	switch dyn.Verb {
	case rewriter.VerbPrepare:
		err := x.decideInner(sql)
		x.st.Order = &NamePreparation{Dyn: dyn, E: x.st.Prepared, source: x.st.Source, mode: x.Mode, by: x.rules.List}
		return true, err
	case rewriter.VerbImmediate:
		return true, x.decideImmediate(i, head)
	case rewriter.VerbExecute:
		return true, x.decideExecute(i, head)
	case rewriter.VerbDeallocate:
		x.st.Order = &deallocation{sqlText: sqlText{&x.st.Filled}, name: dyn.Name}
	}
	return true, nil
}

// unreadDynamic answers for a PREPARE or the like, the first of its piece, of which dyn is what
// could be read. It goes as it is, but where it may write to a table with a rule: by what it names,
// or as the execution of a statement that gets ids.
func (x naming) unreadDynamic(head rewriter.Head, dyn *rewriter.Dynamic) error {
	if head.Kind != rewriter.Deallocate {
		for name, e := range x.now.Statements.ByName {
			if (dyn.Name == name || dyn.Name == "") && FillerOf(e) != nil {
				return clienterr.Undecided(errors.New("the arguments of a statement that gets ids could not be read"))
			}
		}
		if err := x.unread(x.st.Text[x.st.Spans[0].Start:x.st.Spans[0].End]); err != nil {
			return err
		}
		x.st.Found.unread = append(x.st.Found.unread, unread{name: dyn.Name})
	}
	x.st.Owing = x.now.Owes
	x.follow(0, head)
	return nil
}

// decideInner decides on the text of a statement that another one brings, and sets st.Prepared.
func (x naming) decideInner(sql []byte) error {
	dyn := x.st.Dynamic
	// 1. What the text is. It may stay unknown.
	inner, mode, err := x.innerText(sql)
	if err != nil || x.st.Prepared != nil {
		return err
	}
	// 2. It is decided on as a statement to prepare.
	in := *x.reading
	in.Mode = mode
	head, more := rewriter.ReadHead(inner.Text, mode)
	if cut := more && len(head.Target.Table) == 0; !cut {
		if err := (naming{&in}).inside(inner, head); err != nil {
			return err
		}
	} else if protocol.Inserts(head) || head.Kind == rewriter.Load {
		x.st.Found.unedited(CauseInvalid)
	}
	// 3. What its executions may change is noted.
	x.noteEffects(head, inner.Text)
	// 4. What it is prepared anew from is kept.
	if protocol.Inserts(head) && dyn.Verb == rewriter.VerbPrepare {
		x.st.Prepared.Aims(head, inner.Text, &x.now.Vars, x.rules.List)
		x.st.Prepared.Own.Asked = dyn.From == rewriter.SourceAsked
	}
	// 5. Not every INSERT can get ids by name.
	f := FillerOf(x.st.Prepared)
	switch {
	case f == nil:
	case mode.MariaDB && rewriter.NamesParameters(inner.Text, mode):
		return clienterr.Unsupported(f.rules[0], f.name, "SQL PREPARE of a text with named parameters")
	case dyn.Verb == rewriter.VerbPrepare && dyn.Name == "":
		return clienterr.Unsupported(f.rules[0], f.name, "SQL PREPARE under a name beyond ASCII")
	}
	return nil
}

// innerText returns the text that a PREPARE or EXECUTE IMMEDIATE brings, and the mode that it is
// read in. Where it stays unknown it sets st.Prepared to what any statement may be.
func (x naming) innerText(sql []byte) (inner InnerText, mode rewriter.Mode, err error) {
	dyn, source := x.st.Dynamic, x.st.Source
	mode = x.Mode
	mode.MultiStatements = false
	const all = protocol.TouchAll | protocol.TouchLastID
	switch {
	case dyn.From == rewriter.SourceLiteral:
		return InnerText{Text: dyn.Literal, Wide: !mode.MariaDB && mode.Charset.Hides() && beyondASCII(dyn.Literal)}, mode, nil
	case x.rules.Empty():
		x.st.Prepared = &protocol.Stmt{Touch: all, Reads: true, Unread: true}
	case dyn.From == rewriter.SourceOther, source != nil && source.Unknown:
		x.st.Found.unedited(CauseUnseen)
		x.st.Prepared = &protocol.Stmt{Touch: all, Reads: true, Unseen: true}
	case source == nil:
		err = x.needSource(sql)
	case len(source.Text) > SmallText && x.now.Known&protocol.KnowNumbers == 0:
		err = NeedProbe{}
	default:
		inner = *source
	}
	return inner, mode, err
}

// needSource asks for the text that an expression gives a PREPARE.
func (x naming) needSource(sql []byte) error {
	const settings = protocol.KnowMode | protocol.KnowCharset
	from := x.st.Dynamic.Source
	switch {
	case x.now.Known&settings != settings:
		return NeedProbe{}
	case x.now.Busy: // with what may set a variable
		return NeedQuiet{}
	}
	return NeedSource{SQL: string(sql[from.Start:from.End])}
}

// noteEffects notes what executions of a statement prepared in SQL may change.
func (x naming) noteEffects(head rewriter.Head, text []byte) {
	e := protocol.NewStmt(head, text, true)
	if e == nil {
		e = &protocol.Stmt{}
	}
	e.Unseen, x.st.Unseen = e.Unseen || x.st.Unseen, false
	if key := x.makes(head, text); key != "" {
		e.Makes, e.Touch = key, protocol.TouchTables
	}
	x.st.Prepared = with(x.st.Prepared, e)
}

// inside decides on a statement whose text another one brings.
func (x naming) inside(inner InnerText, head rewriter.Head) error {
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return x.hidden(head, inner.Text)
	case rewriter.DDL:
		return x.creates(head, inner.Text)
	case rewriter.Portion:
		return x.splits(head, inner.Text)
	default:
		return nil
	}
	x.prepares, x.inner = true, inner.Text
	_, err := x.decideInsert(0, head)
	if err == nil && inner.Wide && x.st.Prepared != nil && FillerOf(x.st.Prepared) != nil {
		return clienterr.Unsupported(FillerOf(x.st.Prepared).rules[0], FillerOf(x.st.Prepared).name, "SQL PREPARE of a text with such characters in this character set")
	}
	return err
}

// decideImmediate decides on EXECUTE IMMEDIATE.
func (x naming) decideImmediate(i int, head rewriter.Head) error {
	if err := x.decideInner(x.st.Text[x.st.Spans[i].Start:x.st.Spans[i].End]); err != nil {
		return err
	}
	if FillerOf(x.st.Prepared) != nil {
		return x.fillNamed(i)
	}
	x.unfilledName(i, head)
	x.st.Prepared = nil
	return nil
}

// decideExecute decides on EXECUTE.
func (x naming) decideExecute(i int, head rewriter.Head) error {
	e := x.now.Statements.ByName[x.st.Dynamic.Name]
	switch {
	case x.st.Dynamic.Name == "" || e == nil: // a routine may have prepared it
		if !x.rules.Empty() && x.now.Statements.Passed.MayInsert(x.rules.List) {
			return clienterr.ReadLate()
		}
		x.st.Owing = x.now.Owes
		x.follow(i, head)
		return nil
	case e.Failed.Raised(): // the server says so itself
		return nil
	case e.Unread && !x.rules.Empty():
		return clienterr.ReadLate()
	}
	x.st.Prepared = e
	if f := FillerOf(e); f != nil && len(x.st.Dynamic.Arguments) != f.Plan.Client {
		return x.miscounted(f)
	}
	ex := executing{x.reading, e}
	if err := ex.allowed(); err != nil {
		return err
	}
	if FillerOf(e) != nil {
		return x.fillNamed(i)
	}
	if x.now.Busy && x.now.Owes {
		return NeedQuiet{}
	}
	x.unfilledName(i, head)
	x.st.Prepared = nil
	return nil
}

// miscounted decides on an execution with another number of arguments than the statement has
// parameters. The server says so before it looks at the table, if it does not take them
// for those of ids.
func (x naming) miscounted(f *filler) error {
	if x.st.Dynamic.Verb == rewriter.VerbExecute && len(x.st.Dynamic.Arguments) == len(f.Plan.Parameters) {
		x.st.Order = &shortExecution{dyn: x.st.Dynamic}
	}
	x.st.Prepared = nil
	return nil
}

// fillNamed decides on the execution of a statement that gets ids.
func (x naming) fillNamed(i int) error {
	e := x.st.Prepared
	f := FillerOf(e)
	if len(x.st.Dynamic.Arguments) != f.Plan.Client {
		return x.miscounted(f)
	}
	sql := x.st.Text[x.st.Spans[i].Start:x.st.Spans[i].End]
	p, plan := x.st.Filled.room()
	p.head, p.Name, p.span, p.Text = f.head, f.name, x.st.Spans[i], sql
	p.Rules, p.columns = append(p.Rules, f.rules...), append(p.columns, f.columns...)
	ex := executing{x.reading, e}
	if err := ex.asPrepared(); err != nil {
		return err
	}
	p.Facts = x.st.Facts
	if err := x.boundArguments(p); err != nil {
		return err
	}
	f.Plan.Bind(plan, x.st.Execution.values, 1, p.columns)
	reads := f.Plan.Reads || rewriter.MentionsLastID(sql)
	if err := ex.addBound(p, plan, reads); err != nil {
		return err
	}
	if plan.NoLastID {
		x.st.Owing = x.now.Owes && (reads || e.Reads)
	}
	x.st.Order = &nameExecution{
		filled: &x.st.Filled, values: x.st.Execution.values,
		prepared: NamePreparation{Dyn: x.st.Dynamic, E: e, source: x.st.Source, mode: x.Mode},
	}
	return nil
}

// maxBound bounds the ids of one execution that the server is asked for.
const maxBound = wire.MaxColumns / 2

// boundArguments finds out what the ids among the arguments are worth.
func (x naming) boundArguments(p *Part) error {
	f, args, sql := FillerOf(x.st.Prepared), x.st.Dynamic.Arguments, p.Text
	x.st.Execution.values = x.st.Execution.values[:0]
	if len(f.bound) == 0 {
		return nil
	}
	var n NeedValues
	for _, b := range f.bound {
		if !args[b.param].Default {
			strict, ask := refusesText(&x.now.Vars, p.Facts, f.Plan.Ignore, b.later)
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
	case x.now.Known&(protocol.KnowZero|protocol.KnowStrict) != protocol.KnowZero|protocol.KnowStrict:
		return NeedProbe{}
	case len(n.SQL) > len(x.st.Bound) && x.now.Busy: // with what may set a variable
		return NeedQuiet{}
	case len(n.SQL) > len(x.st.Bound):
		return n
	}
	next := 0
	for _, b := range f.bound {
		v := rewriter.Value{Generate: f.wide(b.column) || !x.now.Mode.NoAutoValueOnZero, Known: true} // DEFAULT stores 0, which generates or not
		if !args[b.param].Default {
			v = x.st.Bound[next]
			next++
		}
		x.st.Execution.values = append(x.st.Execution.values, v)
	}
	return nil
}
