package decide

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

func (x *filled) Draw(s Carrier) (expected []protocol.Expect, at int, err error) {
	if len(x.Parts) == 0 {
		return nil, 0, nil
	}
	x.Parts[0].askAgain()
	expected = x.expected[:0]
	for i := range x.Parts {
		part, plan := &x.Parts[i], &x.plans[i]
		if err := fill(s, part, plan); err != nil {
			return nil, part.result, err
		}
		expected = append(expected, part.expect(plan, s.Conversation().Has(mysql.CLIENT_FOUND_ROWS)))
	}
	x.expected = expected
	return expected, 0, nil
}

func (x *filled) MayOwe() bool {
	for i := range x.Parts {
		if x.Parts[i].mayOwe(&x.plans[i]) {
			return true
		}
	}
	return false
}

func (x *filled) Asks() bool {
	for i := range x.Parts {
		if p := &x.plans[i]; !p.NoLastID && (p.Ignore || p.Update) {
			return true
		}
	}
	return false
}

// Asked is the first piece: what leaves a question is a piece of its own.
func (x *filled) Asked() *Part { return &x.Parts[0] }

func (x *filled) StoredSQL(e *protocol.Expect, table, id []byte) string {
	return storedSQL(e, &x.Parts[0], table, id)
}

// storedSQL asks which of the ids that a part was filled with is in the table.
func storedSQL(e *protocol.Expect, p *Part, table, id []byte) string {
	made := appendBetween(nil, id, e.First, e.Last)
	if len(p.ids) > 0 { // others' ids may stand between those of a statement
		gene := p.Rules[0].Gene != nil
		if gene && len(p.ids[0]) <= maxListed || !gene && !spaced(p.ids[0]) {
			if among := appendAmong(nil, id, p.ids[0]); len(among) <= maxAmong {
				made = among
			}
		}
	}
	return storedAmong(e, p, table, id, string(made))
}

// spaced reports whether ids are one run, whose ids are as far apart as its first two.
func spaced(ids []uint64) bool {
	for i := 2; i < len(ids); i++ {
		if ids[i]-ids[i-1] != ids[1]-ids[0] {
			return false
		}
	}
	return len(ids) != 2 || ids[1]-ids[0] <= maxStride
}

// maxStride is the greatest auto_increment_increment that servers have.
const maxStride = 65535

func appendBetween(dst, id []byte, first, last uint64) []byte {
	return fmt.Appendf(dst, "%s BETWEEN %d AND %d", id, first, last)
}

// storedAmong asks which id of the statement is in the table: see relay.AskStored. It
// names the table once, for under LOCK TABLES it may be there under one name only.
// made says of which ids.
func storedAmong(e *protocol.Expect, p *Part, table, id []byte, made string) string {
	own := strconv.FormatUint(e.Explicit, 10)
	if p.columns[0].Max < math.MaxUint64 { // the column has a sign
		own = strconv.FormatInt(int64(e.Explicit), 10)
	}
	switch {
	case !e.HasExplicit:
		return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %s", id, table, made)
	case e.Generated == 0:
		return fmt.Sprintf("SELECT MIN(%s) FROM %s WHERE %[1]s=%[3]s", id, table, own)
	}
	return fmt.Sprintf("SELECT COALESCE(MIN(CASE WHEN %[3]s THEN %[1]s END),MIN(%[1]s)) FROM %[2]s WHERE %[3]s OR %[1]s=%[4]s", id, table, made, own)
}

// sqlText is a text with ids for its INSERTs, or as it came where it has none that get any.
type sqlText struct{ *filled }

func (t sqlText) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	if len(t.Parts) == 0 && st.Rest == 0 && st.pieces == 0 {
		return st.Payload(), false, nil
	}
	return t.rewrite(st), true, nil
}

// rewrite writes the piece as a command with its ids.
func (t sqlText) rewrite(st *Command) []byte {
	const perID, perPart = 21, 256 // a comma and 20 digits; all that does not grow with the rows
	size := wire.HeaderLen + len(st.Prefix) + st.End + perPart*len(t.Parts)
	for i := range t.Parts {
		for _, ids := range t.Parts[i].ids {
			size += perID * len(ids)
		}
	}
	out := append(slices.Grow(st.Out[:0], size), 0, 0, 0, 0)
	out = append(out, st.Prefix...)
	at := 0
	for i := range t.Parts {
		p := &t.Parts[i]
		out = append(out, st.Text[at:p.span.Start]...)
		out = t.plans[i].Append(out, st.Text[p.span.Start:p.span.End], p.ids)
		at = p.span.End
	}
	st.Out = append(out, st.Text[at:st.End]...)
	return st.Out[wire.HeaderLen:]
}

// filled are the INSERTs of a piece that get ids.
type filled struct {
	noInserts
	Parts []Part
	plans []rewriter.Plan // by index of the part
	// expected is what the replies to those are to show that ids were drawn for last. Its memory is
	// used again.
	expected []protocol.Expect
}

// room returns the memory for a part behind those that there are, which it may become, and for
// its plan.
func (x *filled) room() (*Part, *rewriter.Plan) {
	n := len(x.Parts)
	x.Parts = slices.Grow(x.Parts, 1)
	if len(x.plans) <= n {
		x.plans = append(x.plans, rewriter.Plan{})
	}
	p := &x.Parts[:n+1][n]
	*p = Part{Rules: p.Rules[:0], columns: p.columns[:0], ids: p.ids}
	return p, &x.plans[n]
}

// add makes a part of what room gave.
func (x *filled) add() { x.Parts = x.Parts[:len(x.Parts)+1] }

// maxListed bounds the ids that a question lists.
const maxListed = 10_000

// maxAmong bounds the text of such a condition. The question has it twice, and is to fit
// max_allowed_packet, which is 4 MB in the least of usual servers.
const maxAmong = 1 << 20

// leastRun is how many ids are a run of their own in a condition.
const leastRun = 64

// appendAmong appends the condition that a column is one of the ids, which ascend: long runs by their
// ends, others one by one. Of those no more are written than a condition has room for.
func appendAmong(dst, id []byte, ids []uint64) []byte {
	var single []byte
	runs := 0
	for len(ids) > 0 && len(dst)+len(single) <= maxAmong {
		n := 1
		for n < len(ids) && ids[n] == ids[n-1]+1 {
			n++
		}
		if n >= leastRun {
			if runs++; runs > 1 {
				dst = append(dst, " OR "...)
			}
			dst = appendBetween(dst, id, ids[0], ids[n-1])
		} else {
			for _, one := range ids[:n] {
				single = strconv.AppendUint(append(single, ','), one, 10)
			}
		}
		ids = ids[n:]
	}
	if single == nil {
		return dst
	}
	if runs > 0 {
		dst = append(dst, " OR "...)
	}
	return fmt.Appendf(dst, "%s IN (%s)", id, single[1:])
}
