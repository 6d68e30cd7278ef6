package rewriter

import "idproxy/ascii"

// CreatesRows reports whether a CREATE TABLE defines a column itself and fills the table from a
// query, which may not give that column a value. A text that cannot be read counts as one that
// does.
func CreatesRows(text []byte, m Mode, column string) bool {
	r := headReader{scanner: scanner{text: text, mode: m}}
	r.read()
	if !r.head.Create || len(r.head.Target.Table) == 0 {
		return false
	}
	defines := false
	for depth := 0; ; {
		t := r.next()
		switch {
		case t.kind == tokEnd:
			return false
		case t.kind == tokBad:
			return true
		case r.beginsRows(t, depth):
			return defines
		}
		depth += r.nesting(t)
		defines = defines || depth > 0 && mayBeColumn(r.name(t), column)
	}
}

// beginsRows reports whether a query begins with t, at a depth of parentheses.
func (r *headReader) beginsRows(t token, depth int) bool {
	switch {
	case r.isWord(t, "select"):
		return true
	case depth != 0:
		return false
	case r.isWord(t, "values"):
		behind := r.peek()
		return r.punct(behind, '(') || r.isWord(behind, "row")
	}
	return r.isWord(t, "table")
}

// mayBeColumn reports whether a name, nil for none, may be that of a column. Beyond ASCII it
// depends on the character set.
func mayBeColumn(name []byte, column string) bool {
	return ascii.EqualFold(name, column) || !ascii.ValidString(column) && !ascii.Valid(name)
}
