package rewriter

import (
	"errors"
	"slices"
	"strconv"

	"idproxy/ascii"
	"idproxy/rule"
)

// Errors of [Plan.Read] beside *[Unsupported].
var (
	// ErrNeedTable: the statement has no column list; read it again with the table's facts.
	ErrNeedTable = errors.New("table facts needed")
	// ErrRefusedByServer: the server refuses the text when it resolves names, before it writes
	// anything; forward it unchanged, so that the application sees the server's own error. When the
	// statement has no column list this rests on the table's facts: make sure they are fresh first.
	ErrRefusedByServer = errors.New("statement that the server refuses")
	// ErrNeedValues: only the server can tell what some expressions for ids are worth; ask it for
	// [Plan.Questions], and read the statement again with the answers.
	ErrNeedValues = errors.New("values of expressions needed")
	// ErrOpen: the end of the statement must be found first, by [Next].
	ErrOpen = errors.New("end of the statement needed")
)

// Unsupported is the error for a statement that is not edited. It carries no value of the
// statement.
type Unsupported struct {
	// what stands in the way, such as "INSERT ... SELECT" or "not understood at byte 37: unexpected
	// word"
	Form string
}

func (e *Unsupported) Error() string { return e.Form }

// Statement is one INSERT or REPLACE, and what is known of it.
type Statement struct {
	Text []byte // one statement, with or without a ';' at its end
	// Open: other statements may stand behind that ';', and Plan.End tells where this one ends. It is
	// read so only where Split ends it at the same place; else the error is ErrOpen.
	Open bool
	Mode Mode // of the session
	// those of the table whose column it has, in their order; the first feeds the last insert id
	Rules []*rule.Rule
	Table *rule.Table // nil: not known
	// what the server said of the plan's Questions, in their order; nil: not asked
	Values []Value
	// Prepared: the statement is to be prepared, and a ? may be an id. See Plan.Prepare.
	Prepared bool
	// UTF8 is the length in bytes of the longest UTF-8 character that a text keeps on its way to
	// the server; 0: ASCII alone may; -1: not even that. Genes by crc32 need it.
	UTF8 int
	Bulk bool // and several rows of parameters may be bound to it at once
	// Speller is asked for names of columns beyond ASCII. nil: a statement is not edited where they
	// matter.
	Speller Speller
}

// Speller knows names in the character set of a text.
type Speller interface {
	// Spell returns a name that is in UTF-8 as the text has it. Reading ends with its errors.
	Spell(name string) (string, error)
}

// UTF8 is the Speller of texts in UTF-8.
type UTF8 struct{}

// Spell implements Speller.
func (UTF8) Spell(name string) (string, error) { return name, nil }

// spell asks s for a name where it is beyond ASCII.
func spell(s Speller, name string) (string, error) {
	switch {
	case ascii.ValidString(name):
		return name, nil
	case s == nil:
		return "", unsupported("column name beyond ASCII")
	}
	return s.Spell(name)
}

// Value is what an expression for an id makes of it.
type Value struct {
	Generate bool   // NULL, or 0 where 0 generates
	Known    bool   // otherwise: Number is the explicit id
	Number   uint64 // as an OK packet shows it: -5 is 2^64-5
}

// Plan is what to do to one INSERT or REPLACE. The zero Plan is ready; reading another statement
// keeps its memory.
type Plan struct {
	Rows    int      // tuples of the statement
	Columns []Filled // one per rule
	Clauses
	// Plain: ids are plain numbers everywhere; the insert id of the OK packet and LAST_INSERT_ID()
	// are the caller's business.
	Plain    bool
	NoLastID bool // and none of the columns feeds them: all their ids are wide
	// the list of ON DUPLICATE KEY UPDATE got the assignment id=LAST_INSERT_ID(id) from the plan
	Assigned    bool
	Expressions bool // some id is an expression that the server was asked for
	Asks        bool // the statement has a ?
	// some id is written 0, '0' or DEFAULT: NO_AUTO_VALUE_ON_ZERO of the Mode decided
	ZeroDoubt  bool
	ByPosition bool // there is no column list: values go to columns by their places in the table
	// Selected: the rows come from a query; how many there are only the server can tell. Ask it by
	// AppendCount, give Count the answer, and write the statement with AppendSelect in place of
	// Append.
	Selected bool
	// Genes are the low bits of the ids that are generated, by column and in row order; none where
	// the column's rule has no gene. Those of a statement to prepare are in Prepared.
	Genes     [][]uint16
	Questions []Span // expressions for ids whose value only the server can tell

	extent
	places
	draft
	shapes
	report
	asked []question // what is to be known of each of the Questions
	parameters
	scratch []byte
	rowWord bool // each tuple has ROW in front
	calls   bool // a tuple may call a function that is none of the servers' own
	query   query
	width   int // values per row of it
}

