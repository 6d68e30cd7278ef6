package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/ask"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// selection is what is known of an INSERT whose rows come from a query: how
// many there are must be asked in front of it.
type selection struct {
	counted  *rewriter.Counted
	tries    int                // that failed, for more rows had come
	had      uint64             // ids for the last of them
	numbers  rewriter.Numbering // of the last try; its ids went into no row
	isolated bool               // the transaction sees an older state than the INSERT will
	sound    bool               // the server can prepare it
	exact    exactness
}

// maxTries bounds how often an INSERT ... SELECT is tried while rows come to the
// tables that it reads. Each try has twice as many ids in store.
const maxTries = 10

// selects decides on an INSERT whose rows come from a query.
func (d *decider) selects(st *statement, p *part, plan *rewriter.Plan, cx *reading) error {
	can, must := plan.CanBeside()
	switch {
	case len(st.spans) > 1:
		return errCut
	case cx.busy:
		return lacks(needQuiet)
	case cx.snap.OneShot:
		return d.unfilled(p, "INSERT ... SELECT right behind SET TRANSACTION, which the count of its rows would use up", cx)
	case cx.snap.Known&relay.KnowNumbers == 0:
		return lacks(needProbe)
	case cx.snap.MayBegin() && !st.selection.sound && st.prefix[0] == mysql.COM_QUERY:
		return errIncomplete{need{kind: needSound, part: p}}
	case can && p.facts.Engine() == facts.EngineUnknown:
		return errIncomplete{need{kind: needEngine, table: p.name, facts: p.facts}}
	case must && p.facts.Engine() != facts.EngineTransactional:
		return d.unfilled(p, "INSERT ... SELECT with ON DUPLICATE KEY UPDATE that may read columns of the query's tables, on a table whose engine cannot take rows back", cx)
	}
	s := &st.selection
	beside := can && p.facts.Engine() == facts.EngineTransactional
	if !beside && d.c.MariaDB {
		switch {
		case s.exact == exactUnknown:
			return errIncomplete{need{kind: needExact, part: p, plan: plan}}
		case s.exact == exactNot && plan.CanBesideOrdered() && p.facts.Engine() == facts.EngineUnknown:
			return errIncomplete{need{kind: needEngine, table: p.name, facts: p.facts}}
		case s.exact == exactNot && (!plan.CanBesideOrdered() || p.facts.Engine() != facts.EngineTransactional):
			return d.unfilled(p, "INSERT ... SELECT of numbers that MariaDB would round on their way (a quotient, or a sum of DOUBLE)", cx)
		}
		beside = s.exact == exactNot
	}
	if s.counted == nil {
		return errIncomplete{need{kind: needCount, part: p, plan: plan}}
	}
	if err := plan.Count(s.counted); err != nil {
		return d.unfilled(p, err.Error(), cx)
	}
	if s.counted.LastID >= 1<<63-1 {
		return d.unfilled(p, "INSERT ... SELECT while LAST_INSERT_ID() is above 2^63", cx)
	}
	st.order = &selecting{filled: &st.filled, selection: s, beside: beside}
	return d.admissible(st, p, plan, cx)
}

// exactness is whether the values of a query come out of another query around it
// as they are. MariaDB computes quotients with more digits than their type has,
// and loses those in between; likewise the digits of a DOUBLE behind its last decimal.
type exactness uint8

const (
	exactUnknown exactness = iota
	exactSurely
	exactNot
)

// findExact asks for the exactness of a query.
func (s *session) findExact(st *statement, n need) error {
	exact, err := ask.IsExact(s.questions(), n.plan, n.part.text)
	if st.selection.exact = exactNot; exact {
		st.selection.exact = exactSurely
	}
	return err
}

// errUnsound says that the server refuses a statement as the client wrote it.
var errUnsound = errors.New("the server refuses the statement")

// findSound finds out whether the columns and values of an INSERT ... SELECT fit its tables. Where
// they do not the server must say so itself: our questions begin a transaction
// elsewhere than it does, or not at all.
func (s *session) findSound(st *statement, p *part) error {
	_, own, err := ask.TryPrepare(s.questions(), p.text)
	switch {
	case err != nil:
		return err
	case own != nil && misresolved(own):
		return errUnsound
	case own != nil && own.Code == mysql.ER_NO_SUCH_TABLE:
		return own
	}
	st.selection.sound = true // or refused for something else
	return nil
}

// findEngine asks whether the table's engine takes the rows of a statement back
// that fails in the middle.
func (s *session) findEngine(t rewriter.Name, f *facts.Table) error {
	engine, err := s.asker().Engine(t)
	if err == nil {
		f.LearnEngine(engine)
	}
	return err
}

