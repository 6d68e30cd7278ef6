package rewriter

import "idproxy/ascii"

// CreatesRows reports whether a CREATE TABLE defines a column itself and fills the table from a query, which may not give
// that column a value. A text that cannot be read counts as one that does.
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
		case r.punct(t, '('):
			depth++
		case r.punct(t, ')'):
			depth--
		case r.isWord(t, "select"), r.isWord(t, "values") && depth == 0 && (r.punct(r.peek(), '(') || r.isWord(r.peek(), "row")),
			r.isWord(t, "table") && depth == 0:
			return defines
		case depth > 0 && (ascii.EqualFold(column, string(r.name(t))) || !ascii.ValidString(column) && !ascii.Valid(r.name(t))):
			defines = true
		}
	}
}
