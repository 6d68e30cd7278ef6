package decide

import (
	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
)

// decideExecution decides on an execution that was held.
func (x executing) decideExecution() error {
	x.st.forwarded = forwardedExecution{e: x.e}
	if x.st.Order = &x.st.forwarded; x.e == nil || x.e.Failed.Raised() { // to the server too, which says so
		return nil
	}
	if x.e.Long.Refused != nil {
		return x.e.Long.Refused
	}
	if err := x.allowed(); err != nil {
		return err
	}
	switch {
	case CountedOf(x.e) != nil:
		return x.decidePreparedQuery()
	case FillerOf(x.e) == nil && x.now.Busy && x.now.Owes:
		return NeedQuiet{}
	case FillerOf(x.e) == nil:
		x.st.Owing = x.now.Owes && x.e.Reads
		x.st.Touch, x.st.forwarded.typed = x.e.Touch, x.e.Untyped
		x.st.Found.executed = x.e
		x.st.Found.types, _ = protocol.TypesOf(x.st.Found.types, x.st.Payload(), x.now.Caps, x.now.Params)
		x.st.Found.typed = len(x.st.Found.types) > 0
		return nil
	}
	return x.fillExecution()
}

// readyForLong decides whether long data may go to the server.
func (x executing) readyForLong() error {
	if err := x.allowed(); err != nil || FillerOf(x.e) == nil {
		return err
	}
	return x.asPrepared()
}

// allowed returns why a statement cannot be executed any more as it was prepared.
func (x executing) allowed() error {
	if _, ok := x.e.Kind.(*bare); ok {
		if err := x.isBare(); err != nil {
			return err
		}
	}
	if x.e.Ruled(x.rules) {
		return x.outdated()
	}
	switch k := x.e.Kind.(type) {
	case stale:
		return x.outdated()
	case Refusal:
		if x.now.Busy { // perhaps with its PREPARE
			return NeedQuiet{}
		}
		return k.MyError
	case shadow:
		return x.intoShadow(k)
	}
	return nil
}

// intoShadow returns why the statement does not go into the temporary table any more.
func (x executing) intoShadow(table shadow) error {
	if x.now.Busy {
		return NeedQuiet{}
	}
	own, err := x.owns([]byte(table))
	if err == nil && !own {
		err = x.outdated()
	}
	return err
}

// fillExecution decides on the execution of a statement that gets ids.
func (x executing) fillExecution() error {
	f := FillerOf(x.e)
	if x.now.Broken {
		return clienterr.Miscounted(f.rules[0], f.facts.Name)
	}
	if len(x.st.Text) > SmallText && x.now.Known&protocol.KnowNumbers == 0 {
		return NeedProbe{}
	}
	run := &x.st.Execution
	run.filled, run.e = &x.st.Filled, x.e
	if err := run.read(&x.st.Command, &x.now, &x.st.Found); err != nil {
		return err
	}
	if err := run.fits(&x.now.Vars); err != nil {
		return err
	}
	p, plan := run.room()
	p.head, p.Name = f.head, f.name
	p.Rules, p.columns = append(p.Rules, f.rules...), append(p.columns, f.columns...)
	if err := x.asPrepared(); err != nil {
		return err
	}
	p.Facts = x.st.Facts
	if err := run.judge(&x.now.Vars, p); err != nil {
		return err
	}
	f.Plan.Bind(plan, run.values, run.rows, p.columns)
	if err := run.genes(plan, &x.now.Vars); err != nil {
		return err
	}
	if err := x.addBound(p, plan, f.Plan.Reads); err != nil {
		return err
	}
	if plan.NoLastID { // as one that is prepared as it is
		x.st.Owing = x.now.Owes && x.e.Reads
	}
	x.st.Order = run
	return nil
}

// addBound adds the INSERT that an execution runs to those that get ids. reads: LAST_INSERT_ID() is
// read.
func (x executing) addBound(p *Part, plan *rewriter.Plan, reads bool) error {
	switch {
	case plan.Rows > 1 && x.now.Known&protocol.KnowNumbers == 0:
		return NeedProbe{}
	case reads && x.now.Busy:
		return NeedQuiet{}
	}
	x.st.Owing = reads && x.now.Owes
	x.st.Touch |= x.e.Touch
	in := inserting{x.reading, p, plan}
	if err := in.admissible(); err != nil {
		return err
	}
	x.st.Filled.add()
	return nil
}

// asPrepared sees to it that the table is what it was at the PREPARE, as far as the
// statement's ids depend on it, and so is what generates one.
func (x executing) asPrepared() error {
	f := FillerOf(x.e)
	if x.now.Remaking {
		return NeedQuiet{}
	}
	own, err := x.owns([]byte(f.key))
	switch {
	case err != nil:
		return err
	case own:
		return x.outdated()
	}
	if err := x.generatesAlike(); err != nil {
		return err
	}
	x.st.Facts = f.facts
	asked := func(is *catalog.Table) bool { return !f.Plan.ByPosition || !is.At.Before(x.st.Begun) }
	if x.tables.Current(f.facts) && asked(f.facts) {
		return nil
	}
	now := x.tableOf([]byte(f.key))
	switch {
	case now == nil, !asked(now):
		return NeedTable{Table: f.name, Key: f.key}
	case now.Err != nil:
		return now.Err // as the server itself says it
	case !sameColumns(now, f):
		return x.outdated()
	}
	x.st.Found.executed, x.st.Found.facts, x.st.Facts = x.e, now, now
	return nil
}

// generatesAlike sees to it that sql_mode says of zeros and literals what it said at the PREPARE.
func (x executing) generatesAlike() error {
	f := FillerOf(x.e)
	switch {
	case f.Plan.ZeroDoubt && x.now.Known&protocol.KnowZero == 0, f.Plan.Literals && x.now.Known&protocol.KnowStrict == 0:
		return NeedProbe{}
	case f.Plan.ZeroDoubt && f.noZero != x.now.Mode.NoAutoValueOnZero, f.Plan.Literals && (f.strict != x.now.Strict || f.strictAll != x.now.StrictAll):
		return x.generatesElse()
	}
	return nil
}

// isBare sees to it that the table of a statement that goes as it is still has
// no column with a rule.
func (x executing) isBare() error {
	b := x.e.Kind.(*bare)
	if x.now.Remaking {
		return NeedQuiet{}
	}
	x.st.Facts = b.facts
	if x.tables.Current(b.facts) {
		return nil
	}
	if own, err := x.owns([]byte(b.key)); own || err != nil {
		return err
	}
	now := x.tableOf([]byte(b.key))
	switch {
	case now == nil:
		return NeedTable{Table: b.name, Key: b.key}
	case now.Err != nil:
		return nil // the server will say so itself
	case now.View, gained(now.Table, b.rules):
		return x.outdated()
	}
	x.st.Found.executed, x.st.Found.facts = x.e, now
	return nil
}
