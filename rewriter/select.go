package rewriter

import (
	"bytes"
	"strconv"
)

// Counted is what the server has counted of the rows that a query gives.
type Counted struct {
	Rows    uint64
	LastID  uint64       // the server's LAST_INSERT_ID()
	Columns []CountedIDs // by Statement.Rules
}

// CountedIDs is Counted of one column that the query gives; of others nothing is set.
type CountedIDs struct {
	Generated uint64 // rows whose id is NULL, or 0 where 0 generates
	Greatest  uint64 // explicit id
	Unknown   bool   // explicit ids are no whole numbers, or not of 64 bits
	BelowZero bool   // some explicit id is a number below zero
	// the query gives floating-point numbers: they have no room for the digits of ids
	Float bool
	// it gives texts or times, not all of them NULL: what generates is not told in the way the
	// server does
	Text bool
}

// Numbering is how the rows of a query get their ids.
type Numbering struct {
	LastID  uint64 // the server's LAST_INSERT_ID(), below 2^63
	Columns []Numbers
	// Beside: the ids are further values of a plain SELECT, see Plan.CanBeside. When the guard
	// fails some rows may have gone in: the table must be one of an engine that takes them back.
	Beside bool
}

// Numbers are the ids for the rows of a query that generate theirs, in row order.
type Numbers struct {
	Runs   []Run
	Stride uint64 // at least 1
	// Given is what becomes of explicit ids: rows that were not counted may have come since.
	Given Given
	Most  uint64 // with GivenUpTo
	Float bool   // as CountedIDs
}

// Add adds ids, which ascend.
func (n *Numbers) Add(ids []uint64) {
	for _, id := range ids {
		if last := len(n.Runs) - 1; last >= 0 && n.Runs[last].First+n.Runs[last].Count*n.Stride == id {
			n.Runs[last].Count++
			continue
		}
		n.Runs = append(n.Runs, Run{First: id, Count: 1})
	}
}

// Run is Count ids from First on, as far apart as the Stride.
type Run struct{ First, Count uint64 }

// Given is what explicit ids may be.
type Given uint8

const (
	GivenNone Given = iota // none may be there
	GivenAny               // they are kept
	GivenUpTo              // they are kept, and none lies above Most
)

// Count is how many ids the numbers are.
func (n *Numbers) Count() (sum uint64) {
	for _, run := range n.Runs {
		sum += run.Count
	}
	return sum
}

// Guarded reports whether the message of a server's error 1690 says that the query of a statement
// that AppendSelect wrote gave more rows than there are ids, or an id that may not be. It quotes
// the sum that is out of range, as in 9223372036854775807 + cast(last_insert_id() - 5 as signed).
func Guarded(message []byte) bool {
	_, term, ok := bytes.Cut(message, []byte("9223372036854775807 + cast("))
	return ok && (bytes.HasPrefix(term, []byte("last_insert_id() - ")) || bytes.HasPrefix(term, []byte("(last_insert_id() - ")) ||
		bytes.Contains(term, []byte(newName)))
}

// guard fails with 1690, also under IGNORE and in any sql_mode, once an integer above 0 is added to
// it. Measured on MariaDB 10.11 and 11.8 and on MySQL 9.7.
const guard = "9223372036854775807+"

// noLimit keeps the rows of an inner query in their order, and has servers run it to its end before
// the outer one begins.
const noLimit = " LIMIT 18446744073709551615"

// jump is what a row that may not be adds to the number of rows: more than any table has.
const jump = "1099511627776"

// Untimed is what a question of our own has behind SELECT on MySQL: max_execution_time ends no
// INSERT, and so not what is asked for one. 0 would leave that variable in force; this is 49 days.
const Untimed = "/*+ MAX_EXECUTION_TIME(4294967295) */ "

// AppendCount appends the question how many rows the query of a plan that is Selected gives. The
// answer is one row: COUNT(*), LAST_INSERT_ID(), and for each of Asked in turn how many rows
// generate, how many are not NULL, and the greatest and the least explicit id. lock: rows are
// counted as the INSERT will read them, and not as an open transaction sees them.
func (p *Plan) AppendCount(dst, text []byte, lock bool) []byte {
	w := p.selecting(dst, text)
	w.with("", lock)
	w.add("SELECT ")
	if !p.query.mariaDB {
		w.add(Untimed)
	}
	w.add("COUNT(*),LAST_INSERT_ID()")
	for _, k := range p.order {
		id := w.column(p.slots[k].at)
		w.add(",COUNT(CASE WHEN ").generates(int(k)).add(" THEN 1 END)")
		w.add(",COUNT(").add(id).add(")")
		for _, bound := range [...]string{"MAX", "MIN"} {
			w.add(",").add(bound).add("(CASE WHEN ").generates(int(k)).add(" THEN NULL ELSE ").add(id).add(" END)")
		}
	}
	if w.variables() {
		w.add(",@").add(w.name(nameCounter)).add(":=0")
	}
	return w.from("", lock).add(" LIMIT 1").dst // without one sql_select_limit=0 would leave none
}

