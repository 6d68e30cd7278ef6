package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"idproxy/rewriter"
	"idproxy/rule"
)

// rulesOf returns the rules of a table.
func (e *explainer) rulesOf(t rewriter.Name) []*rule.Rule {
	schema := t.Schema
	if len(schema) == 0 {
		schema = e.schema
	}
	return e.rules.Match(schema, t.Table, false)
}

// insert explains an INSERT or REPLACE.
func (e *explainer) insert(sql []byte, t rewriter.Name, mode rewriter.Mode) error {
	if len(t.Table) == 0 {
		e.unread(sql, sql, "INSERT")
		return nil
	}
	st, err := e.concerned(sql, t, mode)
	if st != nil {
		st.Prepared = e.dynamicText || rewriter.Asks(sql, mode)
		e.read(st)
	}
	return err
}

// concerned returns a statement with the rules of the table that it writes to;
// nil when it has said what becomes of it.
func (e *explainer) concerned(sql []byte, t rewriter.Name, mode rewriter.Mode) (*rewriter.Statement, error) {
	rules := e.rulesOf(t)
	switch {
	case len(rules) == 0 && len(t.Schema) == 0 && len(e.schema) == 0 && e.rules.MayMatch(t.Table, false):
		e.say(sql, "forwarded unchanged: without a default schema the server refuses it; --schema sets one")
		return nil, nil
	case len(rules) == 0:
		e.say(sql, "forwarded unchanged: no rule for table %s", t.Table)
		return nil, nil
	}
	c, err := e.concern(sql, t, rules)
	switch {
	case err != nil || c.said:
		return nil, err
	case c.view:
		e.unfilled(sql, c.rules, "INSERT through a view without column "+rules[0].Column)
		return nil, nil
	case c.rules == nil && c.table == nil:
		e.say(sql, "forwarded unchanged: %s, and refuses it", c.left)
		return nil, nil
	case c.rules == nil:
		e.say(sql, "forwarded unchanged: %s", c.left)
		return nil, nil
	}
	return &rewriter.Statement{Text: sql, Mode: mode, Rules: c.rules, Table: c.table, UTF8: utf8.UTFMax, Speller: rewriter.UTF8{}}, nil
}

// read explains what the rewriter makes of a statement.
func (e *explainer) read(st *rewriter.Statement) {
	rule := st.Rules[0]
	var plan rewriter.Plan
	err := plan.Read(st)
	if errors.Is(err, rewriter.ErrNeedValues) {
		e.asked(st, plan.Questions)
		st.Values = make([]rewriter.Value, len(plan.Questions))
		for i := range st.Values {
			st.Values[i].Generate = true
		}
		err = plan.Read(st)
	}
	switch {
	case errors.Is(err, rewriter.ErrNeedTable):
		e.refused = true
		fmt.Fprintf(e.out, "-- rule %s: the columns of the table are needed; ask again with --online\n", rule)
	case errors.Is(err, rewriter.ErrRefusedByServer):
		e.say(st.Text, "forwarded unchanged: the server refuses it as it stands")
	case err != nil:
		e.unfilled(st.Text, st.Rules, err.Error())
	case e.second != nil && e.second.Check(st, &plan) != nil:
		e.unfilled(st.Text, st.Rules, "not understood: two readers read it differently")
	default:
		e.filled(st, &plan)
	}
}

// asked says what the server is asked before the statement is sent. For rules
// that only observe nothing is.
func (e *explainer) asked(st *rewriter.Statement, questions []rewriter.Span) {
	if !slices.ContainsFunc(st.Rules, func(r *rule.Rule) bool { return !r.Observe }) {
		return
	}
	var list []string
	for _, q := range questions {
		list = append(list, string(st.Text[q.Start:q.End]))
	}
	rest := "stays as it is written, but for variables, which must hold a whole number"
	for _, r := range st.Rules {
		switch r.Explicit {
		case rule.Reject:
			rest = "is refused (explicit: reject)"
		case rule.Advance:
			rest = "must be a whole number (explicit: advance)"
		}
	}
	e.note("the server is asked first what is worth: %s; NULL and what rounds to 0 get an id, as shown here, all else %s", strings.Join(list, ", "), rest)
}

