package rule

import "idproxy/pattern"

// Explicit is what a rule does with an id that the application gives itself.
type Explicit uint8

// Keep stores the application's id; Reject refuses the statement; Advance stores it and moves the
// source past it.
const (
	Keep Explicit = iota
	Reject
	Advance
)

// Rule says which column of which tables gets ids from which source.
type Rule struct {
	Schema, Table string // patterns: * and ? match within the name, never across the dot
	Column        string
	Source        string
	Era           uint64 // which of the sources that had the name one after the other
	IDs           IDKind // of the source
	Last          uint64 // greatest id of the source, which what is above does not concern; 0: any
	Explicit      Explicit
	Packet        bool    // last_insert_id: packet
	Forward       bool    // unsupported: forward
	Observe       bool    // mode: observe
	Gene          *Gene   // nil: none
	Counts        *Counts // nil: nobody asks
}

// Exact reports whether the rule names one table, without wildcards.
func (r *Rule) Exact() bool { return r.pattern().Exact() }

func (r *Rule) pattern() pattern.Table { return pattern.Table{Schema: r.Schema, Name: r.Table} }

// String returns "schema.table.column", as error messages name the rule.
func (r *Rule) String() string { return r.Schema + "." + r.Table + "." + r.Column }
