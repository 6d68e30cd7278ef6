package explain

import (
	"idproxy/proxy/decide"
	"idproxy/proxy/loaddata"
	"idproxy/rewriter"
	"idproxy/rule"
)

// tell says what is done with the statement that was decided on. sent is what the server gets.
func (s teller) tell(sent []byte) {
	st := &s.held
	load, loads := st.Order.(*decide.Loading)
	inserts := len(st.Filled.Parts) > 0
	prepares := st.Prepared != nil && (decide.FillerOf(st.Prepared) != nil || decide.CountedOf(st.Prepared) != nil)
	if loads || inserts || prepares {
		for i := range st.Found.Observed {
			s.out.note("%s", would(&st.Found.Observed[i]))
		}
	}
	switch {
	case s.out.Becomes == Depends:
		s.out.Sent = s.out.Statement
	case loads:
		s.tellLoad(load)
		s.out.fill(sent)
	case inserts && st.Filled.Plan(0).Selected:
		s.tellSelected(sent)
	case inserts:
		s.tellInsert(sent)
	case prepares:
		s.tellPrepared()
		s.out.fill(sent)
	case s.executesUnknown():
		s.out.forward("gets the ids of the statement that was prepared under the name, if that gets any; else forwarded unchanged")
		s.out.Becomes = Depends
	default:
		s.forward(&st.Found)
	}
}

// executesUnknown reports whether the statement executes one that was prepared in front of the
// text, if it was.
func (s teller) executesUnknown() bool {
	d := s.held.Dynamic
	return d != nil && d.Verb == rewriter.VerbExecute && s.conversation.Prepared.ByName[d.Name] == nil
}

// tellInsert tells of an INSERT with ids, or of the execution of one that was prepared.
func (s teller) tellInsert(sent []byte) {
	st := &s.held
	part, plan := &st.Filled.Parts[0], st.Filled.Plan(0)
	if d := st.Dynamic; d != nil && d.Verb == rewriter.VerbImmediate {
		s.out.note("the statement in the literal is sent with a hidden parameter for each id")
	}
	generated := 0
	for i, r := range part.Rules {
		column := &plan.Columns[i]
		generated += column.Generated
		if r.Explicit == rule.Advance && column.Greatest > 0 {
			s.out.note("rule %s: source %s is moved past %d first", r, r.Source, column.Greatest)
		}
		if ids := part.IDs(i); len(ids) > 0 {
			least, most := part.AppendID(nil, i, ids), part.AppendID(nil, i, ids[len(ids)-r.IDs.Words(1):])
			s.out.note("rule %s: %d of %d rows get ids from source %s; here %s to %s stand for them", r, column.Generated, plan.Rows, r.Source, least, most)
			s.noteGene(r)
		}
		if column.Fallback > 0 {
			s.out.note("rule %s: %d of them only if the expression for %s is NULL", r, column.Fallback, r.Column)
		}
	}
	if generated == 0 && string(sent) == s.out.Statement {
		s.out.forward("forwarded unchanged: every row brings its own %s (rule %s)", part.Rules[0].Column, part.Rules[0])
		return
	}
	s.noteOutcome(part.Rules[0], plan)
	s.out.fill(sent)
}

// noteGene says what the ids of a rule have in common with other values of their rows.
func (s teller) noteGene(r *rule.Rule) {
	if g := r.Gene; g != nil {
		s.out.note("rule %s: the gene: %s %% %d = %s; ids are not consecutive", r, r.Column, g.Size(), g)
		if g.Shard != nil {
			s.out.note("rule %s: the key must be of shard %d of %d, which listener %s is for", r, g.Shard.Value, 1<<g.Shard.Bits, g.Shard.Listener)
		}
	}
}

// tellSelected tells of an INSERT whose rows come from a query.
func (s teller) tellSelected(sent []byte) {
	part, plan := &s.held.Filled.Parts[0], s.held.Filled.Plan(0)
	if s.verbose {
		s.out.note("the server counts the rows first: %s", plan.AppendCount(nil, part.Text, false))
	} else {
		s.out.note("the server counts the rows first, and numbers them as they go in; --verbose shows the SQL")
		sent = []byte(s.out.Statement)
	}
	for i, r := range part.Rules {
		runs := s.held.Selection.Numbering().Columns[i].Runs
		last := runs[len(runs)-1]
		s.out.note("rule %s: rows without an id get one from source %s; here there are %d rows, and %d to %d stand for their ids",
			r, r.Source, madeUpRows, runs[0].First, last.First+last.Count-1)
	}
	for _, k := range plan.Asked() {
		r := part.Rules[k]
		if r.Explicit == rule.Reject {
			s.out.note("rule %s: it is refused if a row of the query brings a value of its own for %s (explicit: reject)", r, r.Column)
		}
		s.out.note("rule %s: it is refused if the query gives %s as texts or times, some of which generate", r, r.Column)
	}
	s.out.note("when there are more rows than were counted the server fails with 1690, which the client does not see: no row went in, and they are counted anew")
	s.noteAssumed(plan)
	s.noteOutcome(part.Rules[0], plan)
	s.out.fill(sent)
}

