package decide

import (
	"context"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Carrier is what an order needs of the session that carries it out.
type Carrier interface {
	Conversation() *protocol.Conn
	Context() context.Context
	Asker() *catalog.Asker
	// IDsOf returns where the ids of a rule's column come from.
	IDsOf(r *rule.Rule, column rule.Column, t rewriter.Name, f *catalog.Table) (draw.Column, error)
	// Drew counts ids, and Filled a statement that got some.
	// Drew is told how many ids were drawn for a rule.
	Drew(r *rule.Rule, ids int)
	Filled()
	// Carry sets user variables for what is sent next.
	Carry(set []byte) error
	// ReadAsNow ends a reading of a text as it was read.
	ReadAsNow() error
	// Prepares notes the statement that the client prepares.
	Prepares(e *protocol.Stmt)
	// Told returns the error that a client is told, and logs it.
	Told(err error) *mysql.MyError
}

// idsFor returns where the ids of the i-th column of a part come from: SET insert_id asks
// for those of the first one.
func idsFor(s Carrier, p *Part, i int) (draw.Column, error) {
	from, err := s.IDsOf(p.Rules[i], p.columns[i], p.Name, p.Facts)
	if err == nil && i == 0 && p.asked != nil {
		from = from.Asks(p.asked)
	}
	return from, err
}

// fill draws the ids of each column, and moves sources past the ids that the
// application brings where its rule says so.
func fill(s Carrier, p *Part, plan *rewriter.Plan) error {
	stride := uint64(1)
	if plan.Rows > 1 {
		stride = s.Conversation().Increment()
	}
	drawn := false
	p.ids = slices.Grow(p.ids[:0], len(p.Rules))[:len(p.Rules)]
	for i, rule := range p.Rules {
		filled := &plan.Columns[i]
		from, err := idsFor(s, p, i)
		if err != nil {
			return err
		}
		if err := advance(s, from, rule, filled); err != nil {
			return err
		}
		words := rule.IDs.Words(filled.Generated)
		ids := slices.Grow(p.ids[i][:0], words)[:words]
		p.ids[i] = ids
		if len(ids) == 0 {
			continue
		}
		if rule.Gene != nil {
			err = from.FillGenes(s.Context(), ids, plan.Genes[i])
		} else {
			err = from.Fill(s.Context(), ids, stride)
		}
		if err != nil {
			return clienterr.OutOfIDs(rule, err)
		}
		s.Drew(rule, filled.Generated)
		drawn = true
	}
	if drawn {
		s.Filled()
	}
	return nil
}

// advance moves the source of a column past the ids that the application brings,
// where the rule says so.
func advance(s Carrier, from draw.Column, r *rule.Rule, filled *rewriter.Filled) error {
	if r.Explicit != rule.Advance || filled.Greatest == 0 {
		return nil
	}
	if err := from.Advance(s.Context(), filled.Greatest); err != nil {
		return clienterr.Unmoved(r, err)
	}
	return nil
}

// drawRuns draws ids until n has want of them.
func drawRuns(s Carrier, from draw.Column, n *rewriter.Numbers, want uint64) error {
	var ids []uint64
	for have := n.Count(); have < want; have += uint64(len(ids)) {
		ids = slices.Grow(ids[:0], idsAtOnce)[:min(idsAtOnce, want-have)]
		if err := from.Fill(s.Context(), ids, n.Stride); err != nil {
			return err
		}
		n.Add(ids)
		s.Drew(from.Rule(), len(ids))
	}
	return nil
}

// idsAtOnce is how many ids are drawn at a time for the rows of a query: the
// memory they take does not grow with the rows.
const idsAtOnce = 1 << 14
