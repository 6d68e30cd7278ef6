package rewriter

// Explicit is what a rule does with an id that the application gives itself.
type Explicit uint8

// Keep stores the application's id; Reject refuses the statement.
const (
	Keep Explicit = iota
	Reject
)

// Rule says which column of which tables gets ids from which source.
type Rule struct {
	Schema, Table string // patterns: * and ? match within the name, never across the dot
	Column        string
	Source        string
	Explicit      Explicit
	Forward       bool // unsupported: forward
	Observe       bool // mode: observe
}

// Exact reports whether the rule names one table, without wildcards.
func (r *Rule) Exact() bool { return false }

// String returns "schema.table.column", as error messages name the rule.
func (r *Rule) String() string { return r.Schema + "." + r.Table + "." + r.Column }

// Rules is an immutable list of rules, safe for concurrent use.
type Rules struct{ rules []Rule }

// NewRules returns the rules in their order of precedence. It keeps no reference to the slice.
func NewRules(rules []Rule) *Rules { return &Rules{rules: append([]Rule(nil), rules...)} }

// Match returns the rules of a table, per column the first that matches, in the order of the file; nil when none does.
func (r *Rules) Match(schema, table []byte, fold bool) []*Rule { return nil }

// MayMatch reports whether a table of this name could have a rule in some schema.
func (r *Rules) MayMatch(table []byte, fold bool) bool { return false }
