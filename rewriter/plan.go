package rewriter

import "errors"

// Table is what the server says of a table: its visible columns in order.
type Table struct{ Columns []Column }

// Column is one visible column of a table.
type Column struct {
	Name          string
	AutoIncrement bool
	Max           uint64 // greatest id the column can hold; 0: it cannot hold a generated number (DATE, BLOB, DOUBLE, ...)
}

// Index returns the position of a column, compared without regard to case as servers do, or -1.
func (t *Table) Index(column string) int { return -1 }

// Errors of [Plan.Read] beside *[Unsupported].
var (
	// ErrNeedTable: the statement has no column list; read it again with the table's facts.
	ErrNeedTable = errors.New("table facts needed")
	// ErrRefusedByServer: the server is certain to refuse the text before it writes anything; forward it unchanged, so
	// that the application sees the server's own error.
	ErrRefusedByServer = errors.New("statement that the server refuses")
)

// Unsupported is the error for a statement that is not edited.
type Unsupported struct {
	Form string // what stands in the way, such as "INSERT ... SELECT" or "not understood at byte 37: ..."
}

func (e *Unsupported) Error() string { return e.Form }

// Plan is what to do to one INSERT or REPLACE.
type Plan struct {
	Rows            int    // tuples of the statement
	Generated       int    // tuples whose id comes from the source
	ZeroDoubt       bool   // some id is written 0, '0' or DEFAULT: NO_AUTO_VALUE_ON_ZERO of the Mode decided
	LastExplicit    uint64 // the last tuple's id as the OK packet shows it (-5 is 2^64-5), when no row is generated
	HasLastExplicit bool
	ReadsLastID     bool // the statement mentions LAST_INSERT_ID or identity
}

// Read reads the INSERT or REPLACE that text is. table may be nil when the facts are unknown.
func (p *Plan) Read(text []byte, m Mode, rule *Rule, table *Table) error {
	*p = Plan{}
	return &Unsupported{Form: "not available yet"}
}

// Append appends the rewritten statement to dst. text is what Read read; ids are p.Generated ids in row order.
func (p *Plan) Append(dst, text []byte, ids []uint64) []byte { return append(dst, text...) }
