package rewriter

import (
	"bytes"

	"idproxy/ascii"
	"idproxy/rule"
)

// absent returns the columns that the file does not have, each with a comma behind it.
func (r *loadReader) absent() (names []byte) {
	for k := range r.statement.Rules {
		if r.load.At[k] < 0 {
			names = append(AppendQuoted(names, r.spelled[k], r.mode), ',')
		}
	}
	return names
}

// item reads a column or a variable.
func (r *loadReader) item() error {
	n := r.load.Fields
	r.load.Fields++
	if r.punct(r.t, '@') {
		r.load.Bytes = append(r.load.Bytes, true)
		if r.advance(); r.t.kind != tokString && r.name(r.t) == nil {
			return r.unexpected(r.t)
		}
		r.advance()
		return nil
	}
	for parts := 1; ; parts++ {
		name := r.nameBehindDot(r.t)
		if parts == 1 {
			name = r.name(r.t)
		}
		if name == nil || parts > 3 {
			return r.unexpected(r.t)
		}
		if r.advance(); r.punct(r.t, '.') {
			r.advance()
			continue
		}
		bytes, err := r.bytes(name)
		if err != nil {
			return err
		}
		r.load.Bytes = append(r.load.Bytes, bytes)
		k := r.ruled(name)
		if k < 0 {
			return nil
		}
		if r.load.At[k] >= 0 {
			return unsupported("LOAD DATA that reads a generated column twice")
		}
		r.load.At[k] = n
		return nil
	}
}

// bytes reports whether a column has no character set.
func (r *loadReader) bytes(name []byte) (bool, error) {
	if r.statement.Table == nil {
		return false, nil
	}
	for _, columns := range [...][]rule.Column{r.statement.Table.Columns, r.statement.Table.Invisible} {
		for i := range columns {
			if ascii.Valid(name) != ascii.ValidString(columns[i].Name) {
				continue
			}
			spelled, err := spell(r.statement.Speller, columns[i].Name)
			if err != nil {
				return false, err
			}
			if isSpelled(name, spelled, columns[i].Name) {
				return columns[i].Bytes, nil
			}
		}
	}
	return false, nil
}

// ruled returns the index of the rule whose column a name is, or -1.
func (r *loadReader) ruled(name []byte) int {
	for k, rule := range r.statement.Rules {
		if isSpelled(name, r.spelled[k], rule.Column) {
			return k
		}
	}
	return -1
}

// wholeTable is for a statement without a list: it reads all visible columns. One that is not among
// them makes the list necessary.
func (r *loadReader) wholeTable(at int, open, closing string) error {
	table := r.statement.Table
	if table == nil {
		return ErrNeedTable
	}
	r.load.Fields = len(table.Columns)
	for i := range table.Columns {
		r.load.Bytes = append(r.load.Bytes, table.Columns[i].Bytes)
	}
	for k, rule := range r.statement.Rules {
		if r.load.At[k] = table.Index(rule.Column); r.load.At[k] < 0 && table.Find(rule.Column) == nil {
			return unsupported("no column list, and no column " + rule.Column)
		}
	}
	names := r.absent()
	if names == nil {
		return nil
	}
	text := append([]byte(open), names...)
	for i := range table.Columns {
		name, err := spell(r.statement.Speller, table.Columns[i].Name)
		if err != nil {
			return err
		}
		text = append(AppendQuoted(text, name, r.mode), ',')
	}
	text = append(bytes.TrimSuffix(text, []byte(",")), closing...)
	r.load.edits = append(r.load.edits, loadEdit{at, text})
	return nil
}
