package rewriter

import "idproxy/ascii"

// maxParentheses bounds those around a whole query: each costs a walk over it.
const maxParentheses = 8

// beginsQuery reports whether the parenthesis just read is around a query, and not around a list of columns.
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
	p.Plain, p.Delayed, p.width = true, false, r.width // servers take INSERT DELAYED ... SELECT as if it did not say so
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
	dropped = dropped || r.crossed != before // what is put around it would stand inside a version comment, or the count would
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
func (r *queryReader) fillable() error {
	p := r.plan
	q := &p.query
	if p.Update {
		sourced, err := r.sourced()
		if err != nil {
			return err
		}
		q.sourced = sourced
	}
	if q.sourced && (q.listEnd < 0 || q.cut || q.old) {
		return unsupported("ON DUPLICATE KEY UPDATE that may read columns of the query's tables")
	}
	if q.old && !q.single {
		return unsupported("INSERT ... SELECT of several queries, on a server without WITH")
	}
	if p.slots[0].rule.Packet {
		return unsupported("INSERT ... SELECT on a server that may not know LAST_INSERT_ID(expr)")
	}
	if p.Update && r.tailReads(r.updateAt) || p.Returning && r.returned {
		return unsupported("INSERT ... SELECT in a statement that reads LAST_INSERT_ID() behind it")
	}
	for k := range p.slots {
		switch c := &p.slots[k]; {
		case c.at >= 0 && c.text:
			return unsupported("INSERT ... SELECT that gives a text id")
		case c.at >= 0 && q.sourced:
			return unsupported("ON DUPLICATE KEY UPDATE that may read columns of the query's tables, with a query that gives ids")
		}
	}
	p.ZeroDoubt = len(p.order) > 0
	return nil
}

// tailReads reports whether LAST_INSERT_ID is named from at on, but for the application's own id=LAST_INSERT_ID(id).
func (r *queryReader) tailReads(at int) bool {
	s := r.scanner
	s.noting, s.pos = false, at
	own := r.plan.OwnLastID
	for {
		t := s.next()
		switch {
		case t.kind == tokEnd, t.kind == tokBad:
			return false
		case (t.kind == tokWord || t.kind == tokQuoted) && s.namesLastID(t):
			if !own {
				return true
			}
			own = false
		}
	}
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
func (w *queryWalk) token(t token) error {
	switch {
	case w.punct(t, '?'):
		w.plan.query.marks++
	case w.punct(t, ',') && w.depth == 0 && w.tables:
		w.plan.query.joined = true
	case w.punct(t, '/'):
		w.plan.query.divides = true
	case w.punct(t, '('):
		if err := w.call(); err != nil {
			return err
		}
		w.depth++
	case w.punct(t, ')'):
		w.depth--
	case w.punct(t, '=') && w.punct(w.previous[0], ':') && w.previous[0].end == t.start:
		return unsupported("INSERT ... SELECT that sets a user variable")
	case t.kind == tokWord && !w.punct(w.previous[0], '@') && !w.punct(w.previous[0], '.') && !w.qualifies(t):
		if err := w.word(t); err != nil {
			return err
		}
	case t.kind != tokWord && t.kind != tokQuoted:
	case w.punct(w.previous[0], '.') && foldEqual(w.name(t), "nextval"):
		return unsupported("INSERT ... SELECT that draws from a sequence")
	case foldEqual(w.name(t), "warning_count"), foldEqual(w.name(t), "error_count"):
		return unsupported("INSERT ... SELECT that reads what a question ends, the warnings of the statement before")
	}
	w.previous[1], w.previous[0] = w.previous[0], t
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
	case w.isWord(w.previous[0], "select") && selectOption(w.text[t.start:t.end]):
		return unsupported("INSERT ... SELECT with an option behind SELECT that a query inside another cannot have")
	case w.depth > 0:
		return nil
	}
	q := &w.plan.query
	word := w.text[t.start:t.end]
	q.joined = q.joined || foldEqual(word, "join") || foldEqual(word, "straight_join")
	w.tables = w.tables && !foldEqual(word, "where") && !foldEqual(word, "order") && !foldEqual(word, "limit")
	switch {
	case foldEqual(word, "examined"):
		return unsupported("INSERT ... SELECT with LIMIT ROWS EXAMINED")
	case foldEqual(word, "limit"), foldEqual(word, "fetch") && w.nextIs("first", "next"),
		foldEqual(word, "offset") && (w.peek().kind == tokDigits || w.punct(w.peek(), '?')):
		w.limited, w.plain = true, false
	case foldEqual(word, "for") && w.nextIs("update", "share"), foldEqual(word, "lock") && w.nextIs("in", "in"):
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
	case unplain(word):
		w.plain, w.loose = false, false
		q.single = q.single && !joins(word)
	}
	return nil
}

func (w *queryWalk) nextIs(a, b string) bool {
	t := w.peek()
	return w.isWord(t, a) || w.isWord(t, b)
}

// selectOption reports whether a word behind SELECT is an option of whole statements only.
func selectOption(word []byte) bool {
	for _, option := range [...]string{"sql_calc_found_rows", "high_priority", "sql_buffer_result", "sql_cache", "sql_no_cache"} {
		if foldEqual(word, option) {
			return true
		}
	}
	return false
}

// unplain reports whether a word outside parentheses makes of a SELECT more than one whose list can be longer.
func unplain(word []byte) bool {
	for _, w := range [...]string{
		"union", "except", "intersect", "minus", "distinct", "distinctrow", "group", "having", "window", "values", "table", "with", "rownum",
	} {
		if foldEqual(word, w) {
			return true
		}
	}
	return false
}

// joins reports whether a word joins queries.
func joins(word []byte) bool {
	for _, w := range [...]string{"union", "except", "intersect", "minus"} {
		if foldEqual(word, w) {
			return true
		}
	}
	return false
}

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

// sourced reports whether ON DUPLICATE KEY UPDATE may read columns of the query's tables: it has a name that is not of the
// statement's own table.
func (r *queryReader) sourced() (bool, error) {
	if r.table == nil {
		return false, ErrNeedTable
	}
	s := r.scanner
	s.noting, s.pos = false, r.updateAt
	table := r.nameBehindDot(r.into)
	var parts [3][]byte
	for {
		t := s.next()
		switch {
		case t.kind == tokEnd, t.kind == tokBad, r.mode.MariaDB && s.isWord(t, "returning"):
			return false, nil
		case s.punct(t, '@'): // a variable
			for s.punct(s.peek(), '@') {
				s.next()
			}
			for s.next(); s.punct(s.peek(), '.'); s.next() {
				s.next()
			}
			continue
		case s.name(t) == nil:
			continue
		}
		n := 1
		parts[0] = s.name(t)
		for n < len(parts) && s.punct(s.peek(), '.') {
			s.next()
			parts[n] = s.nameOf(s.next())
			n++
		}
		switch {
		case n > 1 && !ascii.EqualFold(parts[n-2], string(table)):
			return true, nil
		case n > 1, r.table.Find(string(parts[0])) != nil:
		case t.kind == tokQuoted, !isOf(reservedWords, parts[0]) && !s.punct(s.peek(), '('):
			return true, nil
		}
	}
}

// nameOf is name where only an identifier can stand.
func (s *scanner) nameOf(t token) []byte {
	if t.kind == tokDigits {
		return s.text[t.start:t.end]
	}
	return s.name(t)
}
