package rewriter

import "idproxy/ascii"

// maxParentheses bounds those around a whole query: each costs a walk over it.
const maxParentheses = 8

// beginsQuery reports whether the parenthesis just read is around a query, and not around a list of
// columns.
func (r *planReader) beginsQuery() bool {
	ahead := r.scanner
	ahead.noting = false
	t := ahead.next()
	if ahead.punct(t, '(') {
		return true
	}
	if t.kind != tokWord || r.otherRows(t) == "" {
		return false
	}
	t = ahead.next()
	return !ahead.punct(t, ',') && !ahead.punct(t, ')')
}

// queryReader reads INSERT ... SELECT from the query on.
type queryReader struct{ *planReader }

// read reads the query that begins with t, and what follows it, up to the end of the statement.
func (r *queryReader) read(t token) error {
	p := r.plan
	q := &p.query
	*q = query{outer: Span{Start: t.start}, mariaDB: r.mode.MariaDB, noZero: r.mode.NoAutoValueOnZero, old: oldServer(&r.mode)}
	// servers take INSERT DELAYED ... SELECT as if it did not say so
	p.Plain, p.Delayed, p.width = true, false, r.width
	if r.empty {
		return unsupported("INSERT ... SELECT with an empty list of columns")
	}
	crossed, open := r.crossed, 0
	for ; r.punct(t, '(') && r.wraps(); t = r.next() {
		if open++; open > maxParentheses {
			return unsupported("INSERT ... SELECT in too many parentheses")
		}
	}
	dropped := r.crossed != crossed
	q.inner.Start = t.start
	before := r.crossed
	t, err := r.queryBody(t)
	if err != nil {
		return err
	}
	// what is put around it would stand inside a version comment, or the count would
	dropped = dropped || r.crossed != before
	q.outer.End, crossed = q.inner.End, r.crossed
	for ; open > 0; open-- {
		if !r.punct(t, ')') {
			return r.unexpected(t)
		}
		q.outer.End, dropped = t.end, dropped || r.crossed != crossed
		t = r.next()
	}
	if dropped { // what is left out begins or ends a version comment
		return unsupported(faultVersion)
	}
	if err := (&tailReader{r.planReader}).read(t); err != nil {
		return err
	}
	return r.fillable()
}

// fillable checks that the ids can be put among what the query gives.
func (r *queryReader) fillable() (err error) {
	p := r.plan
	if p.Update {
		if p.query.sourced, err = r.sourced(); err != nil {
			return err
		}
	}
	if why := r.refusal(); why != "" {
		return unsupported(why)
	}
	for k := range p.slots {
		switch c := &p.slots[k]; {
		case c.at >= 0 && c.text:
			return unsupported("INSERT ... SELECT that gives a text id")
		case c.at >= 0 && p.query.sourced:
			return unsupported("ON DUPLICATE KEY UPDATE that may read columns of the query's tables, with a query that gives ids")
		}
	}
	p.ZeroDoubt = len(p.order) > 0
	return nil
}

// refusal says what of the statement stands in the way of ids for its rows, "" for nothing.
func (r *queryReader) refusal() string {
	p, q := r.plan, &r.plan.query
	switch {
	case q.sourced && (q.listEnd < 0 || q.cut || q.old):
		return "ON DUPLICATE KEY UPDATE that may read columns of the query's tables"
	case q.old && !q.single:
		return "INSERT ... SELECT of several queries, on a server without WITH"
	case p.slots[0].rule.Packet:
		return "INSERT ... SELECT on a server that may not know LAST_INSERT_ID(expr)"
	case p.Update && r.tailReads(), p.Returning && r.returned:
		return "INSERT ... SELECT in a statement that reads LAST_INSERT_ID() behind it"
	}
	return ""
}

// tailReads reports whether what follows the query reads LAST_INSERT_ID().
func (r *queryReader) tailReads() bool {
	reads, _ := r.lastIDUses(r.updateAt, len(r.text))
	return reads
}

// oldServer reports whether a server is known to lack WITH and window functions.
func oldServer(m *Mode) bool {
	if m.MariaDB {
		return m.Version > 0 && m.Version < 100201
	}
	return m.Version > 0 && m.Version < 80011
}

// wraps reports whether the parenthesis just read closes where the query ends.
func (r *queryReader) wraps() bool {
	ahead := *r.planReader
	ahead.noting = false
	if !ahead.close1() {
		return false
	}
	t := ahead.next()
	return ahead.punct(t, ')') || (&queryReader{&ahead}).endsQuery(t)
}

// close1 goes behind the parenthesis that closes the one just read.
func (s *scanner) close1() bool {
	for depth := 1; depth > 0; {
		t := s.next()
		switch {
		case t.kind == tokEnd || t.kind == tokBad || s.punct(t, ';'):
			return false
		case s.punct(t, '('):
			depth++
		case s.punct(t, ')'):
			depth--
		}
	}
	return true
}

