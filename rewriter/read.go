package rewriter

import (
	"bytes"
	"fmt"
	"math"
)

// Read reads an INSERT or REPLACE. A statement that cannot be read without the table's facts gives ErrNeedTable. After any
// error the plan must not be used.
//
// Understood: [INSERT [LOW_PRIORITY | HIGH_PRIORITY] | REPLACE [LOW_PRIORITY]] [INTO] name [(columns)] {VALUES | VALUE}
// tuple [, tuple] ... Any other form is *Unsupported.
func (p *Plan) Read(s *Statement) error {
	p.reset()
	if len(s.Rules) != 1 {
		return unsupported("several generated columns")
	}
	text, rule := s.Text, s.Rules[0]
	if rule.Packet {
		return unsupported("last_insert_id: packet")
	}
	p.Columns = append(p.Columns, Filled{})
	if len(text) > math.MaxUint32 {
		return unsupported("statement over 4 GiB")
	}
	if hasHigh([]byte(rule.Column)) {
		return unsupported("column name beyond ASCII")
	}
	p.column = appendQuoted(p.column, rule.Column)
	r := planReader{plan: p, rule: rule, table: s.Table, id: -1}
	r.scanner = scanner{text: text, mode: s.Mode, version: versionRefuse}
	if MentionsLastID(text) {
		p.ReadsLastID = readsLastID(text, s.Mode)
	}
	if err := r.names(); err != nil {
		return err
	}
	if err := r.tuples(); err != nil {
		return err
	}
	return r.finish()
}

// planReader fills a plan from one statement.
type planReader struct {
	headReader
	plan  *Plan
	rule  *Rule
	table *Table

	verb  string // INSERT or REPLACE, for messages
	id    int    // position of the id among the values; -1: it is appended
	width int    // values per tuple
	move  bool   // the id goes from its position to the end of list and tuples
	last  value  // the id of the tuple read last
	shape uint64 // what the tuple is made of, so far
}

func unsupported(form string) error { return &Unsupported{Form: form} }

// unexpected is the error for a token that has no place where it stands. It tells what kind of token that is, never its
// text, for that may be a value.
func (r *planReader) unexpected(t token) error {
	what := "unexpected word"
	switch t.kind {
	case tokEnd:
		what = "unexpected end of the statement"
	case tokBad:
		if r.fault == faultVersion {
			return unsupported(faultVersion)
		}
		what = r.fault
	case tokString, tokDollar:
		what = "unexpected string"
	case tokDigits, tokNumber:
		what = "unexpected number"
	case tokPunct:
		what = fmt.Sprintf("unexpected %q", r.text[t.start])
	}
	return unsupported(fmt.Sprintf("not understood at byte %d: %s", t.start, what))
}

func appendQuoted(dst []byte, name string) []byte {
	dst = append(dst, '`')
	for i := range len(name) {
		if name[i] == '`' {
			dst = append(dst, '`')
		}
		dst = append(dst, name[i])
	}
	return append(dst, '`')
}

// readsLastID reports whether the statement names LAST_INSERT_ID or identity outside strings and comments; true, too, when
// it is not understood.
func readsLastID(text []byte, m Mode) bool {
	s := scanner{text: text, mode: m}
	for {
		t := s.next()
		switch t.kind {
		case tokEnd:
			return false
		case tokBad:
			return true
		case tokWord, tokQuoted:
			if n := s.name(t); foldEqual(n, "last_insert_id") || foldEqual(n, "identity") {
				return true
			}
		}
	}
}

// names reads up to and with VALUES.
func (r *planReader) names() error {
	t, err := r.verbAndModifiers()
	if err != nil {
		return err
	}
	if t.kind == tokWord && reserved(r.text[t.start:t.end]) {
		return r.unexpected(t)
	}
	name := r.target(t)
	if name.Table == nil {
		return r.unexpected(t)
	}
	end := r.pos
	t = r.next()
	list := r.punct(t, '(')
	if list {
		if err := r.columns(name); err != nil {
			return err
		}
		t = r.next()
	}
	if err := r.values(t); err != nil {
		return err
	}
	if list {
		return nil
	}
	return r.noColumns(end)
}

func (r *planReader) verbAndModifiers() (token, error) {
	t := r.next()
	switch r.keyword(t) {
	case kwInsert:
		r.verb = "INSERT"
	case kwReplace:
		r.verb = "REPLACE"
	default:
		return t, r.unexpected(t)
	}
	t = r.next()
	if r.isWord(t, "low_priority") || r.isWord(t, "high_priority") && r.verb == "INSERT" {
		t = r.next()
	}
	switch {
	case r.isWord(t, "delayed"):
		return t, unsupported(r.verb + " DELAYED")
	case r.isWord(t, "ignore"):
		return t, unsupported(r.verb + " IGNORE")
	case r.isWord(t, "into"):
		t = r.next()
	}
	return t, nil
}

