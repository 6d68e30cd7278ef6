package draw

import (
	"context"
	"math"

	"idproxy/idsource"
	"idproxy/rule"
)

// Asked are ids that a session has asked for by SET insert_id. To their source they are
// ids that the application brings.
type Asked struct{ First, Next, Increment, Offset uint64 }

// Asks returns the column with these ids in place of its source's.
func (c *Column) Asks(ids *Asked) Column {
	return Column{series: asked{c.series, ids, c.rule}, rule: c.rule, most: c.most}
}

type asked struct {
	idsource.Series
	ids  *Asked
	rule *rule.Rule
}

// Fill counts as servers do: the first id is as it was asked for, and those behind it
// are spaced by auto_increment_increment and auto_increment_offset.
func (a asked) Fill(ctx context.Context, ids []uint64, _ uint64) error {
	for i := range ids {
		ids[i] = a.ids.Next
		a.ids.Next = a.ids.after(a.ids.Next)
	}
	if a.rule.Explicit != rule.Advance {
		return nil
	}
	return a.Series.Advance(ctx, ids[len(ids)-1])
}

// Return takes nothing back: the source gave nothing.
func (asked) Return(first, end uint64) {}

func (a *Asked) after(id uint64) uint64 {
	next, offset := id+1, a.Offset
	if offset > a.Increment { // servers ignore it
		offset = 0
	}
	if a.Increment > 1 {
		next = (id+a.Increment-offset)/a.Increment*a.Increment + offset
	}
	if next <= id {
		return math.MaxUint64
	}
	return next
}