// endsQuery reports whether t, outside parentheses, does not belong to the query any more.
func (r *queryReader) endsQuery(t token) bool {
	switch {
	case t.kind == tokEnd, r.punct(t, ';'):
		return true
	case r.isWord(t, "on"):
		return r.isWord(r.peek(), "duplicate")
	case r.isWord(t, "returning"):
		return r.mode.MariaDB
	}
	return false
}

// queryBody reads a query from t on, and returns what follows it.
func (r *queryReader) queryBody(t token) (token, error) {
	q := &r.plan.query
	w := queryWalk{queryReader: r, plain: r.isWord(t, "select"), loose: r.isWord(t, "select")}
	q.single = w.plain
	for ; ; t = r.next() {
		switch {
		case t.kind == tokBad:
			return t, r.unexpected(t)
		case w.depth == 0 && (r.punct(t, ')') || r.endsQuery(t)):
			if q.inner.End == 0 {
				return t, r.unexpected(t)
			}
			w.end()
			return t, nil
		case t.kind == tokEnd, r.punct(t, ';'):
			return t, r.unexpected(t)
		}
		if err := w.token(t); err != nil {
			return t, err
		}
		q.inner.End = t.end
	}
}

// queryWalk is the walk over a query.
type queryWalk struct {
	*queryReader
	plain    bool     // it may still be a plain SELECT
	loose    bool     // or one but for its end
	from     int      // its FROM
	limited  bool     // it has a LIMIT
	tables   bool     // its list of tables goes on
	locks    int      // where FOR UPDATE or the like begins
	depth    int      // of parentheses
	previous [2]token // the two tokens in front, the nearer one first
}

// token takes one token of the query.
func (w *queryWalk) token(t token) (err error) {
	switch t.kind {
	case tokPunct:
		err = w.punctuation(t)
	case tokWord, tokQuoted:
		err = w.wordOrName(t)
	}
	w.previous[1], w.previous[0] = w.previous[0], t
	return err
}

func (w *queryWalk) punctuation(t token) error {
	switch w.text[t.start] {
	case '?':
		w.plan.query.marks++
	case ',':
		w.plan.query.joined = w.plan.query.joined || w.depth == 0 && w.tables
	case '/':
		w.plan.query.divides = true
	case '(':
		w.depth++
		return w.call()
	case ')':
		w.depth--
	case '=':
		if w.punct(w.previous[0], ':') && w.previous[0].end == t.start {
			return unsupported("INSERT ... SELECT that sets a user variable")
		}
	}
	return nil
}

func (w *queryWalk) wordOrName(t token) error {
	behindDot := w.punct(w.previous[0], '.')
	if t.kind == tokWord && !w.punct(w.previous[0], '@') && !behindDot && !w.qualifies(t) {
		return w.word(t)
	}
	switch name := w.name(t); {
	case behindDot && foldEqual(name, "nextval"):
		return unsupported("INSERT ... SELECT that draws from a sequence")
	case foldEqual(name, "warning_count"), foldEqual(name, "error_count"):
		return unsupported("INSERT ... SELECT that reads what a question ends, the warnings of the statement before")
	}
	return nil
}

// word takes a word that no name is around.
func (w *queryWalk) word(t token) error {
	switch {
	case w.isWord(t, "next") && w.isWord(w.peek(), "value"):
		return unsupported("INSERT ... SELECT that draws from a sequence")
	case w.isWord(t, "into"):
		return unsupported("INSERT ... SELECT with INTO")
	case w.isWord(t, "procedure"):
		return unsupported("INSERT ... SELECT with PROCEDURE")
	case w.isWord(w.previous[0], "select") && isOf(selectOptions, w.text[t.start:t.end]):
		return unsupported("INSERT ... SELECT with an option behind SELECT that a query inside another cannot have")
	case w.depth > 0:
		return nil
	case w.isWord(t, "examined"):
		return unsupported("INSERT ... SELECT with LIMIT ROWS EXAMINED")
	}
	w.clause(t)
	return nil
}

// clause takes a word outside parentheses, which may begin a clause of the SELECT.
func (w *queryWalk) clause(t token) {
	q := &w.plan.query
	word := w.text[t.start:t.end]
	q.joined = q.joined || isOf(tableJoins, word)
	w.tables = w.tables && !isOf(behindTables, word)
	switch {
	case w.limits(word):
		w.limited, w.plain = true, false
	case w.locksRows(word):
		if w.locks == 0 {
			w.locks = t.start
		}
		w.plain = false
	case foldEqual(word, "from") && w.from == 0:
		w.from, w.tables = t.start, true
		if w.isWord(w.peek(), "dual") {
			w.plain, w.loose = false, false
		}
	case foldEqual(word, "order"):
		q.order = Span{Start: t.start}
	case isOf(unplain, word):
		w.plain, w.loose = false, false
		q.single = q.single && !isOf(queryJoins, word)
	}
}

// limits reports whether a word begins a LIMIT, in one of its ways to be written.
func (w *queryWalk) limits(word []byte) bool {
	switch {
	case foldEqual(word, "limit"):
		return true
	case foldEqual(word, "fetch"):
		return w.nextIs("first", "next")
	case foldEqual(word, "offset"):
		t := w.peek()
		return t.kind == tokDigits || w.punct(t, '?')
	}
	return false
}

