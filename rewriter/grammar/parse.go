package grammar

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"

	// The parser makes its literals by a driver. This one needs nothing of TiDB but the parser; it
	// panics at decimals of more than 81 digits, and literals are short in what is read here.
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"

	"idproxy/rewriter"
)

// parsers are those not in use. Each keeps the memory of what it read last; the garbage collector
// takes the idle ones.
var parsers = sync.Pool{New: func() any { return parser.New() }}

// errUnread: TiDB's grammar has no such statement.
var errUnread = errors.New("TiDB's parser cannot read it")

// difference says how the two readers differ. It carries no value of the statement.
type difference string

func (d difference) Error() string { return "the second reader differs: " + string(d) }

func differ(format string, args ...any) error { return difference(fmt.Sprintf(format, args...)) }

// parse reads text as one INSERT or REPLACE. It returns errUnread when TiDB cannot read it at all,
// and a difference when it reads something else.
func parse(text string, m rewriter.Mode) (stmt *ast.InsertStmt, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		if recover() != nil { // a fault of the parser, which is then not used again
			stmt, err = nil, errUnread
			return
		}
		parsers.Put(p)
	}()
	p.SetSQLMode(sqlMode(m))
	stmts, _, err := p.Parse(text, "", "")
	switch {
	case err != nil:
		return nil, errUnread
	case len(stmts) != 1:
		return nil, differ("%d statements", len(stmts))
	}
	stmt, ok := stmts[0].(*ast.InsertStmt)
	if !ok {
		return nil, differ("no INSERT")
	}
	if rows, ok := stmt.Select.(*ast.SelectStmt); ok && rows.Kind == ast.SelectStmtKindValues && rows.OrderBy == nil && rows.Limit == nil && rows.With == nil {
		stmt.Select = nil // VALUES ROW(..) is a query to TiDB
		for _, row := range rows.Lists {
			stmt.Lists = append(stmt.Lists, row.Values)
		}
	}
	return stmt, nil
}

func sqlMode(m rewriter.Mode) (mode mysql.SQLMode) {
	if m.ANSIQuotes {
		mode |= mysql.ModeANSIQuotes
	}
	if m.NoBackslashEscapes {
		mode |= mysql.ModeNoBackslashEscapes
	}
	return mode
}

// restore prints a part of a statement in one way, whatever way it was written in.
func restore(n ast.Node) string {
	var b strings.Builder
	if err := n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
		return "unprintable: " + err.Error()
	}
	return b.String()
}

// tableName returns the table that a statement writes to.
func tableName(s *ast.InsertStmt) *ast.TableName {
	return s.Table.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName)
}