// Asked returns the columns that the query gives, by their indexes in Columns.
func (p *Plan) Asked() []uint8 { return p.order }

// Marks returns how many ? the query has: the first of the statement's.
func (p *Plan) Marks() int { return p.query.marks }

// Count notes what the server has counted. It fails where the rows cannot be numbered.
func (p *Plan) Count(c *Counted) error {
	p.Rows = int(c.Rows)
	for k := range p.Columns {
		filled, counted := &p.Columns[k], &c.Columns[k]
		filled.Generated = p.Rows
		if p.slots[k].at < 0 {
			continue
		}
		filled.Generated, filled.Explicit = int(counted.Generated), p.Rows-int(counted.Generated)
		filled.Greatest, filled.GreatestUnknown, filled.BelowZero = counted.Greatest, counted.Unknown, counted.BelowZero
		if counted.Text && filled.Generated > 0 {
			return unsupported("INSERT ... SELECT that gives ids as texts or times, some of which generate")
		}
		if mixed := filled.Generated > 0 && filled.Explicit > 0; mixed && (len(p.Columns) > 1 || p.OwnLastID) {
			return unsupported("INSERT ... SELECT that gives the ids of some rows and not of others")
		}
	}
	return nil
}

// CanBeside reports whether the ids may be further values of a SELECT. mustBeside: there is no
// other way.
func (p *Plan) CanBeside() (can, must bool) {
	q := &p.query
	can = q.listEnd >= 0 && len(p.order) == 0 && (!q.loose || q.sourced)
	return can, q.sourced
}

// CanBesideOrdered reports whether the ids may be further values of a SELECT with an ORDER BY, a
// LIMIT or the like: on MariaDB, which reads the list behind the sort where there is one table.
func (p *Plan) CanBesideOrdered() bool {
	q := &p.query
	return q.listEnd >= 0 && len(p.order) == 0 && q.mariaDB && !q.joined
}

// Query returns the query, without the parentheses around it.
func (p *Plan) Query(text []byte) []byte { return text[p.query.inner.Start:p.query.inner.End] }

// Divides reports whether the query has a division, or a function that makes one.
func (p *Plan) Divides() bool { return p.query.divides }

// AppendSelect is [Plan.Append] for a plan that is Selected. The server numbers the rows, in the
// order in which the query gives them.
func (p *Plan) AppendSelect(dst, text []byte, n *Numbering) []byte {
	w := p.selecting(dst, text)
	w.n = n
	at := 0
	for i, e := range p.edits { // of the list of columns
		w.dst = append(w.dst, text[at:e.start]...)
		w.dst = append(w.dst, p.buffer[p.texts[i].Start:p.texts[i].End]...)
		at = int(e.end)
	}
	q := &p.query
	if n.Beside {
		w.dst = append(w.dst, text[at:q.listEnd]...)
		w.beside()
		return append(w.dst, text[q.inner.End:]...)
	}
	w.dst = append(w.dst, text[at:q.outer.Start]...)
	w.around()
	return append(w.dst, text[q.outer.End:]...)
}

// selecting writes what is put around a query. Names that are made up are words that the statement
// does not have.
type selecting struct {
	plan *Plan
	text []byte
	dst  []byte
	n    *Numbering
	base uint64 // of the numbers in those names
}

func (p *Plan) selecting(dst, text []byte) *selecting {
	return &selecting{plan: p, text: text, dst: dst, base: unusedNumber(text)}
}

func (w *selecting) add(s string) *selecting {
	w.dst = append(w.dst, s...)
	return w
}

func (w *selecting) number(n uint64) *selecting {
	w.dst = strconv.AppendUint(w.dst, n, 10)
	return w
}

// name returns the i-th made-up name.
func (w *selecting) name(i int) string {
	return "`" + newName + strconv.FormatUint(w.base+uint64(i), 10) + "`"
}

// What the made-up names are for, by their numbers.
const (
	nameQuery   = iota // the query
	nameLayer          // its rows with their numbers
	nameCounter        // of rows: a column, a variable or a window
	nameColumns        // the first column of the query
)

func (w *selecting) column(at int) string { return w.name(nameColumns + at) }

// columns writes the names of the query's columns, with what stands in front of each.
func (w *selecting) columns(front string) *selecting {
	for i := range w.plan.width {
		if i > 0 {
			w.add(",")
		}
		w.add(front).add(w.column(i))
	}
	return w
}

