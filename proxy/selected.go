package proxy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
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
	case cx.snap.oneShot:
		return d.unfilled(p, "INSERT ... SELECT right behind SET TRANSACTION, which the count of its rows would use up", cx)
	case cx.snap.known&knowNumbers == 0:
		return lacks(needProbe)
	case can && p.facts.Engine() == facts.EngineUnknown:
		return errIncomplete{need{kind: needEngine, table: p.name, facts: p.facts}}
	case must && p.facts.Engine() != facts.EngineTransactional:
		return d.unfilled(p, "INSERT ... SELECT with ON DUPLICATE KEY UPDATE that may read columns of the query's tables, on a table whose engine cannot take rows back", cx)
	}
	s := &st.selection
	beside := can && p.facts.Engine() == facts.EngineTransactional
	if !beside && d.c.mariaDB {
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
	s.numbers.LastID, s.numbers.Beside = s.counted.LastID, beside
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

// findExact asks what types the query gives: it is prepared, not run.
func (s *session) findExact(st *statement, n need) error {
	st.selection.exact = exactSurely
	made, err := s.hiddenPrepare(n.plan.Query(n.part.text))
	if _, refused := errors.AsType[*mysql.MyError](err); refused {
		return nil // the count fails likewise
	}
	if err != nil {
		return err
	}
	for i := range made.Shown.Payloads {
		c, ok := made.Shown.Column(i)
		if !ok || !isExact(c) || n.plan.Divides() && !c.Stored && c.Type == mysql.MYSQL_TYPE_NEWDECIMAL {
			st.selection.exact = exactNot
		}
	}
	if len(made.Shown.Payloads) == 0 || n.plan.Divides() && n.plan.Marks() > 0 { // types may change with those of the parameters
		st.selection.exact = exactNot
	}
	return s.closeStatement(made.ID)
}

// isExact reports whether values of a column's type keep all digits that the
// server has computed, but for quotients.
func isExact(c wire.Column) bool {
	const notFixed = 31 // decimals of a floating-point number that has no number of them
	return c.Stored || c.Type != mysql.MYSQL_TYPE_FLOAT && c.Type != mysql.MYSQL_TYPE_DOUBLE || c.Decimals >= notFixed
}

// findEngine asks whether the table's engine takes the rows of a statement back
// that fails in the middle.
func (s *session) findEngine(n need) error {
	engine := facts.EngineOther
	rows, err := s.query("SELECT ENGINE FROM information_schema.TABLES" + whereTable(n.table))
	if err != nil {
		return err
	}
	if len(rows) == 1 && len(rows[0]) == 1 && strings.EqualFold(string(rows[0][0]), "InnoDB") {
		engine = facts.EngineTransactional
	}
	n.facts.LearnEngine(engine)
	return nil
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
	counted, err := s.counted(st, sql, n.plan.Marks())
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		if miscounts(refused) && n.part.facts.At.Before(st.begun) { // by what the table was
			return s.describe(need{kind: needTable, table: n.part.name, key: string(st.key)})
		}
		return s.nativeError(n.part, refused)
	}
	asked := n.plan.Asked()
	if err != nil || len(counted.Rows) != 1 || len(counted.Rows[0]) < 2+4*len(asked) {
		return fmt.Errorf("the rows of a query: %w", errors.Join(wire.ErrCut, err))
	}
	c := &rewriter.Counted{Columns: make([]rewriter.CountedIDs, len(n.plan.Columns))}
	row := counted.Rows[0]
	if c.Rows, err = strconv.ParseUint(string(row[0]), 10, 64); err == nil {
		c.LastID, err = strconv.ParseUint(string(row[1]), 10, 64)
	}
	for i, k := range asked {
		at := 2 + 4*i
		if err == nil {
			err = countedIDs(&c.Columns[k], row[at:at+4])
		}
		t, ok := counted.Column(at + 2)
		c.Columns[k].Float = !ok || t.Type == mysql.MYSQL_TYPE_FLOAT || t.Type == mysql.MYSQL_TYPE_DOUBLE
		c.Columns[k].Text = (!ok || !wire.IsNumber(t.Type)) && string(row[at+1]) != "0"
	}
	if err != nil {
		return fmt.Errorf("the rows of a query: %w", err)
	}
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	if id := &s.c.state.lastID; !id.owed {
		*id = lastID{value: c.LastID, known: true}
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
	packets, err := s.ask(s.c.appendQuery(nil, string(sql)), replyResult)
	if err != nil {
		return wire.Result{}, err
	}
	return wire.ReadResult(packets, s.c.caps)
}

// countedIDs reads how many rows generate their ids, and the greatest and the
// least of the others.
func countedIDs(c *rewriter.CountedIDs, row [][]byte) (err error) {
	if c.Generated, err = strconv.ParseUint(string(row[0]), 10, 64); err != nil {
		return err
	}
	for i, bound := range row[2:] {
		if bound == nil {
			continue
		}
		n, err := strconv.ParseUint(string(bound), 10, 64)
		if err != nil {
			below, err := strconv.ParseInt(string(bound), 10, 64)
			c.BelowZero, c.Unknown = c.BelowZero || err == nil && below < 0, c.Unknown || err != nil
			continue
		}
		if i == 0 {
			c.Greatest = n
		}
	}
	return nil
}

// isolation finds out whether the rows must be counted under a lock: in a
// transaction of REPEATABLE READ a plain count is of an older state than what
// INSERT ... SELECT reads, which takes locks too. READ COMMITTED takes none.
func (s *session) isolation(sel *selection) error {
	s.c.mu.Lock()
	open, mode := s.c.state.inTrans || s.c.state.manual, s.c.state.mode
	s.c.mu.Unlock()
	if !open || sel.tries > 0 {
		sel.isolated = open
		return nil
	}
	variable := "@@transaction_isolation"
	if mode.MariaDB || mode.Version > 0 && mode.Version < 80000 {
		variable = "@@tx_isolation"
	}
	rows, err := s.query("SELECT " + variable)
	if err != nil {
		return err
	}
	sel.isolated = len(rows) != 1 || len(rows[0]) != 1 || !strings.HasPrefix(string(rows[0][0]), "READ-")
	return nil
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
		return clientError(mysql.ER_WRONG_VALUE_COUNT_ON_ROW, "21S01", "Column count doesn't match value count at row 1")
	}
	const ofText = "42" // the class of SQL states
	if !strings.HasPrefix(refused.State, ofText) {
		return refused
	}
	made, err := s.hiddenPrepare(p.text)
	if err != nil {
		return err
	}
	if err := s.closeStatement(made.ID); err != nil {
		return err
	}
	if refused.Code == mysql.ER_PARSE_ERROR || refused.Code == mysql.ER_CANT_USE_OPTION_HERE {
		return errUnsupported(p.rules[0], p.name, "INSERT ... SELECT whose query cannot stand inside another")
	}
	return refused
}

