package proxy

import (
	"bytes"
	"errors"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// dynamic decides on a PREPARE, EXECUTE, EXECUTE IMMEDIATE or DEALLOCATE PREPARE in
// SQL. ends: nothing else is in its piece.
func (d *decider) dynamic(st *statement, i int, head rewriter.Head, cx *reading) (ends bool, err error) {
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	dyn, err := rewriter.ReadDynamic(sql, cx.mode)
	switch {
	case err != nil && (errors.Is(err, rewriter.ErrRefusedByServer) || cx.rules.Empty()):
		if head.Kind == rewriter.Prepare && cx.rules.Empty() {
			cx.found.unread = append(cx.found.unread, unread{text: sql, by: cx.rules.List})
		}
		st.owing = cx.owes
		d.follow(st, i, head, cx)
		return false, nil
	case i > 0:
		return false, errCut
	case err != nil:
		return false, d.unreadDynamic(st, head, dyn, cx)
	}
	st.dynamic = dyn
	switch dyn.Verb {
	case rewriter.VerbPrepare:
		err := d.text(st, sql, cx)
		st.order = &namePreparation{dyn: dyn, e: st.prepared, source: st.source, mode: cx.mode}
		return true, err
	case rewriter.VerbImmediate:
		return true, d.immediate(st, i, head, cx)
	case rewriter.VerbExecute:
		return true, d.name(st, i, head, cx)
	case rewriter.VerbDeallocate:
		st.order = &deallocation{sqlText: sqlText{&st.filled}, name: dyn.Name}
	}
	return true, nil
}

// unreadDynamic answers for a PREPARE or the like, the first of its piece, of which dyn
// is what could be read. It goes as it is, but where it may write to a table with a rule: by what it
// names, or as the execution of a statement that gets ids.
func (d *decider) unreadDynamic(st *statement, head rewriter.Head, dyn *rewriter.Dynamic, cx *reading) error {
	if head.Kind != rewriter.Deallocate {
		for name, e := range d.c.Prepared.ByName {
			if (dyn.Name == name || dyn.Name == "") && fillerOf(e) != nil {
				return clienterr.Undecided(errors.New("the arguments of a statement that gets ids could not be read"))
			}
		}
		if err := d.unread(st.text[st.spans[0].Start:st.spans[0].End], cx); err != nil {
			return err
		}
		cx.found.unread = append(cx.found.unread, unread{name: dyn.Name})
	}
	st.owing = cx.owes
	d.follow(st, 0, head, cx)
	return nil
}

// innerText is the text of a statement that another one brings.
type innerText struct {
	text    []byte // in the client's character set, or in UTF-8 when it is wide and the server was asked for it
	wide    bool   // it has characters that cannot be written into a literal of the session with certainty
	unknown bool   // the server would not tell
}

// text decides on the text of a statement, and sets st.prepared.
func (d *decider) text(st *statement, sql []byte, cx *reading) error {
	dyn := st.dynamic
	in := *cx
	in.mode.MultiStatements = false
	inner := innerText{text: dyn.Literal, wide: !in.mode.MariaDB && in.mode.Charset.Hides() && beyondASCII(dyn.Literal)}
	switch {
	case dyn.From == rewriter.SourceLiteral:
	case cx.rules.Empty():
		st.prepared = &relay.Prepared{Touch: relay.TouchAll | relay.TouchLastID, Reads: true, Unread: true}
		return nil
	case dyn.From == rewriter.SourceOther, st.source != nil && st.source.unknown:
		st.prepared = &relay.Prepared{Touch: relay.TouchAll | relay.TouchLastID, Reads: true, Unseen: true}
		return nil
	case st.source != nil:
		if len(st.source.text) > smallText && cx.snap.Known&relay.KnowNumbers == 0 {
			return lacks(needProbe)
		}
		if inner = *st.source; inner.wide {
			in.mode.Charset = rewriter.SingleByte
		}
	case cx.snap.Known&(relay.KnowMode|relay.KnowCharset) != relay.KnowMode|relay.KnowCharset:
		return lacks(needProbe)
	case cx.busy: // with what may set a variable
		return lacks(needQuiet)
	default:
		return errIncomplete{need{kind: needSource, values: []string{string(sql[dyn.Source.Start:dyn.Source.End])}}}
	}
	head, more := rewriter.ReadHead(inner.text, in.mode)
	if cut := more && len(head.Target.Table) == 0; !cut { // else the server refuses it
		if err := d.inside(st, inner, head, &in); err != nil {
			return err
		}
	}
	e := relay.NewPrepared(head, inner.text, true)
	if e == nil {
		e = &relay.Prepared{}
	}
	e.Unseen, st.unseen = e.Unseen || st.unseen, false
	if key := d.makes(head, inner.text, cx); key != "" {
		e.Makes, e.Touch = key, relay.TouchTables
	}
	st.prepared = with(st.prepared, e)
	if relay.Inserts(head) && dyn.Verb == rewriter.VerbPrepare {
		st.prepared.Aims(head, inner.text, &cx.snap, cx.rules.List)
		st.prepared.Own.Asked = dyn.From == rewriter.SourceAsked
		if inner.wide && dyn.From != rewriter.SourceLiteral { // it is not in the client's character set
			st.prepared.Own = nil
		}
	}
	if fillerOf(st.prepared) == nil {
		return nil
	}
	switch {
	case in.mode.MariaDB && rewriter.NamesParameters(inner.text, in.mode):
		return clienterr.Unsupported(fillerOf(st.prepared).rules[0], fillerOf(st.prepared).name, "SQL PREPARE of a text with named parameters")
	case dyn.Verb == rewriter.VerbPrepare && dyn.Name == "":
		return clienterr.Unsupported(fillerOf(st.prepared).rules[0], fillerOf(st.prepared).name, "SQL PREPARE under a name beyond ASCII")
	}
	return nil
}

// makes returns the key of the temporary table that a statement makes, when that
// is certain.
func (d *decider) makes(head rewriter.Head, text []byte, cx *reading) string {
	if !head.Temporary || !head.Create || len(head.Target.Table) == 0 || bytes.IndexByte(text, '!') >= 0 ||
		!cx.known && len(head.Target.Schema) == 0 || d.tables.Fold() == facts.FoldUnknown {
		return ""
	}
	name, ok, err := d.named(head.Target, cx)
	if !ok || err != nil {
		return ""
	}
	return string(d.tables.AppendKey(nil, name.Schema, name.Table))
}

// inside decides on a statement whose text another one brings.
func (d *decider) inside(st *statement, inner innerText, head rewriter.Head, cx *reading) error {
	switch head.Kind {
	case rewriter.Insert, rewriter.Replace, rewriter.Load:
	case rewriter.Compound, rewriter.Prepare, rewriter.Execute:
		return d.hidden(st, head, inner.text, cx)
	case rewriter.DDL:
		return d.creates(st, head, inner.text, cx)
	default:
		return nil
	}
	cx.prepares, cx.inner = true, inner.text
	_, err := d.insert(st, 0, head, cx)
	if err == nil && inner.wide && st.prepared != nil && fillerOf(st.prepared) != nil {
		return clienterr.Unsupported(fillerOf(st.prepared).rules[0], fillerOf(st.prepared).name, "SQL PREPARE of a text with such characters in this character set")
	}
	return err
}

func beyondASCII(text []byte) bool { return rewriter.DoubtsOf(text)&rewriter.DoubtCharset != 0 }

// immediate decides on EXECUTE IMMEDIATE.
func (d *decider) immediate(st *statement, i int, head rewriter.Head, cx *reading) error {
	if err := d.text(st, st.text[st.spans[i].Start:st.spans[i].End], cx); err != nil {
		return err
	}
	if fillerOf(st.prepared) != nil {
		return d.fillsNamed(st, i, cx)
	}
	d.unfilledName(st, i, head, cx)
	st.prepared = nil
	return nil
}

// unfilledName notes what an execution that goes as it is may change.
func (d *decider) unfilledName(st *statement, i int, head rewriter.Head, cx *reading) {
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	st.touch |= st.prepared.Touch
	st.unseen = st.unseen || st.prepared.Unseen
	if st.prepared.Makes != "" {
		st.changes().Temps = append(st.changes().Temps, relay.Temp{Name: st.prepared.Makes})
	}
	if head.Effects(sql)&rewriter.SetsLastID != 0 { // among the arguments
		st.touch |= relay.TouchLastID
	}
	st.owing = cx.owes && (st.prepared.Reads || rewriter.MentionsLastID(sql))
}

// name decides on EXECUTE.
func (d *decider) name(st *statement, i int, head rewriter.Head, cx *reading) error {
	e := d.c.Prepared.ByName[st.dynamic.Name]
	switch {
	case st.dynamic.Name == "" || e == nil: // a routine may have prepared it
		if !cx.rules.Empty() && d.c.Prepared.Passed.MayInsert(cx.rules.List) {
			return clienterr.ReadLate()
		}
		st.owing = cx.owes
		d.follow(st, i, head, cx)
		return nil
	case d.hasFailed(e): // the server says so itself
		return nil
	case e.Unread && !cx.rules.Empty():
		return clienterr.ReadLate()
	}
	st.prepared = e
	if f := fillerOf(e); f != nil && len(st.dynamic.Arguments) != f.plan.Client {
		return d.miscounted(st, f)
	}
	if err := d.allowed(st, e, cx); err != nil {
		return err
	}
	if fillerOf(e) != nil {
		return d.fillsNamed(st, i, cx)
	}
	if cx.busy && cx.owes {
		return lacks(needQuiet)
	}
	d.unfilledName(st, i, head, cx)
	st.prepared = nil
	return nil
}

func (d *decider) hasFailed(e *relay.Prepared) bool {
	d.c.Mu.Lock()
	defer d.c.Mu.Unlock()
	return e.Failed
}

// miscounted decides on an execution with another number of arguments than the statement has
// parameters. The server says so before it looks at the table, if it does not take them
// for those of ids.
func (d *decider) miscounted(st *statement, f *filler) error {
	if st.dynamic.Verb == rewriter.VerbExecute && len(st.dynamic.Arguments) == len(f.plan.Parameters) {
		st.order = &shortExecution{dyn: st.dynamic}
	}
	st.prepared = nil
	return nil
}

// fillsNamed decides on the execution of a statement that gets ids.
func (d *decider) fillsNamed(st *statement, i int, cx *reading) error {
	e := st.prepared
	f := fillerOf(e)
	if len(st.dynamic.Arguments) != f.plan.Client {
		return d.miscounted(st, f)
	}
	sql := st.text[st.spans[i].Start:st.spans[i].End]
	if err := d.boundArguments(st, sql, cx); err != nil {
		return err
	}
	p, plan := st.filled.room()
	p.head, p.name, p.span, p.text = f.head, f.name, st.spans[i], sql
	p.rules, p.columns = append(p.rules, f.rules...), append(p.columns, f.columns...)
	if err := d.asPrepared(st, e, cx); err != nil {
		return err
	}
	p.facts = st.facts
	f.plan.Bind(plan, st.execution.values, 1, p.columns)
	reads := f.plan.Reads || rewriter.MentionsLastID(sql)
	if err := d.bound(st, p, plan, e, reads, cx); err != nil {
		return err
	}
	if plan.NoLastID {
		st.owing = cx.owes && (reads || e.Reads)
	}
	st.order = &nameExecution{
		filled: &st.filled, values: st.execution.values,
		prepared: namePreparation{dyn: st.dynamic, e: e, source: st.source, mode: cx.mode},
	}
	return nil
}

// maxBound bounds the ids of one execution that the server is asked for.
const maxBound = wire.MaxColumns / 2

// boundArguments finds out what the ids among the arguments are worth.
func (d *decider) boundArguments(st *statement, sql []byte, cx *reading) error {
	f, args := fillerOf(st.prepared), st.dynamic.Arguments
	st.execution.values = st.execution.values[:0]
	if len(f.bound) == 0 {
		return nil
	}
	n := need{kind: needValues, bound: true, ignore: f.plan.Ignore}
	for _, b := range f.bound {
		if !args[b.param].Default {
			n.values = append(n.values, string(sql[args[b.param].Start:args[b.param].End]))
			n.columns = append(n.columns, f.columns[b.column])
			n.wide = append(n.wide, f.wide(b.column))
		}
	}
	for _, a := range args {
		if a.From == rewriter.SourceOther && len(n.values) > 0 { // it may change them
			return clienterr.Unsupported(f.rules[0], f.name, "EXECUTE with a bound id and an expression that may have another value the next time")
		}
	}
	switch {
	case len(n.values) > maxBound:
		return clienterr.Unsupported(f.rules[0], f.name, "EXECUTE with so many bound ids")
	case cx.snap.Known&(relay.KnowZero|relay.KnowStrict) != relay.KnowZero|relay.KnowStrict:
		return lacks(needProbe)
	case len(n.values) > len(st.bound) && cx.busy: // with what may set a variable
		return lacks(needQuiet)
	case len(n.values) > len(st.bound):
		return errIncomplete{n}
	}
	next := 0
	for _, b := range f.bound {
		v := rewriter.Value{Generate: f.wide(b.column) || !cx.snap.Mode.NoAutoValueOnZero, Known: true} // DEFAULT stores 0, which generates or not
		if !args[b.param].Default {
			v = st.bound[next]
			next++
		}
		st.execution.values = append(st.execution.values, v)
	}
	return nil
}
