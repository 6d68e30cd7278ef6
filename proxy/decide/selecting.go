package decide

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Selection is what is known of an INSERT whose rows come from a query: how
// many there are must be asked in front of it.
type Selection struct {
	Counted  *rewriter.Counted
	Tries    int                // that failed, for more rows had come
	had      uint64             // ids for the last of them
	numbers  rewriter.Numbering // of the last try; its ids went into no row
	Isolated bool               // the transaction sees an older state than the INSERT will
	Sound    bool               // the server can prepare it
	Exact    exactness
}

// maxTries bounds how often an INSERT ... SELECT is tried while rows come to the
// tables that it reads. Each try has twice as many ids in store.
const maxTries = 10

// exactness is whether the values of a query come out of another query around it
// as they are. MariaDB computes quotients with more digits than their type has,
// and loses those in between; likewise the digits of a DOUBLE behind its last decimal.
type exactness uint8

const (
	exactUnknown exactness = iota
	ExactSurely
	ExactNot
)

// selecting is an INSERT whose rows come from a query, in a text.
type selecting struct {
	*filled
	selection *Selection
	beside    bool // ids stand beside the values
}

func (x *selecting) Draw(s Carrier) (expected []protocol.Expect, at int, err error) {
	p, plan := &x.Parts[0], &x.plans[0]
	if x.selection.Tries == 0 { // those of a try that failed are still there
		p.askAgain()
	}
	if err := x.number(s, p, plan); err != nil {
		return nil, p.result, err
	}
	e := p.expect(plan, s.Conversation().Has(mysql.CLIENT_FOUND_ROWS))
	e.Selects(plan, &x.selection.numbers.Columns[0])
	return []protocol.Expect{e}, 0, nil
}

// StoredSQL asks for the least id of the rows that is in the table.
func (x *selecting) StoredSQL(e *protocol.Expect, table, id []byte) string {
	n := &x.selection.numbers.Columns[0]
	if len(n.Runs) < 2 {
		return storedAmong(e, &x.Parts[0], table, id, string(appendBetween(nil, id, e.First, e.Last)))
	}
	var made, single []byte // others' ids may stand between runs
	for _, run := range n.Runs {
		if run.Count == 1 {
			single = strconv.AppendUint(append(single, ','), run.First, 10)
			continue
		}
		made = append(appendBetween(made, id, run.First, run.First+(run.Count-1)*n.Stride), " OR "...)
	}
	if single == nil {
		made = made[:len(made)-len(" OR ")]
	} else {
		made = fmt.Appendf(made, "%s IN (%s)", id, single[1:])
	}
	return storedAmong(e, &x.Parts[0], table, id, "("+string(made)+")")
}

func (x *selecting) Write(_ Carrier, st *Command) (payload []byte, made bool, err error) {
	span := x.Parts[0].span
	out := append(append(st.Out[:0], 0, 0, 0, 0), st.Prefix...)
	out = append(out, st.Text[:span.Start]...)
	out = x.plans[0].AppendSelect(out, st.Text[span.Start:span.End], &x.selection.numbers)
	st.Out = append(out, st.Text[span.End:st.End]...)
	return st.Out[wire.HeaderLen:], true, nil
}

func (x *selecting) Asks() bool { return !x.plans[0].NoLastID }

// number draws the ids for the rows of a query.
func (x *selecting) number(s Carrier, p *Part, plan *rewriter.Plan) error {
	stride, sel := s.Conversation().Increment(), x.selection
	numbers := make([]rewriter.Numbers, len(p.Rules))
	p.ids = make([][]uint64, len(p.Rules))
	for i, r := range p.Rules {
		filled, counted := &plan.Columns[i], &sel.Counted.Columns[i]
		n := &numbers[i]
		n.Stride, n.Float = stride, counted.Float
		if filled.Explicit > 0 {
			n.Given = rewriter.GivenAny
			if r.Explicit == rule.Advance {
				n.Given, n.Most = rewriter.GivenUpTo, filled.Greatest
			}
		}
		from, err := idsFor(s, p, i)
		if err != nil {
			return err
		}
		if err := advance(s, from, r, filled); err != nil {
			return err
		}
		want := uint64(filled.Generated)
		if i < len(sel.numbers.Columns) {
			before := sel.numbers.Columns[i]
			if before.Stride == stride {
				n.Runs = before.Runs
			}
		}
		if sel.Tries > 0 && (filled.Explicit == 0 || want > 0) {
			want = max(want, 2*sel.had+16)
		}
		if err := drawRuns(s, from, n, want); err != nil {
			return clienterr.OutOfIDs(r, err)
		}
	}
	sel.numbers = rewriter.Numbering{Columns: numbers, LastID: sel.Counted.LastID, Beside: x.beside}
	s.Filled()
	return nil
}

