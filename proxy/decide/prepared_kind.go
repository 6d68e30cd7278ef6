package decide

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/protocol"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Refusal is a statement whose PREPARE was refused: the error answers its executions.
type Refusal struct{ *mysql.MyError }

// stale is an INSERT that was prepared for a table that the server did not have then.
type stale struct{}

// shadow is an INSERT that was prepared for a temporary table, whose key it is, in place of a table
// with a rule.
type shadow string

func (Refusal) Held() bool { return true }

func (stale) Held() bool { return true }

func (shadow) Held() bool { return true }

func (*bare) Held() bool { return true }

func (*filler) Held() bool { return true }

func (*preparedQuery) Held() bool { return true }

func (Refusal) FollowsRules() bool { return false }

func (stale) FollowsRules() bool { return false }

func (shadow) FollowsRules() bool { return false }

func (*bare) FollowsRules() bool { return true }

func (*filler) FollowsRules() bool { return true }

func (*preparedQuery) FollowsRules() bool { return true }

// FillerOf returns what is known of an INSERT that gets ids, nil for another statement.
func FillerOf(e *protocol.Stmt) *filler {
	f, _ := e.Kind.(*filler)
	return f
}

// Reshapes reports whether the table of an INSERT had another number of columns when it was prepared
// before.
func Reshapes(before, now *protocol.Stmt) bool {
	columns := func(e *protocol.Stmt) int {
		var table *catalog.Table
		switch k := e.Kind.(type) {
		case *filler:
			table = k.facts
		case *bare:
			table = k.facts
		}
		if table == nil || table.Table == nil {
			return 0
		}
		return len(table.Table.Columns)
	}
	return columns(before) != columns(now)
}

// CountedOf returns what is known of an INSERT whose rows come from a query, nil for another
// statement.
func CountedOf(e *protocol.Stmt) *preparedQuery {
	q, _ := e.Kind.(*preparedQuery)
	return q
}

// bare is a table with rules, as an INSERT was prepared for it that goes as it
// is: it has none of their columns.
type bare struct {
	name  rewriter.Name
	key   string
	facts *catalog.Table
	rules []*rule.Rule
}

// filler is what is known of a prepared INSERT that gets ids.
type filler struct {
	Plan    *rewriter.Prepared
	head    rewriter.Head
	name    rewriter.Name
	key     string // of the table
	facts   *catalog.Table
	rules   []*rule.Rule
	absent  []*rule.Rule // whose columns the table does not have
	columns []rule.Column
	bound   []boundID     // by parameter
	kept    keptTypes     // of the client's parameters; where some are ids
	keyed   []int         // the client's parameters that genes come from, ascending
	keys    []rule.Column // that genes come from, by rule; nil: none do
	noZero  bool          // NO_AUTO_VALUE_ON_ZERO, as it was at the PREPARE
	// Likewise, where the server was asked for literals:
	strict    bool
	strictAll bool
}

// boundID is a parameter of the client that is an id.
type boundID struct {
	param  int
	column uint8
	later  bool // of another row than the first
}

// boundIDs returns the client's parameters that are ids.
func boundIDs(parameters []rewriter.Parameter) (ids []boundID) {
	client := 0
	for _, p := range parameters {
		if p.Role == rewriter.RoleBound {
			ids = append(ids, boundID{param: client, column: p.Column, later: p.Later})
		}
		if !p.Role.Hidden() {
			client++
		}
	}
	return ids
}

// boundID returns the id that a parameter of the client is.
func (f *filler) boundID(param int) (b boundID, ok bool) {
	at, ok := slices.BinarySearchFunc(f.bound, param, func(b boundID, param int) int { return b.param - param })
	if !ok {
		return b, false
	}
	return f.bound[at], true
}

// preparedQuery is a prepared INSERT whose rows come from a query. How many
// there are is known at an execution only, and so are the ids: each execution
// prepares the statement anew with them, and executes that with the values of
// its parameters. The statement that the client has prepared is never executed.
type preparedQuery struct {
	Text    []byte
	charset rewriter.Charset // as it was at the PREPARE
	name    rewriter.Name
	key     string // of the table
	kind    rewriter.Kind
	rules   []*rule.Rule
	absent  []*rule.Rule // whose columns the table did not have
}

// form says how the ids of a column are written.
func (f *filler) form(column uint8) rule.Form {
	return f.columns[column].Form(f.rules[column].IDs)
}

func (f *filler) wide(column uint8) bool { return f.rules[column].IDs.Wide() }

func (f *filler) anyWide() bool {
	return slices.ContainsFunc(f.rules, func(r *rule.Rule) bool { return r.IDs.Wide() })
}