// count asks how many rows the query of an INSERT gives.
func (s *session) count(st *statement, n need) error {
	sel := &st.selection
	if err := s.isolation(sel); err != nil {
		return err
	}
	sql := n.plan.AppendCount(nil, n.part.text, sel.isolated)
	if err := s.payFor(string(sql)); err != nil {
		return err
	}
	answer, err := s.counted(st, sql, n.plan.Marks())
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		if miscounts(refused) && n.part.facts.At.Before(st.begun) { // by what the table was
			return s.describe(n.part.name, string(st.key))
		}
		if miscounts(refused) && st.prefix[0] == mysql.COM_QUERY && s.manual() {
			return errUnsound
		}
		return s.nativeError(n.part, refused)
	}
	var c *rewriter.Counted
	if err == nil {
		c, err = ask.ReadCount(&answer, len(n.plan.Columns), n.plan.Asked())
	}
	if err != nil {
		return fmt.Errorf("the rows of a query: %w", err)
	}
	s.c.Mu.Lock()
	defer s.c.Mu.Unlock()
	if id := &s.c.State.LastID; !id.Owed {
		*id = relay.LastID{Value: c.LastID, Known: true}
	}
	sel.counted = c
	return nil
}

// counted asks the question, for an execution with the values of its first
// parameters.
func (s *session) counted(st *statement, sql []byte, marks int) (wire.Result, error) {
	if st.prefix[0] == mysql.COM_STMT_EXECUTE {
		return s.executeCount(st, sql, marks)
	}
	return s.questions().Query(string(sql))
}

// isolation finds out whether the rows must be counted under a lock: in a
// transaction of REPEATABLE READ a plain count is of an older state than what
// INSERT ... SELECT reads, which takes locks too. READ COMMITTED takes none.
func (s *session) isolation(sel *selection) error {
	s.c.Mu.Lock()
	open := s.c.State.InTrans || s.c.State.Manual
	s.c.Mu.Unlock()
	if !open || sel.tries > 0 {
		sel.isolated = open
		return nil
	}
	isolated, err := s.asker().Isolated()
	sel.isolated = isolated
	return err
}

// Errors of a query that names its columns, WITH d(a,b) AS (..), in place of
// ER_WRONG_VALUE_COUNT_ON_ROW.
const (
	errViewWrongList   = 1353 // MySQL
	errWithColumnCount = 4002 // MariaDB
)

// miscounts reports whether an error says that the query gives another number
// of columns than was thought.
func miscounts(e *mysql.MyError) bool {
	return e.Code == errViewWrongList || e.Code == errWithColumnCount
}

// nativeError returns what the server says of an INSERT whose query it refuses
// to count. What is wrong with the text or its names is found when it is prepared, and
// may be another error than that of the query alone.
func (s *session) nativeError(p *part, refused *mysql.MyError) error {
	if miscounts(refused) {
		return clienterr.New(mysql.ER_WRONG_VALUE_COUNT_ON_ROW, "21S01", "Column count doesn't match value count at row 1")
	}
	const ofText = "42" // the class of SQL states
	if !strings.HasPrefix(refused.State, ofText) {
		return refused
	}
	_, own, err := ask.TryPrepare(s.questions(), p.text)
	if err != nil {
		return err
	}
	if own != nil {
		return own
	}
	if refused.Code == mysql.ER_PARSE_ERROR || refused.Code == mysql.ER_CANT_USE_OPTION_HERE {
		return clienterr.Unsupported(p.rules[0], p.name, "INSERT ... SELECT whose query cannot stand inside another")
	}
	return refused
}

// idsAtOnce is how many ids are drawn at a time for the rows of a query: the
// memory they take does not grow with the rows.
const idsAtOnce = 1 << 14

// selecting is an INSERT whose rows come from a query, in a text.
type selecting struct {
	*filled
	selection *selection
	beside    bool // ids stand beside the values
}

func (x *selecting) draw(s *session, st *statement) (expected []relay.Expect, at int, err error) {
	p, plan := &x.parts[0], &x.plans[0]
	st.askAgain()
	if err := x.number(s, p, plan); err != nil {
		return nil, p.result, err
	}
	e := p.expect(plan, s.c.Has(mysql.CLIENT_FOUND_ROWS))
	e.Selects(plan, &x.selection.numbers.Columns[0])
	return []relay.Expect{e}, 0, nil
}

func (x *selecting) write(_ *session, st *statement) (payload []byte, made bool, err error) {
	span := x.parts[0].span
	out := append(append(st.out[:0], 0, 0, 0, 0), st.prefix...)
	out = append(out, st.text[:span.Start]...)
	out = x.plans[0].AppendSelect(out, st.text[span.Start:span.End], &x.selection.numbers)
	st.out = append(out, st.text[span.End:st.end]...)
	return st.out[wire.HeaderLen:], true, nil
}

