package rewriter

import "idproxy/rule"

// places is where the columns of the rules stand in a statement.
type places struct {
	slots []slot
	keys  []geneKey
	// the slots, and from firstKey on the keys, that have a place in the tuples, in the order of
	// their places
	order  []uint8
	behind []uint8 // the slots whose ids are appended to the tuples
	names  []token // the columns that the statement names, in the list or behind SET
}

func (p *places) reset() {
	p.slots, p.keys, p.order, p.behind, p.names = p.slots[:0], p.keys[:0], p.order[:0], p.behind[:0], p.names[:0]
}

// slot is a column that gets ids, and its place in the statement.
type slot struct {
	rule       *rule.Rule
	spelled    string    // its name as the text has it
	name       Span      // and in backticks, in the buffer
	text       bool      // CHAR or VARCHAR
	form       rule.Form // how an id is written
	uuid       bool      // MariaDB's UUID
	key        int       // of its gene
	max        uint64    // 0: not known
	at         int       // its position among the values; -1: it has none, and its id is appended
	own, comma token     // its name in the column list, and what follows
	last       value     // the id of the tuple read last
}

// geneKey is a column that genes come from, and its place in the statement.
type geneKey struct {
	name    string
	spelled string // as the text has it
	known   rule.Column
	at      int // its position among the values; -1: it has none
	last    keyValue
}

// keyValue is what a row has for a key.
type keyValue struct {
	kind  keyKind
	token token // keyText: the literal; keyBound: its ?
	value uint64
}

type keyKind uint8

const (
	keyOther  keyKind = iota // NULL, DEFAULT, an expression
	keyNumber                // digits
	keyText
	keyBound // a ?
)

// RowGene is the gene of an id of a statement to prepare.
type RowGene struct {
	Column uint8 // whose id, as in Plan.Columns
	ID     int   // the client's parameter that is the id; -1: it is generated always
	Key    int   // the client's parameter that is the key; -1: Value is the gene
	Value  uint16
	Given  bool // the application writes the id: the gene only tells the shard
	mark   int  // where the ? of the key stands
	bound  int  // and that of the id
}

// firstKey is where the keys begin in Plan.order: below are slots.
const firstKey = MaxColumns

// keyOf returns the index of the key that a column is, or -1.
func (p *places) keyOf(column []byte) int {
	for i := range p.keys {
		if key := &p.keys[i]; isSpelled(column, key.spelled, key.name) {
			return i
		}
	}
	return -1
}

// slotOf returns the index of the slot that a column is, or -1.
func (p *places) slotOf(column []byte) int {
	for k := range p.slots {
		if c := &p.slots[k]; isSpelled(column, c.spelled, c.rule.Column) {
			return k
		}
	}
	return -1
}

// inOrder puts a slot or key among those that have a place.
func (p *places) inOrder(k uint8) {
	i := len(p.order)
	p.order = append(p.order, 0)
	for i > 0 && p.placeOf(p.order[i-1]) > p.placeOf(k) {
		p.order[i] = p.order[i-1]
		i--
	}
	p.order[i] = k
}

// placeOf returns the position among the values of what stands in order.
func (p *places) placeOf(k uint8) int {
	if k >= firstKey {
		return p.keys[k-firstKey].at
	}
	return p.slots[k].at
}