// extent is where the parts of a statement stand.
type extent struct {
	body int // where its rows begin: behind SET, at VALUES, at the query
	End  int // where it ends: at its ';', or where the text does
}

// Clauses is what a statement has beside its rows.
type Clauses struct {
	Ignore    bool // IGNORE
	Update    bool // ON DUPLICATE KEY UPDATE
	OwnLastID bool // its list calls LAST_INSERT_ID(x), by the application's wish
	RowLastID bool // a row in front of it does
	Delayed   bool // DELAYED, on a server that heeds it
	Returning bool // RETURNING
	// the statement mentions LAST_INSERT_ID or identity outside strings and comments
	ReadsLastID bool
}

// draft is what is written otherwise than the statement has it.
type draft struct {
	edits  []edit
	moves  []Span // sources of opMove and opMoveCarry, in their order
	texts  []Span // what opText writes, in the buffer, in their order
	buffer []byte
}

func (d *draft) reset() {
	d.edits, d.moves, d.texts, d.buffer = d.edits[:0], d.moves[:0], d.texts[:0], d.buffer[:0]
}

// parameters is what is known of the ? of a statement to prepare.
type parameters struct {
	marks []mark    // those that are ids, in their order
	rows  []RowGene // the genes of the ids, in row order
}

func (p *parameters) reset() { p.marks, p.rows = p.marks[:0], p.rows[:0] }

// report is how a statement makes the server report its first id.
type report struct {
	// the last tuple is explicit and carries LAST_INSERT_ID(first), instead of the last generated
	// one
	carry   bool
	carried uint64 // the id of that tuple
	// variable: LAST_INSERT_ID(first*(`id`<=>`id`)) stands for LAST_INSERT_ID(first), the same but
	// no constant. MySQL looks for the partitions of constant rows before it runs the first: in a
	// table partitioned by its id, rows that read the last insert id would read the new one.
	variable bool
}

// Filled is what a plan does to one column.
type Filled struct {
	Generated int // tuples whose id comes from the source
	Explicit  int // tuples that bring one
	// tuples of a text column that bring one which is no whole number, or an expression: no source
	// gives such an id
	Texts int
	Bound int // tuples of a statement to prepare whose id is a ?
	// of those generated: tuples with an expression, which get the id if it is NULL; wide ids only
	Fallback int
	// the last tuple's id, when that is an explicit number: as the OK packet shows it
	Last            uint64
	HasLast         bool
	Greatest        uint64 // greatest explicit id
	GreatestUnknown bool   // some explicit id is no number that is known
	BelowZero       bool   // some explicit id is a number below zero
}

// MayCall reports whether the statement, whose text is what Read read, may call a function that is
// none of the servers' own: one that is stored or loaded can set variables of the session. A list
// of columns calls none, and tuples were looked at while they were read.
func (p *Plan) MayCall(text []byte) bool {
	return p.calls || CallsUnknown(text[max(p.body, p.last.End):], nil)
}

// AskedFor returns the index in Columns of the column that the i-th of the Questions is about.
func (p *Plan) AskedFor(i int) int { return int(p.asked[i].slot) }

// AskedLater reports whether the i-th of the Questions is about another row than the first.
func (p *Plan) AskedLater(i int) bool { return p.asked[i].later }

// question is what is to be known of an expression that the server is asked for.
type question struct {
	slot  uint8 // whose id it is
	later bool  // in another row than the first
}

// later reports whether another row than the first is read.
func (r *planReader) later() bool { return r.plan.Rows > 0 && !r.assigning }

// edit replaces the bytes from start up to end with what op says. The edits of a plan ascend and do
// not overlap.
type edit struct {
	start, end uint32
	op         op
	slot       uint8 // whose id
}

type op uint8

const (
	opDelete    op = iota // nothing
	opText                // the next of the texts
	opID                  // the next id
	opAppendID            // a comma and the next id
	opMove                // a comma and the bytes of the next move
	opCarry               // the explicit id and +0*LAST_INSERT_ID(first)
	opMoveCarry           // a comma and what opCarry writes
	opCloseID             // a comma, the next id and a parenthesis
)

// widestEdit bounds the bytes an edit adds, but for texts and moves, whose lengths are known.
const widestEdit = len(",+0*LAST_INSERT_ID(*(<=>))") + 2*20

// MaxColumns bounds the columns of one table that get ids.
const MaxColumns = 16

func (p *Plan) reset() {
	p.places.reset()
	p.draft.reset()
	p.shapes.reset()
	p.parameters.reset()
	*p = Plan{
		Columns: p.Columns[:0], Questions: p.Questions[:0], Genes: p.Genes[:0], asked: p.asked[:0], scratch: p.scratch[:0],
		places: p.places, draft: p.draft, shapes: p.shapes, parameters: p.parameters,
	}
}

