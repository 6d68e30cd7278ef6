package rewriter

import (
	"errors"
	"slices"

	"idproxy/ascii"
	"idproxy/rule"
)

// Role says what a parameter of a rewritten prepared statement is for.
type Role uint8

const (
	RoleValue Role = iota // the client's, of no concern here
	RoleBound             // the client's, and the id of a row: NULL and 0 generate
	RoleID                // hidden: the id of a row
	RoleFirst             // hidden: the first generated id, in LAST_INSERT_ID(?)
	// RoleOffset is hidden: what the last generated id lies above the first, behind LAST_INSERT_ID(?).
	RoleOffset
)

// Hidden reports whether the client does not know of the parameter.
func (r Role) Hidden() bool { return r >= RoleID }

// Parameter is one ? of a rewritten statement.
type Parameter struct {
	Role   Role
	Column uint8 // RoleBound, RoleID: whose id, as in Plan.Columns
	Later  bool  // RoleBound: it is of another row than the first
}

// Prepared is a statement to prepare, whose ids are bound when it is executed.
type Prepared struct {
	Text []byte
	// in the order of their ?; of one column, those that are ids are in row order
	Parameters []Parameter
	Client     int  // parameters that the client knows of
	ZeroDoubt  bool // as the plan's, and for literals that may be rounded to 0
	// some id is a literal that is worth what sql_mode says of text and rounding
	Literals bool
	Reads    bool      // the statement mentions LAST_INSERT_ID or identity
	Ignore   bool      // the statement says IGNORE
	NoLastID bool      // as the plan's
	Genes    []RowGene // of the ids that the statement gets, in row order
	// it has no column list: its values go to columns by their places in the table
	ByPosition bool

	plan Plan // without what belongs to the text
	last uint32
}

// maxParameters is the most that a server prepares: their number has 16 bits in the protocol.
const maxParameters = 1<<16 - 1

// ErrTooManyParameters says that the statement has room for its own parameters, not for those of its ids.
var ErrTooManyParameters = errors.New("too many parameters with those of the ids")

// Prepare writes the statement s, which p has read with Prepared set, with a hidden ? for each id
// that is generated.
func (p *Plan) Prepare(s *Statement) (*Prepared, error) {
	w := preparing{out: &Prepared{ZeroDoubt: p.ZeroDoubt || p.Expressions, Literals: p.Expressions, Reads: p.ReadsLastID, Ignore: p.Ignore, NoLastID: p.NoLastID, ByPosition: p.ByPosition}, plan: p}
	w.scanner = scanner{text: s.Text, mode: s.Mode, version: versionRefuse}
	w.offset = s.Bulk || p.Columns[0].Generated > 1
	if len(p.rows) > 0 {
		w.places = map[int]int{}
	}
	w.findNext()
	last := p.Columns[0].Generated - 1
	if p.Plain || p.carry {
		last = -1
	}
	w.write(last)
	if len(w.out.Parameters) > maxParameters && w.out.Client <= maxParameters {
		return nil, ErrTooManyParameters
	}
	w.out.plan = Plan{
		Rows: p.Rows, Columns: slices.Clone(p.Columns), Clauses: p.Clauses,
		Plain: p.Plain, NoLastID: p.NoLastID, Assigned: p.Assigned, Expressions: p.Expressions,
	}
	w.out.Genes = w.genesOf()
	for k := range p.slots {
		if p.slots[k].last.kind == valueBound {
			w.out.last |= 1 << k
		}
	}
	return w.out, nil
}

// Asks reports whether a statement has a parameter, and so is one to prepare.
func Asks(text []byte, m Mode) bool {
	s := scanner{text: text, mode: m}
	for {
		t := s.next()
		if t.kind == tokEnd || t.kind == tokBad || s.punct(t, '?') {
			return t.kind == tokPunct
		}
	}
}

// preparing writes a Prepared.
type preparing struct {
	scanner
	out    *Prepared
	plan   *Plan
	offset bool
	// where the next ? of the client's stands; behind the text when there is none
	mark   int
	bound  int         // the next of the plan's
	places map[int]int // the client's parameters by their places; nil: not needed
}

// findNext finds the next ? of the client's.
func (w *preparing) findNext() {
	for {
		t := w.next()
		if t.kind == tokEnd || t.kind == tokBad {
			w.mark = len(w.text)
			return
		}
		if w.punct(t, '?') {
			w.mark = t.start
			return
		}
	}
}

