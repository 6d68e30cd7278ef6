package explain

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"idproxy/rewriter"
	"idproxy/rule"
)

// read explains what the rewriter makes of the statement.
func (n *insertion) read() {
	st, r := n.st, n.st.Rules[0]
	err := n.plan.Read(st)
	if errors.Is(err, rewriter.ErrNeedValues) {
		n.asked()
		st.Values = make([]rewriter.Value, len(n.plan.Questions))
		for i := range st.Values {
			st.Values[i].Generate = true
		}
		err = n.plan.Read(st)
	}
	switch {
	case errors.Is(err, rewriter.ErrNeedTable):
		n.needTable(r)
	case errors.Is(err, rewriter.ErrRefusedByServer):
		n.forward(st.Text, serverFails)
	case err != nil:
		n.unfilled(st.Text, st.Rules, err.Error())
	case n.second != nil && n.second.Check(st, &n.plan) != nil:
		n.unfilled(st.Text, st.Rules, "not understood: two readers read it differently")
	default:
		n.decide()
	}
}

// decide explains a statement that was read.
func (n *insertion) decide() {
	switch {
	case n.violates(), n.observed(), n.literal && n.unfit():
	case n.plan.Selected:
		n.selected()
	case n.st.Prepared:
		n.prepared()
	default:
		n.filled()
	}
}

// observed takes the rules that only observe out of the statement, and reports
// whether it explained the statement without them.
func (n *insertion) observed() bool {
	var rest []*rule.Rule
	var seen []string
	for _, r := range n.st.Rules {
		if !r.Observe {
			rest = append(rest, r)
			continue
		}
		var plan rewriter.Plan
		one := *n.st
		one.Rules = []*rule.Rule{r}
		if len(n.st.Rules) > 1 {
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
		n.forward(n.st.Text, "forwarded unchanged: %s", strings.Join(seen, "; "))
	default:
		n.note("%s", strings.Join(seen, "; "))
		st := *n.st
		st.Rules, st.Values = rest, nil
		(&insertion{session: n.session, Outcome: n.Outcome, st: &st, literal: n.literal}).read()
	}
	return true
}

// unfit reports whether no PREPARE in SQL can bring the statement, and says so.
func (n *insertion) unfit() bool {
	st := n.st
	switch {
	case n.plan.Selected:
		n.unfilled(st.Text, st.Rules, "INSERT ... SELECT in SQL PREPARE")
	case slices.ContainsFunc(st.Rules, func(r *rule.Rule) bool { return r.Gene != nil }):
		n.unfilled(st.Text, st.Rules, "INSERT in SQL PREPARE into a table whose ids have a gene")
	case st.Mode.MariaDB && rewriter.NamesParameters(st.Text, st.Mode):
		n.reject(st.Rules[0], notFilled("SQL PREPARE of a text with named parameters"))
	default:
		return false
	}
	return true
}

// asked says what the server is asked before the statement is sent. For rules
// that only observe nothing is.
func (n *insertion) asked() {
	if !slices.ContainsFunc(n.st.Rules, func(r *rule.Rule) bool { return !r.Observe }) {
		return
	}
	var list []string
	for _, q := range n.plan.Questions {
		list = append(list, string(n.st.Text[q.Start:q.End]))
	}
	rest := "stays as it is written, but for variables, which must hold a whole number"
	for _, r := range n.st.Rules {
		switch r.Explicit {
		case rule.Reject:
			rest = "is refused (explicit: reject)"
		case rule.Advance:
			rest = "must be a whole number (explicit: advance)"
		}
	}
	n.note("the server is asked first what is worth: %s; NULL and what rounds to 0 get an id, as shown here, all else %s", strings.Join(list, ", "), rest)
}

// violates reports whether a rule forbids an explicit value that the statement brings, and
// says which.
func (n *insertion) violates() bool {
	for i, r := range n.st.Rules {
		switch column := &n.plan.Columns[i]; {
		case r.Observe || column.Explicit+column.Fallback == 0:
		case r.Explicit == rule.Reject:
			n.reject(r, "explicit: reject, and the statement gives "+r.Column+" a value of its own")
			return true
		case r.Explicit == rule.Advance && column.GreatestUnknown:
			n.reject(r, "explicit: advance, and the statement gives "+r.Column+" a value that is no whole number")
			return true
		}
	}
	return false
}
