package decide

import (
	"idproxy/proxy/clienterr"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
)

// executes decides on an execution that was held.
func (d *Decider) executes(st *Statement, cx *reading) error {
	e := st.Prepared
	st.forwarded = forwardedExecution{e: e}
	if st.Order = &st.forwarded; e == nil || e.Failed.Raised() { // to the server too, which says so
		return nil
	}
	if e.Long.Refused != nil {
		return e.Long.Refused
	}
	if err := d.allowed(st, e, cx); err != nil {
		return err
	}
	switch {
	case CountedOf(e) != nil:
		return d.selectsPrepared(st, e, cx)
	case FillerOf(e) == nil && cx.now.Busy && cx.now.Owes:
		return NeedQuiet{}
	case FillerOf(e) == nil:
		st.Owing = cx.now.Owes && e.Reads
		st.Touch, st.forwarded.typed = e.Touch, e.Untyped
		cx.found.executed = e
		cx.found.types, _ = relay.TypesOf(cx.found.types, st.Payload(), cx.now.Caps, cx.now.Params)
		cx.found.typed = len(cx.found.types) > 0
		return nil
	}
	return d.fills(st, e, cx)
}

// readyForLong decides whether long data may go to the server.
func (d *Decider) readyForLong(st *Statement, cx *reading) error {
	e := st.Prepared
	if err := d.allowed(st, e, cx); err != nil || FillerOf(e) == nil {
		return err
	}
	return d.asPrepared(st, e, cx)
}

// allowed returns why a statement cannot be executed any more as it was prepared.
func (d *Decider) allowed(st *Statement, e *relay.Prepared, cx *reading) error {
	if _, ok := e.Kind.(*bare); ok {
		if err := d.isBare(st, e, cx); err != nil {
			return err
		}
	}
	if e.Ruled(cx.rules) {
		return outdated(cx, e)
	}
	switch k := e.Kind.(type) {
	case stale:
		return outdated(cx, e)
	case Refusal:
		if cx.now.Busy { // perhaps with its PREPARE
			return NeedQuiet{}
		}
		return k.MyError
	case shadow:
		return k.allowed(cx, e)
	}
	return nil
}

// allowed returns why the statement does not go into the temporary table any more.
func (key shadow) allowed(cx *reading, e *relay.Prepared) error {
	if cx.now.Busy {
		return NeedQuiet{}
	}
	own, err := cx.owns([]byte(key))
	if err == nil && !own {
		err = outdated(cx, e)
	}
	return err
}

// fills decides on the execution of a statement that gets ids.
func (d *Decider) fills(st *Statement, e *relay.Prepared, cx *reading) error {
	f := FillerOf(e)
	if cx.now.Broken {
		return clienterr.Miscounted(f.rules[0], f.facts.Name)
	}
	if len(st.Text) > SmallText && cx.now.Known&relay.KnowNumbers == 0 {
		return NeedProbe{}
	}
	x := &st.Execution
	x.filled, x.e = &st.Filled, e
	if err := x.read(&st.Command, &cx.now, cx.found); err != nil {
		return err
	}
	if err := x.fits(&cx.now.State); err != nil {
		return err
	}
	p, plan := x.room()
	p.head, p.Name = f.head, f.name
	p.Rules, p.columns = append(p.Rules, f.rules...), append(p.columns, f.columns...)
	if err := d.asPrepared(st, e, cx); err != nil {
		return err
	}
	p.Facts = st.Facts
	if err := x.judge(&cx.now.State, p); err != nil {
		return err
	}
	f.Plan.Bind(plan, x.values, x.rows, p.columns)
	if err := x.genes(plan, &cx.now.State); err != nil {
		return err
	}
	if err := d.bound(st, p, plan, e, f.Plan.Reads, cx); err != nil {
		return err
	}
	if plan.NoLastID { // as one that is prepared as it is
		st.Owing = cx.now.Owes && e.Reads
	}
	st.Order = x
	return nil
}

// bound adds the INSERT that an execution runs to those that get ids. reads: LAST_INSERT_ID() is read.
func (d *Decider) bound(st *Statement, p *Part, plan *rewriter.Plan, e *relay.Prepared, reads bool, cx *reading) error {
	switch {
	case plan.Rows > 1 && cx.now.Known&relay.KnowNumbers == 0:
		return NeedProbe{}
	case reads && cx.now.Busy:
		return NeedQuiet{}
	}
	st.Owing = reads && cx.now.Owes
	st.Touch |= e.Touch
	if err := d.admissible(st, p, plan, cx); err != nil {
		return err
	}
	st.Filled.add()
	return nil
}

// asPrepared sees to it that the table is what it was at the PREPARE, as far as the
// statement's ids depend on it, and so is what generates one.
func (d *Decider) asPrepared(st *Statement, e *relay.Prepared, cx *reading) error {
	f := FillerOf(e)
	if cx.now.Remaking {
		return NeedQuiet{}
	}
	own, err := cx.owns([]byte(f.key))
	switch {
	case err != nil:
		return err
	case own:
		return outdated(cx, e)
	case f.Plan.ZeroDoubt && cx.now.Known&relay.KnowZero == 0:
		return NeedProbe{}
	case f.Plan.Literals && cx.now.Known&relay.KnowStrict == 0:
		return NeedProbe{}
	case f.Plan.ZeroDoubt && f.noZero != cx.now.Mode.NoAutoValueOnZero, f.Plan.Literals && (f.strict != cx.now.Strict || f.strictAll != cx.now.StrictAll):
		return outdated(cx, e)
	}
	st.Facts = f.facts
	asked := func(is *facts.Table) bool { return !f.Plan.ByPosition || !is.At.Before(st.Begun) }
	if d.Tables.Current(f.facts) && asked(f.facts) {
		return nil
	}
	now := d.known(st, []byte(f.key))
	switch {
	case now == nil, !asked(now):
		return NeedTable{Table: f.name, Key: f.key}
	case now.Err != nil:
		return now.Err // as the server itself says it
	case !sameColumns(now, f):
		return outdated(cx, e)
	}
	cx.found.executed, cx.found.facts, st.Facts = e, now, now
	return nil
}

// isBare sees to it that the table of a statement that goes as it is still has
// no column with a rule.
func (d *Decider) isBare(st *Statement, e *relay.Prepared, cx *reading) error {
	b := e.Kind.(*bare)
	if cx.now.Remaking {
		return NeedQuiet{}
	}
	st.Facts = b.facts
	if d.Tables.Current(b.facts) {
		return nil
	}
	if own, err := cx.owns([]byte(b.key)); own || err != nil {
		return err
	}
	now := d.known(st, []byte(b.key))
	switch {
	case now == nil:
		return NeedTable{Table: b.name, Key: b.key}
	case now.Err != nil:
		return nil // the server will say so itself
	case now.View, gained(now.Table, b.rules):
		return outdated(cx, e)
	}
	cx.found.executed, cx.found.facts = e, now
	return nil
}