// locksRows reports whether a word begins FOR UPDATE, FOR SHARE or LOCK IN SHARE MODE.
func (w *queryWalk) locksRows(word []byte) bool {
	return foldEqual(word, "for") && w.nextIs("update", "share") || foldEqual(word, "lock") && w.nextIs("in", "in")
}

func (w *queryWalk) nextIs(a, b string) bool {
	t := w.peek()
	return w.isWord(t, a) || w.isWord(t, b)
}

var (
	// selectOptions are words behind SELECT that are options of whole statements only.
	selectOptions = wordList("sql_calc_found_rows high_priority sql_buffer_result sql_cache sql_no_cache")
	// unplain are words that make of a SELECT more than one whose list can be longer.
	unplain = wordList("union except intersect minus distinct distinctrow group having window values table with rownum")
	// queryJoins are those that join queries.
	queryJoins   = wordList("union except intersect minus")
	tableJoins   = wordList("join straight_join")
	behindTables = wordList("where order limit")
)

// call judges what stands in front of a parenthesis.
func (w *queryWalk) call() error {
	callee, before := w.previous[0], w.previous[1]
	switch callee.kind {
	case tokWord:
		if w.isWord(callee, "last_insert_id") && !w.punct(w.peek(), ')') {
			return unsupported("INSERT ... SELECT that sets LAST_INSERT_ID()")
		}
		if word := w.text[callee.start:callee.end]; !w.punct(before, '.') && harmless(word) {
			if isOf(aggregates, word) {
				w.plain, w.loose = false, false
				w.plan.query.divides = w.plan.query.divides || isOf(dividing, word)
			}
			return nil
		}
	case tokQuoted, tokNumber:
		if callee.kind == tokNumber && w.name(callee) == nil {
			return nil
		}
	default:
		return nil
	}
	if w.punct(before, ')') || w.isWord(before, "as") || w.named(before) { // names of columns
		return nil
	}
	return unsupported("INSERT ... SELECT that calls a function which may do more than read")
}

// named reports whether the parenthesis just read holds the columns of a common table expression.
func (w *queryWalk) named(before token) bool {
	if !w.isWord(before, "with") && !w.isWord(before, "recursive") && !w.punct(before, ',') {
		return false
	}
	ahead := w.scanner
	ahead.noting = false
	return ahead.close1() && ahead.isWord(ahead.next(), "as") && ahead.punct(ahead.next(), '(')
}

// end notes what the whole query has told.
func (w *queryWalk) end() {
	q := &w.plan.query
	q.limit, q.locked = q.inner.End, w.locks > 0
	switch {
	case w.limited:
		q.limit = -1
	case w.locks > 0:
		q.limit = w.locks
	}
	if q.order.Start > 0 {
		q.order.End = q.inner.End
	}
	if q.listEnd = -1; (w.plain || w.loose) && w.from > 0 {
		q.listEnd, q.cut = w.from, !w.plain
		q.loose = q.cut || q.order.End > 0
	}
}

// sourced reports whether ON DUPLICATE KEY UPDATE may read columns of the query's tables: it has a
// name that is not of the statement's own table.
func (r *queryReader) sourced() (bool, error) {
	if r.table == nil {
		return false, ErrNeedTable
	}
	s := r.scanner
	s.noting, s.pos = false, r.updateAt
	for {
		t := s.next()
		switch {
		case t.kind == tokEnd, t.kind == tokBad, r.mode.MariaDB && s.isWord(t, "returning"):
			return false, nil
		case s.punct(t, '@'):
			s.passVariable()
		case s.name(t) != nil && !r.isOwn(&s, t):
			return true, nil
		}
	}
}

// passVariable passes the name of a variable behind its @.
func (s *scanner) passVariable() {
	for s.punct(s.peek(), '@') {
		s.next()
	}
	for s.next(); s.punct(s.peek(), '.'); s.next() {
		s.next()
	}
}

// isOwn takes the rest of a name that begins with t, and reports whether it is surely of a column
// of the statement's own table, or of none.
func (r *queryReader) isOwn(s *scanner, t token) bool {
	parts, n := [3][]byte{s.name(t)}, 1
	for n < len(parts) && s.punct(s.peek(), '.') {
		s.next()
		parts[n] = s.nameOf(s.next())
		n++
	}
	switch {
	case n > 1:
		return ascii.EqualFold(parts[n-2], string(r.nameBehindDot(r.into)))
	case r.table.Find(string(parts[0])) != nil:
		return true
	}
	return t.kind != tokQuoted && (isOf(reservedWords, parts[0]) || s.punct(s.peek(), '('))
}

// nameOf is name where only an identifier can stand.
func (s *scanner) nameOf(t token) []byte {
	if t.kind == tokDigits {
		return s.text[t.start:t.end]
	}
	return s.name(t)
}