// noteAssumed says what of an INSERT ... SELECT a server would tell that was not asked.
func (s teller) noteAssumed(plan *rewriter.Plan) {
	can, must := plan.CanBeside()
	asked := s.asker != nil
	switch {
	case asked:
	case must:
		s.out.note("if the table's engine is not InnoDB it is refused: the ids stand beside values of the query, and rows that went in could not be taken back")
	case can:
		s.out.note("if the table's engine is not InnoDB another form is sent, which fails before the first row")
	}
	if s.conversation.MariaDB && !must && !(asked && s.held.Selection.Exact != decide.ExactSurely) {
		on := ""
		if can || plan.CanBesideOrdered() {
			on = ", and the table's engine is not InnoDB"
		}
		s.out.note("it is refused if MariaDB would round values on their way (a quotient, or a sum of DOUBLE)%s", on)
	}
}

// tellPrepared tells of a statement that is prepared with parameters for ids.
func (s teller) tellPrepared() {
	e := s.held.Prepared
	if q := decide.CountedOf(e); q != nil {
		s.out.note("at each execution the server counts the rows first, and the statement is prepared anew with their ids")
		for _, r := range q.Rules() {
			s.out.note("rule %s: rows without an id get one from source %s", r, r.Source)
		}
		return
	}
	if d := s.held.Dynamic; d != nil {
		s.out.note("at each EXECUTE new ids; the statement in the literal is sent with a hidden parameter for each")
	}
	var plan rewriter.Plan
	f := decide.FillerOf(e)
	f.Plan.Bind(&plan, nil, 1, nil)
	for i, r := range f.Rules() {
		column := &plan.Columns[i]
		if column.Generated > 0 {
			s.out.note("rule %s: %d of %d rows get ids from source %s at each execution, by parameters that the client does not see", r, column.Generated, plan.Rows, r.Source)
			s.noteGene(r)
		}
		if column.Bound > 0 {
			bound := "NULL or 0"
			if r.IDs.Wide() {
				bound = "NULL"
			}
			s.out.note("rule %s: in %d of %d rows %s is a parameter, which gets an id from source %s where %s is bound", r, column.Bound, plan.Rows, r.Column, r.Source, bound)
		}
		if r.Explicit == rule.Reject && column.Explicit > 0 {
			s.out.note("rule %s: each execution is refused (explicit: reject), as the statement gives %s a value of its own", r, r.Column)
		}
	}
	s.noteOutcome(f.Rules()[0], &plan)
}

// tellLoad tells of a LOAD DATA whose file gets ids.
func (s teller) tellLoad(load *decide.Loading) {
	for k, r := range load.Asked().Rules {
		if at := load.Format.Columns[k].Field; at == loaddata.Absent {
			s.out.note("rule %s: an id from source %s goes in front of each line of the file as it passes", r, r.Source)
		} else {
			s.out.note("rule %s: NULL or 0 in field %d of a line becomes an id from source %s as the file passes", r, at+1, r.Source)
		}
	}
}

// noteOutcome notes what of the statement only its outcome tells.
func (s teller) noteOutcome(r *rule.Rule, plan *rewriter.Plan) {
	if why := decides(r, plan); why != "" {
		s.out.note("%s", why)
	}
}

// decides says what of a statement only its outcome tells; empty when the
// statement itself says all.
func decides(r *rule.Rule, plan *rewriter.Plan) string {
	const lastID = "the insert id and LAST_INSERT_ID()"
	switch {
	case plan.NoLastID:
		return "the ids are no numbers: " + lastID + " stay what the server makes of them, as on a table without AUTO_INCREMENT"
	case plan.Delayed:
		return "DELAYED: rows go in later, and nobody is told their ids, as natively"
	case r.Packet:
		return "last_insert_id: packet: the OK packet shows the first new id, LAST_INSERT_ID() does not"
	case plan.Update && plan.Rows == 1:
		return "the outcome decides " + lastID + ": the new id if the row went in, the old row's in the OK packet if it was updated"
	case plan.Update, plan.Ignore && plan.Rows > 1:
		return "the outcome decides " + lastID + ": when not all rows went in, the server is asked for the least of the new ids that is in the table"
	case plan.Ignore:
		return "the outcome decides " + lastID + ": the new id if the row went in, none if it was skipped"
	case plan.Plain:
		return "LAST_INSERT_ID() is set once the rows are in, before the next statement that can read it"
	}
	return ""
}
