package decide

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// keyed reports whether the ids of some rule have genes.
func keyed(rules []*rule.Rule) bool {
	return slices.ContainsFunc(rules, func(r *rule.Rule) bool { return r.Gene != nil })
}

// keyedByText reports whether those of some rule come from a text.
func keyedByText(rules []*rule.Rule) bool {
	return slices.ContainsFunc(rules, func(r *rule.Rule) bool { return r.Gene != nil && r.Gene.CRC32 })
}

// keyParams returns the parameters of the client that genes come from, ascending.
func keyParams(genes []rewriter.RowGene) (params []int) {
	for _, g := range genes {
		if g.Key >= 0 {
			params = append(params, g.Key)
		}
	}
	slices.Sort(params)
	return slices.Compact(params)
}

// genes finds the genes of the ids that an execution gets, for a plan that Bind
// has made.
func (x *execution) genes(plan *rewriter.Plan, s *protocol.Vars) error {
	f := FillerOf(x.e)
	rows := f.Plan.Genes
	if len(rows) == 0 {
		return nil
	}
	if err := x.readKeys(f, x.e); err != nil {
		return err
	}
	plan.Genes = slices.Grow(plan.Genes[:0], len(f.rules))[:len(f.rules)]
	for i := range plan.Genes {
		plan.Genes[i] = plan.Genes[i][:0]
	}
	for set := range x.rows {
		for _, g := range rows {
			given := g.Given || g.ID >= 0 && !x.generates(f, set, g.ID)
			if given && f.rules[g.Column].Gene.Shard == nil {
				continue
			}
			value := g.Value
			if g.Key >= 0 {
				i, _ := slices.BinarySearch(f.keyed, g.Key)
				var err error
				if value, err = f.geneOf(g.Column, &x.keys[set*len(f.keyed)+i], s); err != nil {
					return err
				}
			}
			if !given {
				plan.Genes[g.Column] = append(plan.Genes[g.Column], value)
			}
		}
	}
	return nil
}

// generates reports whether a bound id generates, in the given row of parameters.
func (x *execution) generates(f *filler, set, param int) bool {
	i, _ := slices.BinarySearchFunc(f.bound, param, func(b boundID, param int) int { return b.param - param })
	return x.values[set*len(f.bound)+i].Generate
}

// readKeys takes the keys out of the parameters, row by row. NULL stands for what
// is no value.
func (x *execution) readKeys(f *filler, e *protocol.Stmt) error {
	x.keys = x.keys[:0]
	if len(f.keyed) == 0 {
		return nil
	}
	if !x.bulk {
		for _, param := range f.keyed {
			if e.Long.Has(param) {
				return clienterr.Unsupported(f.rules[0], f.name, "long data for a column that is the gene of an id")
			}
			x.keys = append(x.keys, x.One.Parameters[param])
		}
		return nil
	}
	x.many.Walk(func(_, param int, indicator byte, value []byte) {
		if _, ok := slices.BinarySearch(f.keyed, param); ok {
			x.keys = append(x.keys, wire.Parameter{Type: x.many.Types[param], Null: indicator != wire.IndicatorNone, Value: value})
		}
	})
	return nil
}

// geneOf returns the gene that a parameter makes.
func (f *filler) geneOf(column uint8, p *wire.Parameter, s *protocol.Vars) (gene uint16, err error) {
	rule := f.rules[column]
	if rule.Gene.CRC32 && s.Known&protocol.KnowUTF8 == 0 {
		return 0, NeedProbe{}
	}
	gene, why := geneOf(rule.Gene, f.keys[column], p, int(s.UTF8))
	if why != "" {
		return 0, clienterr.Unsupported(rule, f.name, why+" in column "+rule.Gene.Column+", the gene of the id")
	}
	if rule.Gene.Elsewhere(gene) {
		return 0, clienterr.OtherShard(rule, keyText(p), gene)
	}
	return gene, nil
}

// keyText is a key as a message has it.
func keyText(p *wire.Parameter) string {
	if number, whole := p.Integer(); whole {
		return strconv.FormatUint(number, 10)
	}
	if kind := byte(p.Type); kind == mysql.MYSQL_TYPE_FLOAT || kind == mysql.MYSQL_TYPE_DOUBLE {
		number, _ := wholeFloat(p)
		return strconv.FormatUint(number, 10)
	}
	const most = 64
	inner, _ := p.Inner()
	return "'" + strings.ToValidUTF8(string(inner[:min(len(inner), most)]), "?") + "'"
}

// geneOf returns the gene that a parameter makes; utf8 is as state.utf8.
func geneOf(g *rule.Gene, key rule.Column, p *wire.Parameter, utf8 int) (gene uint16, why string) {
	kind := byte(p.Type)
	if p.Null || kind == mysql.MYSQL_TYPE_NULL {
		return 0, "NULL, DEFAULT or the like"
	}
	if number, whole := p.Integer(); whole {
		if number > math.MaxInt64 && p.Type&wire.Unsigned == 0 {
			return 0, "a number below zero"
		}
		return g.OfNumber(number, key)
	}
	switch {
	case kind == mysql.MYSQL_TYPE_FLOAT || kind == mysql.MYSQL_TYPE_DOUBLE:
		if number, whole := wholeFloat(p); whole {
			return g.OfNumber(number, key)
		}
		return 0, "a number that is not whole"
	case wire.HoldsText(kind), kind == mysql.MYSQL_TYPE_NEWDECIMAL && !g.CRC32:
		inner, _ := p.Inner()
		return g.OfText(inner, key, utf8)
	}
	return 0, "a value of a type that is neither whole number nor text"
}

// wholeFloat reads a floating-point parameter that is a whole number, which
// servers store as it is.
func wholeFloat(p *wire.Parameter) (n uint64, ok bool) {
	var f float64
	if byte(p.Type) == mysql.MYSQL_TYPE_FLOAT {
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(p.Value)))
	} else {
		f = math.Float64frombits(binary.LittleEndian.Uint64(p.Value))
	}
	const exact = 1 << 53
	if !(f >= 0 && f <= exact) || f != math.Trunc(f) {
		return 0, false
	}
	return uint64(f), true
}
