package check

import (
	"fmt"
	"slices"
	"strings"

	"idproxy/config"
	"idproxy/plural"
)

// shards looks at the listeners that are for one shard: together they must be for all, each server
// for another one.
func (c *checker) shards() []Finding {
	var n notes
	byBits := map[uint64][]*config.Listener{}
	var order []uint64
	for i := range c.cfg.Listeners {
		l := &c.cfg.Listeners[i]
		if l.Shard == nil {
			continue
		}
		c.guards(&n, l)
		if byBits[l.Shard.Bits] == nil {
			order = append(order, l.Shard.Bits)
		}
		byBits[l.Shard.Bits] = append(byBits[l.Shard.Bits], l)
	}
	if len(order) > 1 {
		first, other := byBits[order[0]][0], byBits[order[1]][0]
		n.add(other.Pos, LevelWarning, "listener %s tells %s of shards apart, and listener %s in line %d tells %d: a row may have a place on both, or on none",
			other.Name, plural.Of(other.Shard.Bits, "bit"), first.Name, first.Pos.Line, first.Shard.Bits)
	}
	for _, bits := range order {
		complete(&n, byBits[bits])
	}
	return n.findings
}

// guards warns of a listener whose shard no rule has use for.
func (c *checker) guards(n *notes, l *config.Listener) {
	if !slices.ContainsFunc(c.cfg.Rules, func(r config.Rule) bool { return r.On(l.Name) && r.Gene != nil }) {
		n.add(l.Pos, LevelWarning, "listener %s has a shard, and no rule on it has a gene: no row is refused", l.Name)
	}
}

// complete warns of shards that two servers are for, and of those that none is for.
func complete(n *notes, listeners []*config.Listener) {
	byValue := map[uint64]*config.Listener{}
	for _, l := range listeners {
		other := byValue[l.Shard.Value]
		if other != nil && other.Behind() != l.Behind() {
			n.add(l.Pos, LevelWarning, "listener %s is for shard %d, as is listener %s in line %d, which leads to another server: rows of that shard may go to either",
				l.Name, l.Shard.Value, other.Name, other.Pos.Line)
		}
		if other == nil {
			byValue[l.Shard.Value] = l
		}
	}
	var missing []string
	size := uint64(1) << listeners[0].Shard.Bits
	for value := range size {
		if byValue[value] == nil && len(missing) < 5 {
			missing = append(missing, fmt.Sprint(value))
		}
	}
	if left := size - uint64(len(byValue)); left > 0 {
		more := ""
		if left > uint64(len(missing)) {
			more = ", ..."
		}
		n.add(listeners[0].Pos, LevelWarning, "of %d shards, no listener here is for %s%s: rows of those are refused on each; name them, unless another process has them", size, strings.Join(missing, ", "), more)
	}
}
