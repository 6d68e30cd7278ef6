package catalog

import (
	"crypto/sha256"
	"sync/atomic"
	"time"

	"idproxy/rewriter"
	"idproxy/rule"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// Table is what the server said of one table.
type Table struct {
	Name  string         // schema.table, for messages
	Table *rule.Table    // nil beside Err, and where no server was asked
	Bases []Base         // of columns that have a series for each table
	View  bool           // it lacks a column that a rule names, and is a view
	Err   *mysql.MyError // why it said nothing
	// Partial: the user may not see all of it, others may.
	Partial bool
	At      time.Time
	// Changes is that of the tables before the server was asked: what it says
	// while DDL is on its way may be over already.
	Changes uint64
	engine  atomic.Int32 // an Engine
	// admitted are columns of the table that are known to be.
	admitted atomic.Pointer[admitted]
	doubted  atomic.Bool // a row did not fit the table
	// Shape tells the columns that SELECT * shows from others, and Full is when the
	// rest was asked for.
	Shape [sha256.Size]byte
	Full  time.Time
}

// TableName names a table in messages.
func TableName(t rewriter.Name) string { return string(t.Schema) + "." + string(t.Table) }

// Doubt says that a row did not fit the table.
func (f *Table) Doubt() { f.doubted.Store(true) }

// Base is the table that a column of a view, or of a table, belongs to.
type Base struct {
	Column string
	Table  rewriter.Name
	Err    error // why that is not known
}

// Series returns the table whose series the ids of a column come from, if its source has
// one for each table. t is the table itself.
func (f *Table) Series(column string, t rewriter.Name) (rewriter.Name, error) {
	for _, b := range f.Bases {
		if b.Column == column {
			return b.Table, b.Err
		}
	}
	return t, nil
}

// Engine is what is known of a table's storage engine. A view has none.
type Engine int32

// A transactional engine takes the rows of a statement back that fails in the middle.
const (
	EngineUnknown Engine = iota
	EngineTransactional
	EngineOther
)

// LearnEngine notes the table's engine.
func (f *Table) LearnEngine(e Engine) { f.engine.Store(int32(e)) }

// Engine returns the table's engine.
func (f *Table) Engine() Engine { return Engine(f.engine.Load()) }

// Tells reports whether what else is to be known of a table, besides the columns that
// are asked for again and again, is known.
func (f *Table) Tells(now *Table) bool {
	return f != nil && f.Err == nil && f.Shape == now.Shape && f.Changes == now.Changes && now.At.Sub(f.Full) <= maxAge
}

// Keep takes over what was known of the table before, whose columns are still the same.
func (f *Table) Keep(before *Table) {
	f.Table, f.Bases, f.View, f.Full = before.Table, before.Bases, before.View, before.Full
	f.LearnEngine(before.Engine())
}
