package rewriter

import (
	"bytes"
	"fmt"

	"idproxy/ascii"
	"idproxy/rule"
)

// planReader fills a plan from one statement.
type planReader struct {
	headReader
	plan   *Plan
	table  *rule.Table
	values []Value

	open      bool // Statement.Open
	prepared  bool // the statement is to be prepared
	utf8      int  // Statement.UTF8
	speller   Speller
	bulk      bool   // for several rows of parameters at once
	replace   bool   // REPLACE
	width     int    // values per tuple
	lengths   uint64 // bit n: some column with a rule has a name of n bytes
	mentioned bool   // a value names such a column, or something else of its name
	empty     bool   // all tuples are ()
	assigning bool   // inside SET or ON DUPLICATE KEY UPDATE: values end otherwise than in a tuple
	move      bool   // the first column's id goes from its place to the end of list and tuples
	into      token  // the name of the table
	atEnd     int    // the edit at the end of the last tuple that the first column's id made
	alias     bool   // the rows have one
	renamed   bool   // and their columns names of their own
	updateAt  int    // where the list of ON DUPLICATE KEY UPDATE begins
	returned  bool   // RETURNING reads the last insert id
	remarked  bool   // a tuple has a comment
	texts     bool   // an expression goes into a text column as it is
}

func (r *planReader) slot(of *rule.Rule) error {
	p := r.plan
	spelled, err := spell(r.speller, of.Column)
	if err != nil {
		return err
	}
	start := len(p.buffer)
	p.buffer = AppendQuoted(p.buffer, spelled, r.mode)
	c := slot{rule: of, spelled: spelled, name: Span{Start: start, End: len(p.buffer)}, at: -1, form: of.IDs.AnyForm()}
	if r.table != nil {
		known, _, _ := r.table.Column(of.Column)
		c.text, c.max, c.uuid = known.Text, known.Max, known.UUID
		if of.IDs.Wide() {
			if c.form = known.Form(of.IDs); c.form == rule.FormNone {
				return unsupported("column " + of.Column + " of a type that cannot hold its ids")
			}
		}
	}
	p.NoLastID = p.NoLastID || c.form.Wide() && len(p.slots) == 0
	p.slots = append(p.slots, c)
	p.Columns = append(p.Columns, Filled{})
	p.Plain = p.Plain || p.NoLastID || of.Packet && len(p.slots) == 1
	r.lengths |= 1 << min(len(spelled), 63)
	if !ascii.ValidString(spelled) { // small and capital letters may differ in length
		r.lengths = ^uint64(0)
	}
	return nil
}

// unexpected is the error for a token that has no place where it stands. The error tells what kind
// of token that is, never its text, which may be a value.
func (r *scanner) unexpected(t token) error {
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

// otherRows names the form of a statement whose rows come from a query that begins with t.
func (r *planReader) otherRows(t token) string {
	verb := "INSERT ... "
	if r.replace {
		verb = "REPLACE ... "
	}
	for _, w := range [...]string{"select", "with", "table", "values"} {
		if r.isWord(t, w) {
			return verb + string(bytes.ToUpper([]byte(w)))
		}
	}
	if r.punct(t, '(') {
		return verb + "SELECT"
	}
	return ""
}

// skip passes a value, of an assignment or in a tuple. It returns the end of its last token and
// what follows it.
func (r *planReader) skip() (end int, behind token, err error) {
	for depth := 0; ; {
		t := r.next()
		inside := depth > 0 || !r.assigning
		switch {
		case t.kind == tokBad, t.kind == tokEnd && inside, r.punct(t, ';') && inside:
			return 0, t, r.unexpected(t)
		case depth == 0 && r.ends(t):
			if end == 0 {
				return 0, t, r.unexpected(t)
			}
			return end, t, nil
		case r.punct(t, '('):
			depth++
		case r.punct(t, ')'):
			if depth--; depth < 0 {
				return 0, t, r.unexpected(t)
			}
		case t.kind == tokWord || t.kind == tokQuoted:
			r.mention(r.name(t))
		}
		end = t.end
	}
}

// equals takes = or :=.
func (r *planReader) equals() error {
	t := r.next()
	if r.punct(t, ':') && r.touches('=') {
		t = r.next()
	}
	if !r.punct(t, '=') {
		return r.unexpected(t)
	}
	return nil
}

// ends reports whether t ends a value.
func (r *planReader) ends(t token) bool {
	if !r.assigning {
		return r.punct(t, ',') || r.punct(t, ')')
	}
	switch t.kind {
	case tokEnd:
		return true
	case tokPunct:
		return r.text[t.start] == ',' || r.text[t.start] == ';'
	case tokWord: // RETURNING is a name on MySQL
		return r.isWord(t, "on") || r.isWord(t, "as") || r.mode.MariaDB && r.isWord(t, "returning")
	}
	return false
}

// mention notes a name that a value has: perhaps that of a column that gets ids, which the value
// then reads.
func (r *planReader) mention(name []byte) {
	if r.lengths>>min(len(name), 63)&1 != 0 && r.plan.slotOf(name) >= 0 {
		r.mentioned = true
	}
}