// reserved reports whether an unquoted word cannot be a table's name where one is expected, for it goes on the statement.
func reserved(word []byte) bool {
	for _, w := range [...]string{
		"into", "ignore", "delayed", "low_priority", "high_priority", "values", "set", "select", "with", "table", "partition",
		"as", "on", "insert", "replace", "default", "null",
	} {
		if foldEqual(word, w) {
			return true
		}
	}
	return false
}

// columns reads the column list behind its parenthesis and finds the id in it.
func (r *planReader) columns(table Name) error {
	var at, comma token
	for n := 0; ; n++ {
		t := r.next()
		if n == 0 {
			if form := r.otherRows(t); form != "" {
				return unsupported(form)
			}
			if r.punct(t, ')') {
				return unsupported("empty column list")
			}
		}
		column, span, err := r.columnName(t, table)
		if err != nil {
			return err
		}
		t = r.next()
		if equalFold(column, r.rule.Column) {
			if r.id >= 0 {
				return ErrRefusedByServer
			}
			r.id, at, comma = n, span, t
		}
		if r.punct(t, ')') {
			r.width = n + 1
			r.listEdits(at, comma, t)
			return nil
		}
		if !r.punct(t, ',') {
			return r.unexpected(t)
		}
	}
}

// listEdits puts the id at the end of the list where it has to be there.
func (r *planReader) listEdits(at, comma, end token) {
	r.move = r.plan.ReadsLastID && r.id >= 0 && r.id != r.width-1
	if r.move {
		r.plan.edit(at.start, at.end, opDelete)
		r.plan.edit(comma.start, comma.end, opDelete)
	}
	if r.move || r.id < 0 {
		r.plan.edit(end.start, end.start, opColumn)
	}
}

// columnName reads column, table.column or schema.table.column, of which t is the first token.
func (r *planReader) columnName(t token, table Name) (column []byte, span token, err error) {
	var parts [3][]byte
	span = t
	parts[0] = r.name(t)
	n := 1
	for parts[n-1] != nil {
		span.end = t.end
		if t = r.peek(); !r.punct(t, '.') {
			break
		}
		if n == len(parts) {
			return nil, span, r.unexpected(t)
		}
		r.next()
		t = r.next()
		parts[n] = r.nameBehindDot(t)
		n++
	}
	if parts[n-1] == nil {
		return nil, span, r.unexpected(t)
	}
	if n > 1 && !equalFold(parts[n-2], string(table.Table)) {
		return nil, span, unsupported("column list with a column of another table")
	}
	return parts[n-1], span, nil
}

// values takes VALUES or VALUE, or names the form that stands in its place.
func (r *planReader) values(t token) error {
	switch {
	case r.isWord(t, "values"), r.isWord(t, "value"):
	case r.otherRows(t) != "":
		return unsupported(r.otherRows(t))
	case r.isWord(t, "set"):
		return unsupported(r.verb + " ... SET")
	case r.isWord(t, "partition"):
		return unsupported("PARTITION")
	case r.isWord(t, "as"):
		return unsupported("alias of the table or row")
	default:
		return r.unexpected(t)
	}
	if r.isWord(r.peek(), "row") {
		return unsupported("VALUES ROW()")
	}
	return nil
}

// otherRows names the form of a statement whose rows come from a query that begins with t.
func (r *planReader) otherRows(t token) string {
	for _, w := range [...]string{"select", "with", "table", "values"} {
		if r.isWord(t, w) {
			return r.verb + " ... " + string(bytes.ToUpper([]byte(w)))
		}
	}
	if r.punct(t, '(') {
		return r.verb + " ... SELECT"
	}
	return ""
}

// noColumns finds the id by the table's facts. A list is added only where the id must move to the end.
func (r *planReader) noColumns(nameEnd int) error {
	if r.table == nil {
		return ErrNeedTable
	}
	r.id, r.width = r.table.Index(r.rule.Column), len(r.table.Columns)
	if r.id < 0 {
		return unsupported("no column list, and no visible column " + r.rule.Column)
	}
	r.move = r.plan.ReadsLastID && r.id != r.width-1
	if !r.move {
		return nil
	}
	list := append(r.plan.list, " ("...) // with the blank, or a table called mid or count would read as a function
	for i := range r.table.Columns {
		name := r.table.Columns[i].Name
		if hasHigh([]byte(name)) {
			return unsupported("column name beyond ASCII in a statement that reads LAST_INSERT_ID and has no column list")
		}
		if i != r.id {
			list = append(appendQuoted(list, name), ',')
		}
	}
	r.plan.list = append(append(list, r.plan.column...), ')')
	r.plan.edit(nameEnd, nameEnd, opList)
	return nil
}
