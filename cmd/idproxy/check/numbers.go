package check

import (
	"fmt"
	"slices"
	"strings"

	"idproxy/config"
	"idproxy/idsource"
	"idproxy/idsource/snowflake"
)

// numbered is a source with a fixed worker number.
type numbered struct {
	source *config.Source
	number uint64 // datacenter and worker
	shape  idsource.Shape
}

// numbers looks at sources that share a fixed worker number. They make the same ids, so
// they must not fill the same column on different shards.
func (c *checker) numbers() []Finding {
	var n notes
	byNumber := map[uint64][]numbered{}
	var order []uint64
	for i := range c.cfg.Sources {
		s := &c.cfg.Sources[i]
		if s.Snowflake == nil || s.Snowflake.Workers != "" {
			continue
		}
		l, err := snowflake.ParseLayout(s.Snowflake.Layout)
		if err != nil { // it is a finding of its own
			continue
		}
		one := numbered{source: s, number: s.Snowflake.Datacenter<<l.Worker | s.Snowflake.Worker}
		one.shape, _ = l.Shape(s.Snowflake.Epoch)
		if byNumber[one.number] == nil {
			order = append(order, one.number)
		}
		byNumber[one.number] = append(byNumber[one.number], one)
	}
	for _, number := range order {
		if list := byNumber[number]; len(list) > 1 {
			c.shared(&n, list)
		}
	}
	return n.findings
}

func (c *checker) shared(n *notes, list []numbered) {
	first := map[string]numbered{} // by store
	names := make([]string, len(list))
	sources := map[string]bool{}
	for i, one := range list {
		names[i] = one.source.Name
		sources[one.source.Name] = true
		store := one.source.Snowflake.Store
		switch other, known := first[store]; {
		case !known:
			first[store] = one
		case other.shape.Layout != one.shape.Layout || !other.shape.Epoch.Equal(one.shape.Epoch):
			n.add(one.source.Pos, LevelError, "source %s: it shares worker number %d and store %s with source %s in line %d, which has another layout or epoch: one of them is refused; "+
				"give it a file store of its own", one.source.Name, one.number, store, other.source.Name, other.source.Pos.Line)
		}
	}
	n.add(list[0].source.Pos, LevelNote, "sources %s share worker number %d: each makes ids that the others make, too, which is fine as long as no two fill the same column",
		strings.Join(names, ", "), list[0].number)
	for _, pair := range c.sameColumn(sources) {
		n.add(pair[1].Pos, LevelError, "rule %s: source %s shares worker number %d with source %s, which fills the same column on another listener by the rule in line %d: "+
			"ids would come twice; use one source for both", pair[1], pair[1].Source, list[0].number, pair[0].Source, pair[0].Pos.Line)
	}
}

// sameColumn finds pairs of rules of different sources among some that fill the same column
// of the same table: on one listener the first wins, so the later one must hold on a
// listener that has not the first.
func (c *checker) sameColumn(sources map[string]bool) (pairs [][2]*config.Rule) {
	exact := map[string][]*config.Rule{} // by table and column
	var wild, all []*config.Rule
	for i := range c.cfg.Rules {
		r := &c.cfg.Rules[i]
		if !sources[r.Source] {
			continue
		}
		name := fmt.Sprintf("%s.%s.%s", r.Schema, r.Table, strings.ToLower(r.Column))
		earlier := slices.Concat(exact[name], wild)
		if r.Wild() {
			earlier = all
			wild = append(wild, r)
		} else {
			exact[name] = append(exact[name], r)
		}
		for _, e := range earlier {
			if e.Source != r.Source && strings.EqualFold(e.Column, r.Column) && c.elsewhere(e, r) && e.Pattern().Overlaps(r.Pattern()) {
				pairs = append(pairs, [2]*config.Rule{e, r})
				break
			}
		}
		all = append(all, r)
	}
	return pairs
}

// elsewhere reports whether a rule holds on a listener that has not the earlier one.
func (c *checker) elsewhere(earlier, r *config.Rule) bool {
	if len(earlier.Listeners) == 0 {
		return false
	}
	for i := range c.cfg.Listeners {
		if name := c.cfg.Listeners[i].Name; r.On(name) && !earlier.On(name) {
			return true
		}
	}
	return false
}