// with begins with the query under a name, WITH d(c1,c2) AS (query): servers then copy the types of
// its columns, and those may have the same name. Nothing on a server that lacks WITH.
func (w *selecting) with(limit string, lock bool) {
	if w.plan.query.old {
		return
	}
	w.add("WITH ").add(w.name(nameQuery)).add("(").columns("").add(") AS (")
	w.query(limit, lock)
	w.add(") ")
}

// from reads the query. Where there is no WITH, columns of NULL in front give it names, and take
// its types.
func (w *selecting) from(limit string, lock bool) *selecting {
	w.add(" FROM ")
	if w.plan.query.old {
		w.add("(SELECT ").columns("NULL AS ").add(" FROM DUAL WHERE 0 UNION ALL (")
		w.query(limit, lock)
		w.add(")) AS ")
	}
	return w.add(w.name(nameQuery))
}

// query writes the query, and limit in it if it has none of its own.
func (w *selecting) query(limit string, lock bool) {
	q := &w.plan.query
	if q.limit < 0 {
		w.dst = append(w.dst, w.text[q.inner.Start:q.inner.End]...)
	} else {
		w.dst = append(w.dst, w.text[q.inner.Start:q.limit]...)
		w.add(limit)
		if q.limit < q.inner.End {
			w.dst = append(append(w.dst, ' '), w.text[q.limit:q.inner.End]...)
		}
	}
	if lock && q.single && !q.locked {
		w.add(" LOCK IN SHARE MODE")
	}
}

// around writes the query with its rows numbered. LAST_INSERT_ID(LAST_INSERT_ID()+1) counts them in
// an inner layer, which is run to its end before the outermost SELECT gives the first row. So the
// guard in that row knows how many there are, and no row has gone in when it fails. The first row
// also sets LAST_INSERT_ID() back: triggers, and whatever else the INSERT runs, see the value from
// before. The query itself sees it too, because it was run before the first row was counted.
//
// Rejected: window functions, because MariaDB loses the order of many rows, and on MySQL COUNT(*)
// OVER () takes four times as long as the INSERT; user variables, because MySQL warns of them.
func (w *selecting) around() {
	p := w.plan
	w.with(noLimit, false)
	w.add("SELECT ")
	guarded := false
	for at := range p.width {
		if at > 0 {
			w.add(",")
		}
		if k := p.slotAt(at); k >= 0 {
			w.id(k, !guarded)
			guarded = true
		} else {
			w.add(w.column(at))
		}
	}
	for _, k := range p.behind {
		w.add(",").id(int(k), !guarded)
		guarded = true
	}
	w.add(" FROM (SELECT ").columns("").add(",LAST_INSERT_ID(LAST_INSERT_ID()+").step().add(") AS ").add(w.name(nameCounter))
	w.from(noLimit, false).add(noLimit + ") AS ").add(w.name(nameLayer))
}

// mixed returns the slot of which some rows generate the id and others bring it, or -1. There is no
// other slot then.
func (w *selecting) mixed() int {
	if n := &w.n.Columns[0]; len(w.n.Columns) == 1 && w.plan.slots[0].at >= 0 && len(n.Runs) > 0 && n.Given != GivenNone {
		return 0
	}
	return -1
}

// step writes what a row adds to the number of rows.
func (w *selecting) step() *selecting {
	if len(w.plan.order) == 0 {
		return w.add("1")
	}
	w.add("CASE")
	for _, k := range w.plan.order {
		k, n := int(k), &w.n.Columns[k]
		switch {
		case n.Given == GivenNone:
			w.add(" WHEN NOT ").generates(k).add(" THEN " + jump)
			continue
		case len(n.Runs) == 0:
			w.add(" WHEN ").generates(k).add(" THEN " + jump)
		}
		if n.Given == GivenUpTo {
			w.add(" WHEN ").add(w.column(w.plan.slots[k].at)).add(">").number(n.Most).add(" THEN " + jump)
		}
	}
	if w.mixed() >= 0 {
		w.add(" WHEN NOT ").generates(0).add(" THEN 0")
	}
	return w.add(" ELSE 1 END")
}

// id writes the id of a row in the column of a slot. guarded: and the guard with it.
func (w *selecting) id(k int, guarded bool) {
	if guarded {
		w.guard()
	}
	n, at := &w.n.Columns[k], w.plan.slots[k].at
	counter := w.name(nameCounter)
	switch first := w.n.LastID + 1; {
	case at >= 0 && len(n.Runs) == 0 && n.Given != GivenNone:
		w.add(w.column(at))
	case w.mixed() < 0:
		w.numbered(n, counter, first)
	case n.Float: // its type would win over that of the ids
		w.add("IF(").generates(k).add(",CAST(").numbered(n, counter, first).add(" AS CHAR),").add(w.column(at)).add(")")
	default:
		w.add("IF(").generates(k).add(",").numbered(n, counter, first).add(",").add(w.column(at)).add(")")
	}
	if guarded {
		w.add(")")
	}
}