func (e *explainer) note(format string, args ...any) {
	fmt.Fprintf(e.out, "-- %s\n", strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "))
}

// filled prints what a statement becomes, with made-up ids.
func (e *explainer) filled(st *rewriter.Statement, plan *rewriter.Plan) {
	if e.violates(st.Rules, plan) {
		return
	}
	if e.observed(st) {
		return
	}
	if plan.Selected && e.dynamicText {
		e.unfilled(st.Text, st.Rules, "INSERT ... SELECT in SQL PREPARE")
		return
	}
	if e.dynamicText && slices.ContainsFunc(st.Rules, func(r *rule.Rule) bool { return r.Gene != nil }) {
		e.unfilled(st.Text, st.Rules, "INSERT in SQL PREPARE into a table whose ids have a gene")
		return
	}
	if e.dynamicText && st.Mode.MariaDB && rewriter.NamesParameters(st.Text, st.Mode) {
		e.reject(st.Rules[0], notFilled("SQL PREPARE of a text with named parameters"))
		return
	}
	if plan.Selected {
		e.selected(st, plan)
		return
	}
	if st.Prepared {
		e.prepared(st, plan)
		return
	}
	ids, generated := make([][]uint64, len(st.Rules)), 0
	for i, one := range st.Rules {
		column := &plan.Columns[i]
		if one.Explicit == rule.Advance && column.Greatest > 0 {
			e.note("rule %s: source %s is moved past %d first", one, one.Source, column.Greatest)
		}
		var least, most string
		ids[i], least, most = e.madeUp(plan, i, one)
		if n := column.Generated; n > 0 {
			generated += n
			e.note("rule %s: %d of %d rows get ids from source %s; here %s to %s stand for them", one, n, plan.Rows, one.Source, least, most)
			e.gene(one)
		}
		if column.Fallback > 0 {
			e.note("rule %s: %d of them only if the expression for %s is NULL", one, column.Fallback, one.Column)
		}
	}
	sent := plan.Append(nil, st.Text, ids)
	if generated == 0 && string(sent) == string(st.Text) {
		e.say(sent, "forwarded unchanged: every row brings its own %s (rule %s)", st.Rules[0].Column, st.Rules[0])
		return
	}
	if why := decides(st.Rules[0], plan); why != "" {
		e.note("%s", why)
	}
	fmt.Fprintf(e.out, "%s;\n", sent)
}

// gene says what the ids of a rule have in common with other values of their rows.
func (e *explainer) gene(rule *rule.Rule) {
	if g := rule.Gene; g != nil {
		e.note("rule %s: the gene: %s %% %d = %s; ids are not consecutive", rule, rule.Column, g.Size(), g)
	}
}

// madeUp returns ids that stand for those of the i-th column, the first and the
// last as SQL.
func (e *explainer) madeUp(plan *rewriter.Plan, i int, r *rule.Rule) (ids []uint64, least, most string) {
	for n := range plan.Columns[i].Generated {
		e.next++
		id := e.next
		if g := r.Gene; g != nil {
			id = g.Of(e.next, plan.Genes[i][n])
			e.next += g.Size() - 1
		}
		most = strconv.FormatUint(id, 10)
		switch r.IDs {
		case rule.UUID:
			ids = append(ids, 0x0190_0000_0000_7000|id, 1<<63)
		case rule.ObjectID:
			ids = append(ids, 0x6600_0000_0000_0000, id<<32)
		default:
			ids = append(ids, id)
		}
		if r.IDs.Wide() {
			most = string(plan.Form(i).AppendLiteral(nil, [2]uint64(ids[len(ids)-2:])))
		}
		least = cmp.Or(least, most)
	}
	return ids, least, most
}

// prepared shows a statement that is to be prepared.
func (e *explainer) prepared(st *rewriter.Statement, plan *rewriter.Plan) {
	made, err := plan.Prepare(st)
	if err != nil {
		e.reject(st.Rules[0], err.Error())
		return
	}
	for i, rule := range st.Rules {
		c := &plan.Columns[i]
		if c.Generated > 0 {
			e.note("rule %s: %d of %d rows get ids from source %s at each execution, by parameters that the client does not see", rule, c.Generated, plan.Rows, rule.Source)
			e.gene(rule)
		}
		if c.Bound > 0 {
			bound := "NULL or 0"
			if rule.IDs.Wide() {
				bound = "NULL"
			}
			e.note("rule %s: in %d of %d rows %s is a parameter, which gets an id from source %s where %s is bound", rule, c.Bound, plan.Rows, rule.Column, rule.Source, bound)
		}
	}
	if why := decides(st.Rules[0], plan); why != "" {
		e.note("%s", why)
	}
	fmt.Fprintf(e.out, "%s;\n", made.Text)
}

// violates says which rule forbids an explicit value that the statement brings.
func (e *explainer) violates(rules []*rule.Rule, plan *rewriter.Plan) bool {
	for i, r := range rules {
		switch column := &plan.Columns[i]; {
		case r.Observe || column.Explicit+column.Fallback == 0:
		case r.Explicit == rule.Reject:
			e.reject(r, "explicit: reject, and the statement gives "+r.Column+" a value of its own")
			return true
		case r.Explicit == rule.Advance && column.GreatestUnknown:
			e.reject(r, "explicit: advance, and the statement gives "+r.Column+" a value that is no whole number")
			return true
		}
	}
	return false
}

// observed takes the rules that only observe out of a statement, and reports
// whether it explained the statement without them.
func (e *explainer) observed(st *rewriter.Statement) bool {
	var rest []*rule.Rule
	var seen []string
	for _, r := range st.Rules {
		if !r.Observe {
			rest = append(rest, r)
			continue
		}
		var plan rewriter.Plan
		one := *st
		one.Rules = []*rule.Rule{r}
		if len(st.Rules) > 1 {
			one.Values = nil // they are of all rules' columns
		}
		what := fmt.Sprintf("rule %s only observes", r)
		if err := plan.Read(&one); err == nil {
			what += fmt.Sprintf("; %d of %d rows would get ids", plan.Columns[0].Generated, plan.Rows)
		}
		seen = append(seen, what)
	}
	switch {
	case len(seen) == 0:
		return false
	case len(rest) == 0:
		e.say(st.Text, "forwarded unchanged: %s", strings.Join(seen, "; "))
	default:
		e.note("%s", strings.Join(seen, "; "))
		next := *st
		next.Rules, next.Values = rest, nil
		e.read(&next)
	}
	return true
}

// decides says what of a statement only its outcome tells; empty when the
// statement itself says all.
func decides(rule *rule.Rule, plan *rewriter.Plan) string {
	const lastID = "the insert id and LAST_INSERT_ID()"
	switch {
	case plan.NoLastID:
		return "the ids are no numbers: " + lastID + " stay what the server makes of them, as on a table without AUTO_INCREMENT"
	case plan.Delayed:
		return "DELAYED: rows go in later, and nobody is told their ids, as natively"
	case rule.Packet:
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
