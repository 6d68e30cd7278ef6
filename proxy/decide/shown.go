package decide

import (
	"strconv"

	"idproxy/rewriter"
	"idproxy/rule"
)

// What is to be seen of orders from outside.

// Plan returns what is done to the i-th of the INSERTs.
func (x *filled) Plan(i int) *rewriter.Plan { return &x.plans[i] }

// IDs returns the ids that were drawn for the i-th rule of the part, in row order: two words each
// where they are wide.
func (p *Part) IDs(i int) []uint64 { return p.ids[i] }

// AppendID appends the id that begins ids, which is one of the i-th rule, as SQL.
func (p *Part) AppendID(dst []byte, i int, ids []uint64) []byte {
	if !p.Rules[i].IDs.Wide() {
		return strconv.AppendUint(dst, ids[0], 10)
	}
	return p.form(i).AppendLiteral(dst, [2]uint64(ids))
}

// Numbering returns how the rows of the query got their ids.
func (s *Selection) Numbering() *rewriter.Numbering { return &s.numbers }

// Rules returns the rules that the ids of the statement are of.
func (f *filler) Rules() []*rule.Rule { return f.rules }

// Rules returns the rules that the ids of the statement are of.
func (q *preparedQuery) Rules() []*rule.Rule { return q.rules }