func (x *selecting) asks() bool { return !x.plans[0].NoLastID }

// number draws the ids for the rows of a query.
func (x *selecting) number(s *session, p *part, plan *rewriter.Plan) error {
	s.c.Mu.Lock()
	stride := s.c.State.Increment
	s.c.Mu.Unlock()
	sel := x.selection
	numbers := make([]rewriter.Numbers, len(p.rules))
	p.ids = make([][]uint64, len(p.rules))
	for i, r := range p.rules {
		filled, counted := &plan.Columns[i], &sel.counted.Columns[i]
		n := &numbers[i]
		n.Stride, n.Float = stride, counted.Float
		if filled.Explicit > 0 {
			n.Given = rewriter.GivenAny
			if r.Explicit == rule.Advance {
				n.Given, n.Most = rewriter.GivenUpTo, filled.Greatest
			}
		}
		from, err := s.idsFor(p, i)
		if err != nil {
			return err
		}
		if err := s.advance(from, r, filled); err != nil {
			return err
		}
		want := uint64(filled.Generated)
		if i < len(sel.numbers.Columns) {
			before := sel.numbers.Columns[i]
			if before.Stride == stride {
				n.Runs = before.Runs
			}
		}
		if sel.tries > 0 && (filled.Explicit == 0 || want > 0) {
			want = max(want, 2*sel.had+16)
		}
		if err := s.drawRuns(from, n, want); err != nil {
			return clienterr.OutOfIDs(r, err)
		}
	}
	sel.numbers = rewriter.Numbering{Columns: numbers, LastID: sel.counted.LastID, Beside: x.beside}
	s.l.srv.Stats.Filled.Add(1)
	return nil
}

// drawRuns draws ids until n has want of them.
func (s *session) drawRuns(from draw.Column, n *rewriter.Numbers, want uint64) error {
	var ids []uint64
	for have := n.Count(); have < want; have += uint64(len(ids)) {
		ids = slices.Grow(ids[:0], idsAtOnce)[:min(idsAtOnce, want-have)]
		if err := from.Fill(s.ctx, ids, n.Stride); err != nil {
			return err
		}
		n.Add(ids)
		s.l.srv.Stats.IDs.Add(int64(len(ids)))
	}
	return nil
}

// countsRows reports whether the rows that went in are as many as those that the
// reply says were affected, and have the first ones of their ids. Beside the values
// of a query with a LIMIT they need not: MariaDB may number rows that it leaves out
// then, as behind a sort of what a view joins.
func (x *selecting) countsRows() bool {
	plan := &x.plans[0]
	plain, _ := plan.CanBeside()
	return !plan.Ignore && !plan.Update && !plan.Returning && x.parts[0].head.Kind == rewriter.Insert && (plain || !x.beside)
}

// went returns the ids that were drawn for more rows than went in, which are
// the first ones of those that were to.
func (x *selecting) went(s *session, rows uint64) {
	if !x.countsRows() {
		return
	}
	for i := range x.selection.numbers.Columns {
		n := &x.selection.numbers.Columns[i]
		from, err := s.idsFor(&x.parts[0], i)
		if err != nil || len(n.Runs) == 0 || n.Count() <= rows {
			continue
		}
		last := n.Runs[len(n.Runs)-1]
		spare := min(n.Count()-rows, last.Count)
		end := last.First + last.Count*n.Stride
		from.Return(end-spare*n.Stride, end)
	}
}

// outnumbered takes back what was decided, for rows have come since they were counted. The ids
// that the statement was to have went into no row, and serve the next try.
func (x *selecting) outnumbered(s *session, st *statement) (again bool, err error) {
	table := x.parts[0].facts.Name
	if taken, err := x.tookBack(s); err != nil || !taken {
		return false, errors.Join(err, s.answer(clienterr.HalfDone(table), st.seq))
	}
	x.selection.counted = nil
	if x.selection.tries++; x.selection.tries < maxTries {
		return true, nil
	}
	return false, s.answer(clienterr.RowsComing(table, maxTries), st.seq)
}

// tookBack makes sure that no row of a try is in the table whose guard has failed.
// With the ids beside the values some may have gone in, and the engine took them
// back if it still is the one that was asked for: the ids are used no more.
func (x *selecting) tookBack(s *session) (bool, error) {
	sel, p := x.selection, &x.parts[0]
	sel.had = sel.numbers.Columns[0].Count()
	if !x.beside {
		return true, nil
	}
	sel.numbers.Columns = nil
	if err := s.findEngine(p.name, p.facts); err != nil {
		return false, err
	}
	return p.facts.Engine() == facts.EngineTransactional, nil
}