// countsRows reports whether the rows that went in are as many as those that the
// reply says were affected, and have the first ones of their ids. Beside the values
// of a query with a LIMIT they need not: MariaDB may number rows that it leaves out
// then, as behind a sort of what a view joins.
func (x *selecting) countsRows() bool {
	plan := &x.plans[0]
	plain, _ := plan.CanBeside()
	return !plan.Ignore && !plan.Update && !plan.Returning && x.Parts[0].head.Kind == rewriter.Insert && (plain || !x.beside)
}

// Went returns the ids that were drawn for more rows than went in, which are
// the first ones of those that were to.
func (x *selecting) Went(s Carrier, rows uint64) {
	if !x.countsRows() {
		return
	}
	for i := range x.selection.numbers.Columns {
		n := &x.selection.numbers.Columns[i]
		from, err := idsFor(s, &x.Parts[0], i)
		if err != nil || len(n.Runs) == 0 || n.Count() <= rows {
			continue
		}
		last := n.Runs[len(n.Runs)-1]
		spare := min(n.Count()-rows, last.Count)
		end := last.First + last.Count*n.Stride
		from.Return(end-spare*n.Stride, end)
	}
}

// Outnumbered takes back what was decided, for rows have come since they were counted. The ids
// that the statement was to have went into no row, and serve the next try.
func (x *selecting) Outnumbered(s Carrier) (refused *mysql.MyError, err error) {
	table := x.Parts[0].Facts.Name
	if taken, err := x.tookBack(s); err != nil || !taken {
		return clienterr.HalfDone(table), err
	}
	x.selection.Counted = nil
	if x.selection.Tries++; x.selection.Tries < maxTries {
		return nil, nil
	}
	return clienterr.RowsComing(table, maxTries), nil
}

// tookBack makes sure that no row of a try is in the table whose guard has failed.
// With the ids beside the values some may have gone in, and the engine took them
// back if it still is the one that was asked for: the ids are used no more.
func (x *selecting) tookBack(s Carrier) (bool, error) {
	sel, p := x.selection, &x.Parts[0]
	sel.had = sel.numbers.Columns[0].Count()
	if !x.beside {
		return true, nil
	}
	sel.numbers.Columns = nil
	if err := FindEngine(s.Asker(), p.Name, p.Facts); err != nil {
		return false, err
	}
	return p.Facts.Engine() == catalog.EngineTransactional, nil
}

// FindEngine asks whether the table's engine takes the rows of a statement back
// that fails in the middle.
func FindEngine(a *catalog.Asker, t rewriter.Name, f *catalog.Table) error {
	engine, err := a.Engine(t)
	if err == nil {
		f.LearnEngine(engine)
	}
	return err
}

// ExecutionOf writes the execution x, of another statement than the client's, with the
// given ones of its parameters.
func ExecutionOf(x *wire.Execute, caps uint64, id uint32, parameters []wire.Parameter) []byte {
	head := bytes.Clone(x.Head)
	binary.LittleEndian.PutUint32(head[1:], id)
	if len(parameters) == 0 {
		const attributes = 8 // the flag of a number of parameters where the statement has none
		head[5] &^= attributes
		return head
	}
	one := wire.Execute{Head: head}
	return one.AppendExecute(nil, caps, parameters)
}

// selectingExecution is the execution of a prepared INSERT whose rows come from a query.
type selectingExecution struct {
	selecting
	e       *protocol.Stmt
	one     *wire.Execute // the client's packet
	text    []byte        // of what the client prepared
	running uint32        // the statement that is executed in its place
}

// Write prepares the statement with its ids, and returns the execution of that.
func (x *selectingExecution) Write(s Carrier, st *Command) (payload []byte, made bool, err error) {
	prepared, err := s.Asker().Prepare(x.plans[0].AppendSelect(nil, x.text, &x.selection.numbers))
	if err != nil {
		return nil, false, err
	}
	if err := s.ReadAsNow(); err != nil {
		return nil, false, err
	}
	x.running = prepared.ID
	st.Out = append(append(st.Out[:0], 0, 0, 0, 0), ExecutionOf(x.one, s.Conversation().Caps, x.running, x.one.Parameters)...)
	return st.Out[wire.HeaderLen:], true, nil
}

func (x *selectingExecution) Begin(Carrier, *Command) error {
	x.e.Long = protocol.LongData{}
	return nil
}

// LetGo closes the statement that was executed.
func (x *selectingExecution) LetGo(s Carrier) error { return s.Asker().Close(x.running) }