// guard writes IF(..,9223372036854775807+..,
func (w *selecting) guard() {
	last, counter, rows, brought := w.n.LastID, w.name(nameCounter), uint64(0), true
	for k := range w.n.Columns {
		n := &w.n.Columns[k]
		rows, brought = max(rows, n.Count()), brought && n.Given != GivenNone && len(n.Runs) == 0
	}
	if brought { // any number of rows, but none that may not be
		rows = 1<<40 - 1
	}
	w.add("IF(")
	// the first row only: what ON DUPLICATE KEY UPDATE makes of the function then is its own
	if w.mixed() < 0 {
		w.add(counter).add("=").number(last + 1).add(" AND (")
	}
	w.add("LAST_INSERT_ID()>").number(last + rows)
	w.add(" OR LAST_INSERT_ID(").number(last).add("+0*").add(counter).add(")<>").number(last)
	if w.mixed() < 0 {
		w.add(")")
	}
	w.add("," + guard + "CAST(LAST_INSERT_ID()-").number(last).add(" AS SIGNED),")
}

// generates writes whether the row generates its id, which the query gives.
func (w *selecting) generates(k int) *selecting {
	id := w.column(w.plan.slots[k].at)
	if w.plan.query.noZero {
		return w.add("(").add(id).add(" IS NULL)")
	}
	return w.add("(").add(id).add(" IS NULL OR ROUND(").add(id).add(")=0)")
}

// numbered writes the id of the row that counter numbers; that of the first row is first.
// UUID_SHORT() has binary logs of format MIXED hold rows, as they do for INSERT ... SELECT
// natively: another server might number the rows otherwise.
func (w *selecting) numbered(n *Numbers, counter string, first uint64) *selecting {
	if len(n.Runs) == 0 { // the guard lets no row come
		return w.add("NULL")
	}
	w.run(n, n.Runs, counter, first)
	return w.add("+0*UUID_SHORT()")
}

// run writes a tree of IF over runs. The counter of the first row in them is first.
func (w *selecting) run(n *Numbers, runs []Run, counter string, first uint64) {
	if len(runs) == 1 {
		w.number(runs[0].First).add("+")
		if n.Stride > 1 {
			w.number(n.Stride).add("*")
		}
		w.add("(").add(counter).add("-").number(first).add(")")
		return
	}
	half, next := len(runs)/2, first
	for _, run := range runs[:half] {
		next += run.Count
	}
	w.add("IF(").add(counter).add("<").number(next).add(",")
	w.run(n, runs[:half], counter, first)
	w.add(",")
	w.run(n, runs[half:], counter, next)
	w.add(")")
}

// variables reports whether rows are counted in a user variable when ids are put beside the values
// of a SELECT: MariaDB takes longer with window functions, and old servers have none. Its type is
// that of its value before the statement, or none: it is cast, for as DOUBLE large ids would lose
// digits.
func (w *selecting) variables() bool { return w.plan.query.mariaDB || w.plan.query.old }

// beside writes the ids as further values of a plain SELECT, up to the SELECT's end.
func (w *selecting) beside() {
	q := &w.plan.query
	end, counter := q.inner.End, w.name(nameCounter)
	if q.order.End > 0 {
		end = q.order.Start
	}
	// MySQL: one window, for each OVER () would be another. Its numbers are unsigned, and the
	// guard's must not be.
	next, window := "ROW_NUMBER() OVER "+counter, " WINDOW "+counter+" AS () "
	row := "CAST(" + next + " AS SIGNED)"
	if w.variables() {
		next, row, window = "(@"+counter+":=@"+counter+"+1)", "CAST(@"+counter+" AS SIGNED)", ""
	}
	for i, k := range w.plan.behind {
		n := &w.n.Columns[k]
		w.add(",")
		if i == 0 {
			w.add("IF("+next+">").number(n.Count()).add(","+guard+row+",").numbered(n, row, 1).add(")")
		} else {
			w.numbered(n, row, 1)
		}
	}
	w.add(" ")
	w.dst = append(w.dst, w.text[q.listEnd:end]...)
	w.add(window)
	w.dst = append(w.dst, w.text[end:q.inner.End]...)
}

// slotAt returns the slot whose place among the query's columns is at, or -1.
func (p *Plan) slotAt(at int) int {
	for k := range p.slots {
		if p.slots[k].at == at {
			return k
		}
	}
	return -1
}