func (d *draft) edit(start, end int, o op, slot int) {
	d.edits = append(d.edits, edit{start: uint32(start), end: uint32(end), op: o, slot: uint8(slot)})
}

// insert puts the bytes of the buffer from start on into the text, at i.
func (d *draft) insert(i, start int) {
	d.edit(i, i, opText, 0)
	d.texts = append(d.texts, Span{Start: start, End: len(d.buffer)})
}

// Append appends the rewritten statement to dst. text is what Read read, unchanged; ids[i] are
// p.Columns[i].Generated ids, ascending, in row order, two words each where they are wide; it
// panics when they are fewer.
//
// Generated rows get plain numbers, but for the last one's id in the first column of a plan that is
// not Plain: it reads LAST_INSERT_ID(first)+k, which makes the server itself report and remember
// the first.
func (p *Plan) Append(dst, text []byte, ids [][]uint64) []byte {
	dst = slices.Grow(dst, p.size(len(text)))
	last := p.Columns[0].Generated - 1
	if p.Plain || p.carry {
		last = -1
	}
	w := idWriter{plan: p, text: text, ids: ids, last: last}
	at, move, put := 0, 0, 0
	for _, e := range p.edits {
		dst = append(dst, text[at:e.start]...)
		at = int(e.end)
		switch e.op {
		case opText:
			dst = append(dst, p.buffer[p.texts[put].Start:p.texts[put].End]...)
			put++
		case opID, opAppendID, opCloseID:
			dst = w.append(dst, e)
		case opMove:
			dst = append(dst, ',')
			dst = append(dst, text[p.moves[move].Start:p.moves[move].End]...)
			move++
		case opMoveCarry:
			dst = append(dst, ',')
			fallthrough
		case opCarry:
			dst = strconv.AppendUint(dst, p.carried, 10)
			dst = append(dst, "+0*"...)
			dst = p.appendLast(dst, ids[0][0], ids[0][0])
		}
	}
	return append(dst, text[at:]...)
}

// idWriter writes the ids of a statement.
type idWriter struct {
	plan *Plan
	text []byte
	ids  [][]uint64
	last int             // the row whose id in the first column the server is to report; -1: none
	rows [MaxColumns]int // that were written
	id   decimal
}

// append appends the next id of a column, and what the edit has around it.
func (w *idWriter) append(dst []byte, e edit) []byte {
	if e.op != opID {
		dst = append(dst, ',')
	}
	column, row := w.ids[e.slot], w.rows[e.slot]
	w.rows[e.slot]++
	switch form := w.plan.slots[e.slot].form; {
	case form.Wide():
		dst = form.AppendLiteral(dst, [2]uint64{column[2*row], column[2*row+1]})
	case e.slot == 0 && row == w.last:
		dst = w.plan.appendLast(dst, column[0], column[row])
	default:
		dst = w.id.append(dst, column[row])
	}
	if e.op == opCloseID {
		dst = append(dst, ')')
	}
	// as in SET id='0'ON DUPLICATE KEY ...
	if at := int(e.end); at < len(w.text) && ascii.IsWord(w.text[at]) {
		dst = append(dst, ' ')
	}
	return dst
}

func (p *Plan) appendLast(dst []byte, first, last uint64) []byte {
	dst = append(dst, "LAST_INSERT_ID("...)
	dst = strconv.AppendUint(dst, first, 10)
	if p.variable {
		name := p.buffer[p.slots[0].name.Start:p.slots[0].name.End]
		dst = append(append(dst, "*("...), name...)
		dst = append(append(dst, "<=>"...), name...)
		dst = append(dst, ')')
	}
	dst = append(dst, ')')
	switch {
	case last > first:
		dst = strconv.AppendUint(append(dst, '+'), last-first, 10)
	case last < first: // against the contract, but still the right id
		dst = strconv.AppendUint(append(dst, '-'), first-last, 10)
	}
	return dst
}

func (p *Plan) size(text int) int {
	n := text + len(p.edits)*21 + 2*widestEdit + 2*len(p.buffer)
	for i := range p.slots {
		if p.slots[i].form.Wide() {
			n += p.Columns[i].Generated * rule.LongestLiteral
		}
	}
	for _, spans := range [...][]Span{p.moves, p.texts} {
		for _, s := range spans {
			n += s.End - s.Start
		}
	}
	return n
}

func unsupported(form string) error { return &Unsupported{Form: form} }

// mark is a ? that is the id of a row.
type mark struct {
	at    int
	slot  uint8
	later bool // in another row than the first
}
