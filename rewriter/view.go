package rewriter

import (
	"bytes"

	"idproxy/ascii"
)

// View is a view over one table, as far as its columns are columns of that.
type View struct {
	Table   Name // without a schema: in the view's own
	columns []viewColumn
}

// viewColumn is a column of a view. A base that is nil is an expression.
type viewColumn struct{ name, base []byte }

// Base returns the column of the table that a column of the view is; nil when it is none.
func (v *View) Base(column string) []byte {
	for _, c := range v.columns {
		if ascii.EqualFold(c.name, column) {
			return c.base
		}
	}
	return nil
}

// ReadView reads what SHOW CREATE VIEW shows: servers write every view down in the same way,
// whatever its author wrote. ok is false for a view over several tables, and for one that is not
// understood, as with a backslash in it: how that reads depends on sql_mode.
func ReadView(text []byte) (v *View, ok bool) {
	if bytes.IndexByte(text, '\\') >= 0 {
		return nil, false
	}
	r := viewReader{scanner: scanner{text: text, mode: Mode{ANSIQuotes: true, MariaDB: true}}, v: &View{}}
	return r.v, r.head() && r.columns() && r.from() && r.rename()
}

type viewReader struct {
	scanner
	v     *View
	names [][]byte // those of the list behind the view's name; nil: none
}

// head reads up to SELECT.
func (r *viewReader) head() bool {
	t := r.next()
	if !r.isWord(t, "create") {
		return false
	}
	for ; !r.isWord(t, "view"); t = r.next() {
		if t.kind == tokEnd || t.kind == tokBad {
			return false
		}
	}
	_, t, ok := r.path(r.next())
	if ok && r.punct(t, '(') {
		for ok && !r.punct(t, ')') {
			name := r.name(r.next())
			r.names, t = append(r.names, name), r.next()
			ok = name != nil && (r.punct(t, ',') || r.punct(t, ')'))
		}
		t = r.next()
	}
	if !ok || !r.isWord(t, "as") {
		return false
	}
	for t = r.next(); r.punct(t, '('); {
		t = r.next()
	}
	return r.isWord(t, "select")
}

// path reads a name, or several with dots between, of which t is the first, and returns the last
// two and what follows.
func (r *viewReader) path(t token) (n Name, after token, ok bool) {
	for {
		name := r.name(t)
		if name == nil {
			return n, t, false
		}
		n = Name{Schema: n.Table, Table: name}
		if t = r.next(); !r.punct(t, '.') {
			return n, t, true
		}
		t = r.next()
	}
}

// columns reads the list behind SELECT, and FROM.
func (r *viewReader) columns() bool {
	for {
		c, behind, ok := r.column()
		if !ok {
			return false
		}
		r.v.columns = append(r.v.columns, c)
		if r.isWord(behind, "from") {
			return true
		}
	}
}

// column reads a value of the list, whose name stands last in it, and returns what follows. It is a
// column of the table where it is nothing but a path and AS.
func (r *viewReader) column() (c viewColumn, behind token, ok bool) {
	path, t, ok := r.path(r.next())
	if ok && r.isWord(t, "as") {
		c.base = path.Table
	}
	var last token
	for depth := 0; depth > 0 || !r.punct(t, ',') && !r.isWord(t, "from"); last, t = t, r.next() {
		if t.kind == tokEnd || t.kind == tokBad {
			return c, t, false
		}
		nesting := r.nesting(t)
		if depth += nesting; depth < 0 {
			return c, t, false
		}
		if nesting == 0 && depth == 0 && !r.isWord(last, "as") && !r.isWord(t, "as") {
			c.base = nil
		}
	}
	c.name = r.name(last)
	return c, t, c.name != nil
}

// from reads the table, and refuses more than one.
func (r *viewReader) from() bool {
	n, t, ok := r.path(r.next())
	if !ok {
		return false
	}
	r.v.Table = n
	if t.kind == tokQuoted || t.kind == tokWord && !r.oneOf(t, "where", "group", "having", "order", "limit", "use", "force", "ignore", "partition", "with", "for", "window") && !r.joins(t) {
		t = r.next() // the alias
	}
	return t.kind != tokBad && !r.joins(t) && !r.punct(t, '(')
}

// joins reports whether another table follows.
func (r *viewReader) joins(t token) bool {
	return r.punct(t, ',') || r.oneOf(t, "join", "left", "right", "inner", "cross", "natural", "straight_join", "union", "intersect", "except")
}

func (r *viewReader) oneOf(t token, words ...string) bool {
	for _, w := range words {
		if r.isWord(t, w) {
			return true
		}
	}
	return false
}

// rename gives the columns the names of the list behind the view's name.
func (r *viewReader) rename() bool {
	if r.names != nil && len(r.names) != len(r.v.columns) {
		return false
	}
	for i := range r.names {
		r.v.columns[i].name = r.names[i]
	}
	return true
}
