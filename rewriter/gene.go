package rewriter

import (
	"slices"
	"strings"

	"idproxy/rule"
)

// keyReader finds the columns that genes come from, and the genes of the rows.
type keyReader struct{ *planReader }

// find finds the columns that the genes of the slots come from.
func (r *keyReader) find() error {
	p := r.plan
	for k := range p.slots {
		c := &p.slots[k]
		g := c.rule.Gene
		if g == nil {
			continue
		}
		spelled, err := spell(r.speller, g.Column)
		if err != nil {
			return err
		}
		if r.plan.slotOf([]byte(spelled)) >= 0 {
			return unsupported("gene of column " + g.Column + ", which is generated itself")
		}
		if c.key = r.plan.keyOf([]byte(spelled)); c.key < 0 {
			c.key = len(p.keys)
			p.keys = append(p.keys, geneKey{name: g.Column, spelled: spelled, at: -1})
		}
		if err := r.fits(g, &p.keys[c.key]); err != nil {
			return err
		}
	}
	if len(p.keys) > 0 {
		p.Genes = slices.Grow(p.Genes, len(p.slots))[:len(p.slots)]
		for k := range p.Genes {
			p.Genes[k] = p.Genes[k][:0]
		}
	}
	return nil
}

func (r *keyReader) fits(g *rule.Gene, k *geneKey) error {
	if r.table == nil { // nobody executes it: explain without a server
		k.known = rule.Column{Type: "BIGINT", Max: 1<<64 - 1, Length: 1 << 30, Charset: "utf8mb4"}
		return nil
	}
	known, _, ok := r.table.Column(g.Column)
	if !ok {
		return unsupported("gene of column " + g.Column + ", which the table does not have")
	}
	k.known = known
	if why := g.Fits(known); why != "" {
		return unsupported("gene of column " + g.Column + ", which " + why)
	}
	return nil
}

// keyValue reads the value of a key. Where it is nothing but a literal or a ?, ok is true and
// behind is what follows it; else nothing was read.
func (r *planReader) keyValue(i int) (behind token, ok bool) {
	k := &r.plan.keys[i]
	start, shape := r.spot(), r.shape
	t := r.next()
	k.last = keyValue{token: t}
	switch {
	case t.kind == tokDigits:
		var fits bool
		if k.last.value, fits = rule.WholeNumber(r.text[t.start:t.end]); fits {
			k.last.kind = keyNumber
		}
	case t.kind == tokString:
		k.last.kind = keyText
	case r.punct(t, '?') && r.prepared:
		k.last.kind = keyBound
	}
	if k.last.kind != keyOther {
		if behind = r.next(); r.ends(behind) {
			return behind, true
		}
	}
	k.last.kind = keyOther
	r.goBack(start)
	r.shape = shape
	return token{}, false
}

// row notes the genes of the ids that the row just read gets.
func (r *keyReader) row() error {
	if len(r.plan.keys) == 0 {
		return nil
	}
	return r.genes()
}

// genes is row where ids have genes.
func (r *keyReader) genes() error {
	p := r.plan
	for k := range p.slots {
		c := &p.slots[k]
		g := c.rule.Gene
		given := c.last.kind != valueMade && c.last.kind != valueBound
		if g == nil || given && g.Shard == nil {
			continue
		}
		row := RowGene{Column: uint8(k), ID: -1, Key: -1, Given: given, mark: -1, bound: -1}
		if c.last.kind == valueBound {
			row.bound = c.last.start
		}
		if err := r.gene(g, &p.keys[c.key], &row); err != nil {
			return err
		}
		if row.mark < 0 && g.Elsewhere(row.Value) {
			return &OtherShard{Rule: c.rule, Key: r.keyText(&p.keys[c.key].last), Gene: row.Value}
		}
		if r.prepared {
			p.rows = append(p.rows, row)
		}
		if c.last.kind == valueMade {
			p.Genes[k] = append(p.Genes[k], row.Value)
		}
	}
	return nil
}

func (r *keyReader) gene(g *rule.Gene, k *geneKey, row *RowGene) error {
	why := ""
	switch {
	case k.at < 0:
		return unsupported("a row without column " + g.Column + ", the gene of its id")
	case k.last.kind == keyNumber:
		row.Value, why = g.OfNumber(k.last.value, k.known)
	case k.last.kind == keyText:
		r.plan.scratch = r.decode(r.plan.scratch[:0], k.last.token)
		row.Value, why = g.OfText(r.plan.scratch, k.known, r.utf8)
	case k.last.kind == keyBound:
		row.mark = k.last.token.start
	default:
		why = "NULL, DEFAULT or an expression"
		if !g.CRC32 {
			why = "what is no plain whole number"
		}
	}
	if why != "" {
		return unsupported(why + " in column " + g.Column + ", the gene of the id")
	}
	return nil
}

// assigned looks at a column to which ON DUPLICATE KEY UPDATE assigns what comes next. Where rows are of
// one shard, a key keeps its value or gets that of the row to insert, which was looked at.
func (r *keyReader) assigned(column []byte) error {
	k := r.plan.keyOf(column)
	if k < 0 || r.sameKey(k) || !slices.ContainsFunc(r.plan.slots, func(c slot) bool { return c.rule.Gene != nil && c.key == k && c.rule.Gene.Shard != nil }) {
		return nil
	}
	return unsupported("ON DUPLICATE KEY UPDATE with a value for column " + r.plan.keys[k].name + ", which tells the shard, other than VALUES(" + r.plan.keys[k].name + ")")
}

// sameKey reports whether the k-th key itself or VALUES of it comes next, of the row that is there or the
// row to insert, and is all there is of the value.
func (r *keyReader) sameKey(k int) bool {
	ahead := *r.planReader
	t := ahead.next()
	inserted := (ahead.isWord(t, "values") || ahead.mode.MariaDB && ahead.isWord(t, "value")) && ahead.punct(ahead.peek(), '(')
	if inserted {
		ahead.next()
		t = ahead.next()
	}
	var name []byte
	for range 3 {
		name = ahead.nameBehindDot(t)
		if !ahead.punct(ahead.peek(), '.') {
			break
		}
		ahead.next()
		t = ahead.next()
	}
	if name == nil || r.plan.keyOf(name) != k || inserted && !ahead.punct(ahead.next(), ')') {
		return false
	}
	return (inserted || !r.renamed) && ahead.ends(ahead.next())
}

// OtherShard is the error for a row whose key is of another shard than the rule's.
type OtherShard struct {
	Rule *rule.Rule
	Key  string // the literal
	Gene uint16
}

// Error implements error, without the key.
func (*OtherShard) Error() string { return "a row of another shard" }

// keyText returns a literal as it stands in the statement, as much as a message has room for.
func (r *keyReader) keyText(v *keyValue) string {
	const most = 64
	text := r.text[v.token.start:v.token.end]
	return strings.ToValidUTF8(string(text[:min(len(text), most)]), "?")
}
