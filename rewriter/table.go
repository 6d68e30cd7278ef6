package rewriter

// Table is what the server says of a table: its visible columns in order.
type Table struct{ Columns []Column }

// Column is one visible column of a table.
type Column struct {
	Name          string
	AutoIncrement bool
	Max           uint64 // greatest id the column can hold; 0: it cannot hold a generated number (DATE, BLOB, DOUBLE, ...)
}

// Index returns the position of a column, compared without regard to case as servers do, or -1.
func (t *Table) Index(column string) int {
	for i := range t.Columns {
		if equalFold(t.Columns[i].Name, column) {
			return i
		}
	}
	return -1
}