// hiddenPrepare prepares a statement of the proxy's own.
func (s *session) hiddenPrepare(text []byte) (p wire.PrepareReply, err error) {
	packets, err := s.ask(wire.AppendPacket(nil, 0, append([]byte{mysql.COM_STMT_PREPARE}, text...)), replyPrepare)
	if err != nil {
		return p, err
	}
	return wire.ReadPrepare(packets, s.c.caps)
}

func (s *session) closeStatement(id uint32) error {
	return s.write(wire.AppendPacket(nil, 0, []byte{mysql.COM_STMT_CLOSE, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}))
}

// idsAtOnce is how many ids are drawn at a time for the rows of a query: the
// memory they take does not grow with the rows.
const idsAtOnce = 1 << 14

// number draws the ids for the rows of a query.
func (s *session) number(st *statement, p *part, plan *rewriter.Plan) error {
	s.c.mu.Lock()
	stride := s.c.state.increment
	s.c.mu.Unlock()
	sel := &st.selection
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
			return errOutOfIDs(r, err)
		}
	}
	sel.numbers.Columns = numbers
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

// giveBack returns the ids that were drawn for more rows than went in, which are
// the first ones of those that were to.
func (s *session) giveBack(st *statement, used uint64) {
	p := &st.parts[0]
	for i := range st.selection.numbers.Columns {
		n := &st.selection.numbers.Columns[i]
		from, err := s.idsFor(p, i)
		if err != nil || len(n.Runs) == 0 || n.Count() <= used {
			continue
		}
		last := n.Runs[len(n.Runs)-1]
		spare := min(n.Count()-used, last.Count)
		end := last.First + last.Count*n.Stride
		from.Return(end-spare*n.Stride, end)
	}
}

// tookBack makes sure that no row of a try is in the table whose guard has failed.
// With the ids beside the values some may have gone in, and the engine took them
// back if it still is the one that was asked for: the ids are used no more.
func (s *session) tookBack(st *statement) (bool, error) {
	st.selection.had = st.selection.numbers.Columns[0].Count()
	if !st.selection.numbers.Beside {
		return true, nil
	}
	p := &st.parts[0]
	st.selection.numbers.Columns = nil
	if err := s.findEngine(need{table: p.name, facts: p.facts}); err != nil {
		return false, err
	}
	return p.facts.Engine() == facts.EngineTransactional, nil
}

// retry takes back what was decided on an INSERT ... SELECT, for rows have come
// since they were counted. The ids it was to have went into no row, and serve the next try.
func (st *statement) retry() bool {
	st.selection.counted = nil
	st.selection.tries++
	return st.selection.tries < maxTries
}
