package rule

import (
	"math"
	"strconv"
	"strings"

	"idproxy/ascii"
	"idproxy/pattern"
)

// Table is what the server says of a table.
type Table struct {
	Columns   []Column // the visible columns, in order
	Invisible []Column // columns with a rule that SELECT * does not show
}

// Column is one column of a table.
type Column struct {
	Name          string
	AutoIncrement bool
	Max           uint64 // greatest id the column can hold; 0: it cannot hold a generated number (DATE, BLOB, DOUBLE, ...)
	Unsigned      bool   // a number below zero does not fit: servers store 0 in its place, or refuse it
	Text          bool   // CHAR, VARCHAR, BINARY, VARBINARY: a string that is no whole number is an explicit id
	Bytes         bool   // it has no character set: a number, a time, bytes
	Length        int    // CHAR, VARCHAR: characters it holds; BINARY, VARBINARY: bytes
	Padded        bool   // CHAR, BINARY: it fills up what is shorter
	UUID          bool   // MariaDB's type of that name
	Type          string // as messages name it
	Charset       string // of a column that genes by crc32 come from: its character set; "": not asked for
	// Default: it has a default, or allows NULL: an INSERT that leaves it out succeeds in any
	// sql_mode without storing 0 for want of one.
	Default bool
	// What tells whether a wildcard concerns the table, see Rule.Unfit.
	Key       bool   // some key begins with it, or it is in the primary key
	Primary   bool   // it is in the primary key
	NotNull   bool   // it takes no NULL
	Generated bool   // the server computes it: GENERATED ALWAYS
	Own       string // its DEFAULT as the server writes it; "": none, NULL, or not asked for
}

// integer reports whether the column's type is one of TINYINT to BIGINT.
func (c *Column) integer() bool {
	switch strings.TrimPrefix(c.Type, "UNSIGNED ") {
	case "TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT":
		return true
	}
	return false
}

// Shorten takes what a text column is declared to hold, in characters or bytes, where its
// definition has promised more.
func (c *Column) Shorten(declared string) {
	if n, err := strconv.Atoi(declared); err == nil && c.Text && n < c.Length {
		c.Length, c.Max = n, min(c.Max, Nines(n))
		if kind, _, ok := strings.Cut(c.Type, "("); ok {
			c.Type = kind + "(" + declared + ")"
		}
	}
}

// Nines returns the greatest number of that many digits.
func Nines(digits int) uint64 {
	if digits >= 20 {
		return math.MaxUint64
	}
	n := uint64(0)
	for range digits {
		n = n*10 + 9
	}
	return n
}

// Index returns the position of a visible column, compared without regard to case as servers do, or
// -1.
func (t *Table) Index(column string) int { return index(t.Columns, column) }

// Column returns the column of a name, visible or not.
func (t *Table) Column(name string) (c Column, visible, ok bool) {
	if i := index(t.Columns, name); i >= 0 {
		return t.Columns[i], true, true
	}
	if i := index(t.Invisible, name); i >= 0 {
		return t.Invisible[i], false, true
	}
	return c, false, false
}

// Find returns the column of a name to be changed, visible or not; nil when there is none.
func (t *Table) Find(name string) *Column {
	if i := index(t.Columns, name); i >= 0 {
		return &t.Columns[i]
	}
	if i := index(t.Invisible, name); i >= 0 {
		return &t.Invisible[i]
	}
	return nil
}

func index(columns []Column, name string) int {
	for i := range columns {
		if SameColumn(columns[i].Name, name) {
			return i
		}
	}
	return -1
}

// SetKey replaces what is known of a column, or adds it to the invisible ones.
func (t *Table) SetKey(c Column) {
	for _, columns := range [...][]Column{t.Columns, t.Invisible} {
		if i := index(columns, c.Name); i >= 0 {
			columns[i] = c
			return
		}
	}
	t.Invisible = append(t.Invisible, c)
}

// SameColumn reports whether two names in UTF-8 are of one column.
func SameColumn(a, b string) bool {
	for i := range min(len(a), len(b)) {
		c, d := a[i], b[i]
		if c == d {
			continue
		}
		if (c | d) >= 0x80 {
			return !ascii.ValidString(a) && pattern.Fold(a) == pattern.Fold(b)
		}
		if c|0x20 != d|0x20 || c|0x20 < 'a' || c|0x20 > 'z' {
			return false // letters of Unicode are folded one for one, and what stands before is equal
		}
	}
	return len(a) == len(b)
}
