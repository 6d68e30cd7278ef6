package explain

import (
	"idproxy/rewriter"
	"idproxy/rule"
)

// madeUpRows stands for the number of rows that a query gives.
const madeUpRows = 1000

// selected explains a statement whose rows come from a query.
func (n *insertion) selected() {
	st, plan := n.st, &n.plan
	can, must := plan.CanBeside()
	numbers := &rewriter.Numbering{Beside: can}
	if n.verbose {
		n.note("the server counts the rows first: %s", plan.AppendCount(nil, st.Text, false))
	} else {
		n.note("the server counts the rows first, and numbers them as they go in; --verbose shows the SQL")
	}
	for _, r := range st.Rules {
		first := n.next + 1
		n.next += madeUpRows
		numbers.Columns = append(numbers.Columns, rewriter.Numbers{Runs: []rewriter.Run{{First: first, Count: madeUpRows}}, Stride: 1})
		n.note("rule %s: rows without an id get one from source %s; here there are %d rows, and %d to %d stand for their ids", r, r.Source, madeUpRows, first, n.next)
	}
	for _, k := range plan.Asked() {
		r := st.Rules[k]
		if r.Explicit == rule.Reject {
			n.note("rule %s: it is refused if a row of the query brings a value of its own for %s (explicit: reject)", r, r.Column)
		}
		n.note("rule %s: it is refused if the query gives %s as texts or times, some of which generate", r, r.Column)
	}
	n.note("when there are more rows than were counted the server fails with 1690, which the client does not see: no row went in, and they are counted anew")
	switch {
	case must:
		n.note("if the table's engine is not InnoDB it is refused: the ids stand beside values of the query, and rows that went in could not be taken back")
	case can:
		n.note("if the table's engine is not InnoDB another form is sent, which fails before the first row")
	}
	if st.Mode.MariaDB && !must {
		on := ""
		if can || plan.CanBesideOrdered() {
			on = ", and the table's engine is not InnoDB"
		}
		n.note("it is refused if MariaDB would round values on their way (a quotient, or a sum of DOUBLE)%s", on)
	}
	n.outcome()
	if !n.verbose {
		n.fill(st.Text)
		return
	}
	n.fill(plan.AppendSelect(nil, st.Text, numbers))
}
