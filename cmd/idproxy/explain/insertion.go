package explain

import (
	"cmp"
	"strconv"

	"idproxy/rewriter"
	"idproxy/rule"
)

// insertion is an INSERT into a table with rules.
type insertion struct {
	*session
	*Outcome
	st      *rewriter.Statement
	plan    rewriter.Plan
	literal bool // it is the text of a PREPARE in SQL
}

// filled shows what a statement becomes, with ids that are made up.
func (n *insertion) filled() {
	ids, generated := make([][]uint64, len(n.st.Rules)), 0
	for i, r := range n.st.Rules {
		column := &n.plan.Columns[i]
		if r.Explicit == rule.Advance && column.Greatest > 0 {
			n.note("rule %s: source %s is moved past %d first", r, r.Source, column.Greatest)
		}
		var least, most string
		ids[i], least, most = n.madeUp(i, r)
		if count := column.Generated; count > 0 {
			generated += count
			n.note("rule %s: %d of %d rows get ids from source %s; here %s to %s stand for them", r, count, n.plan.Rows, r.Source, least, most)
			n.gene(r)
		}
		if column.Fallback > 0 {
			n.note("rule %s: %d of them only if the expression for %s is NULL", r, column.Fallback, r.Column)
		}
	}
	sent := n.plan.Append(nil, n.st.Text, ids)
	if generated == 0 && string(sent) == string(n.st.Text) {
		n.forward(sent, "forwarded unchanged: every row brings its own %s (rule %s)", n.st.Rules[0].Column, n.st.Rules[0])
		return
	}
	n.outcome()
	n.fill(sent)
}

// gene says what the ids of a rule have in common with other values of their rows.
func (n *insertion) gene(r *rule.Rule) {
	if g := r.Gene; g != nil {
		n.note("rule %s: the gene: %s %% %d = %s; ids are not consecutive", r, r.Column, g.Size(), g)
	}
}

// madeUp returns ids that stand for those of the i-th column, the first and the
// last as SQL.
func (n *insertion) madeUp(i int, r *rule.Rule) (ids []uint64, least, most string) {
	for row := range n.plan.Columns[i].Generated {
		n.next++
		id := n.next
		if g := r.Gene; g != nil {
			id = g.Of(n.next, n.plan.Genes[i][row])
			n.next += g.Size() - 1
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
			most = string(n.plan.Form(i).AppendLiteral(nil, [2]uint64(ids[len(ids)-2:])))
		}
		least = cmp.Or(least, most)
	}
	return ids, least, most
}

// prepared shows a statement that is to be prepared.
func (n *insertion) prepared() {
	made, err := n.plan.Prepare(n.st)
	if err != nil {
		n.reject(n.st.Rules[0], err.Error())
		return
	}
	for i, r := range n.st.Rules {
		c := &n.plan.Columns[i]
		if c.Generated > 0 {
			n.note("rule %s: %d of %d rows get ids from source %s at each execution, by parameters that the client does not see", r, c.Generated, n.plan.Rows, r.Source)
			n.gene(r)
		}
		if c.Bound > 0 {
			bound := "NULL or 0"
			if r.IDs.Wide() {
				bound = "NULL"
			}
			n.note("rule %s: in %d of %d rows %s is a parameter, which gets an id from source %s where %s is bound", r, c.Bound, n.plan.Rows, r.Column, r.Source, bound)
		}
	}
	n.outcome()
	n.fill(made.Text)
}

// outcome notes what of the statement only its outcome tells.
func (n *insertion) outcome() {
	if why := decides(n.st.Rules[0], &n.plan); why != "" {
		n.note("%s", why)
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