// copy writes text[start:end], and the parameters in it.
func (w *preparing) copy(start, end int) {
	w.out.Text = append(w.out.Text, w.text[start:end]...)
	for w.mark < end {
		param := Parameter{}
		if marks := w.plan.marks; w.bound < len(marks) && marks[w.bound].at == w.mark {
			param = Parameter{Role: RoleBound, Column: marks[w.bound].slot, Later: marks[w.bound].later}
			w.bound++
		}
		w.out.Parameters = append(w.out.Parameters, param)
		if w.places != nil {
			w.places[w.mark] = w.out.Client
		}
		w.out.Client++
		w.findNext()
	}
}

func (w *preparing) hide(role Role, column uint8) {
	w.out.Parameters = append(w.out.Parameters, Parameter{Role: role, Column: column})
}

// write is Plan.Append with parameters for ids.
func (w *preparing) write(last int) {
	p, out := w.plan, w.out
	var rows [MaxColumns]int
	at, move, put := 0, 0, 0
	for _, e := range p.edits {
		w.copy(at, int(e.start))
		at = int(e.end)
		switch e.op {
		case opText:
			out.Text = append(out.Text, p.buffer[p.texts[put].Start:p.texts[put].End]...)
			put++
		case opAppendID, opCloseID:
			out.Text = append(out.Text, ',')
			fallthrough
		case opID:
			if e.slot == 0 && rows[0] == last {
				w.function(w.offset)
			} else {
				out.Text = append(out.Text, '?')
				w.hide(RoleID, e.slot)
			}
			rows[e.slot]++
			if e.op == opCloseID {
				out.Text = append(out.Text, ')')
			}
			if at < len(w.text) && ascii.IsWord(w.text[at]) {
				out.Text = append(out.Text, ' ')
			}
		case opMove: // a literal
			out.Text = append(out.Text, ',')
			out.Text = append(out.Text, w.text[p.moves[move].Start:p.moves[move].End]...)
			move++
		case opMoveCarry:
			out.Text = append(out.Text, ',')
			fallthrough
		case opCarry:
			number := value{number: p.carried}
			out.Text = append(number.appendNumber(out.Text), "+0*"...)
			w.function(false)
		}
	}
	w.copy(at, len(w.text))
}

// function writes LAST_INSERT_ID(?), and +? where the last id may not be the first.
func (w *preparing) function(offset bool) {
	p, out := w.plan, w.out
	out.Text = append(out.Text, "LAST_INSERT_ID(?"...)
	w.hide(RoleFirst, 0)
	if p.variable {
		name := p.buffer[p.slots[0].name.Start:p.slots[0].name.End]
		out.Text = append(append(append(append(append(out.Text, "*("...), name...), "<=>"...), name...), ')')
	}
	out.Text = append(out.Text, ')')
	if offset {
		out.Text = append(out.Text, "+?"...)
		w.hide(RoleOffset, 0)
	}
}

// Bind makes plan, which keeps its memory, what the statement is with values for its bound ids:
// sets of them one behind the other, each in the order of the parameters. More than one set are
// rows of a bulk execution.
func (s *Prepared) Bind(plan *Plan, values []Value, sets int, columns []rule.Column) {
	kept := plan.Columns[:0]
	plan.reset()
	slots, edits := plan.slots, plan.edits
	*plan = s.plan
	plan.slots, plan.edits = slots, edits
	plan.Columns = append(kept, s.plan.Columns...)
	plan.Rows *= sets
	for k := range plan.Columns {
		plan.Columns[k].Generated *= sets
		plan.Columns[k].Explicit *= sets
		plan.Columns[k].Texts *= sets
	}
	for next := 0; next < len(values); {
		for _, param := range s.Parameters {
			if param.Role != RoleBound {
				continue
			}
			plan.Columns[param.Column].bind(values[next], columns[param.Column], s.last>>param.Column&1 != 0)
			next++
		}
	}
}

// bind counts a row whose id is bound. last: the last row's id is.
func (f *Filled) bind(v Value, column rule.Column, last bool) {
	if last {
		f.Last, f.HasLast = v.Number, v.Known
	}
	if v.Generate {
		f.Generated++
		return
	}
	if column.Text && !v.Known {
		f.Texts++
		return
	}
	f.Explicit++
	switch {
	case !v.Known:
		f.GreatestUnknown = true
	case v.Number > 1<<63-1 && column.Max <= 1<<63-1:
		f.BelowZero = true
	default:
		f.Greatest = max(f.Greatest, v.Number)
	}
}

// genesOf places the genes of a statement to prepare among the client's parameters.
func (w *preparing) genesOf() []RowGene {
	rows := append([]RowGene(nil), w.plan.rows...)
	for i := range rows {
		if rows[i].mark >= 0 {
			rows[i].Key = w.places[rows[i].mark]
		}
		if rows[i].bound >= 0 {
			rows[i].ID = w.places[rows[i].bound]
		}
	}
	return rows
}
