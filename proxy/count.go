package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/clienterr"
	"idproxy/proxy/decide"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// findExact asks for the exactness of a query.
func (s learner) findExact(n decide.NeedExact) error {
	exact, err := catalog.IsExact(s.questions(), n.Plan, n.Part.Text)
	if s.st.Selection.Exact = decide.ExactNot; exact {
		s.st.Selection.Exact = decide.ExactSurely
	}
	return err
}

// findSound finds out whether the columns and values of an INSERT ... SELECT fit its tables. Where
// they do not the server must say so itself: our questions begin a transaction
// elsewhere than it does, or not at all.
func (s learner) findSound(p *decide.Part) error {
	_, own, err := catalog.TryPrepare(s.questions(), p.Text)
	switch {
	case err != nil:
		return err
	case own != nil && misresolved(own) && s.st.Prefix[0] == mysql.COM_QUERY:
		return errUnsound
	case own != nil && (misresolved(own) || own.Code == mysql.ER_NO_SUCH_TABLE):
		return own
	}
	s.st.Selection.Sound = true // or refused for something else
	return nil
}

// count asks how many rows the query of an INSERT gives.
func (s learner) count(n decide.NeedCount) error {
	sel := &s.st.Selection
	if err := s.isolation(sel); err != nil {
		return err
	}
	sql := n.Plan.AppendCount(nil, n.Part.Text, sel.Isolated)
	if err := s.payFor(string(sql)); err != nil {
		return err
	}
	answer, err := s.counted(sql, n.Plan.Marks())
	if refused, ok := errors.AsType[*mysql.MyError](err); ok {
		if miscounts(refused) && n.Part.Facts.At.Before(s.st.Begun) { // by what the table was
			return s.describe(n.Part.Name, string(s.st.Key))
		}
		if miscounts(refused) && s.st.Prefix[0] == mysql.COM_QUERY && s.c.Vars().Manual {
			return errUnsound
		}
		return s.nativeError(n.Part, refused)
	}
	var c *rewriter.Counted
	if err == nil {
		c, err = catalog.ReadCount(&answer, len(n.Plan.Columns), n.Plan.Asked())
	}
	if err != nil {
		return fmt.Errorf("the rows of a query: %w", err)
	}
	s.c.LearnLastID(c.LastID)
	sel.Counted = c
	return nil
}

// counted asks the question, for an execution with the values of its first
// parameters.
func (s learner) counted(sql []byte, marks int) (wire.Result, error) {
	if s.st.Prefix[0] == mysql.COM_STMT_EXECUTE {
		return s.executeCount(sql, marks)
	}
	return s.questions().Query(string(sql))
}

// isolation finds out whether the rows must be counted under a lock: in a
// transaction of REPEATABLE READ a plain count is of an older state than what
// INSERT ... SELECT reads, which takes locks too. READ COMMITTED takes none.
func (s learner) isolation(sel *decide.Selection) error {
	now := s.c.Vars()
	open := now.InTrans || now.Manual
	if !open || sel.Tries > 0 {
		sel.Isolated = open
		return nil
	}
	isolated, err := s.Asker().Isolated()
	sel.Isolated = isolated
	return err
}

// miscounts reports whether an error says that the query gives another number
// of columns than was thought.
func miscounts(e *mysql.MyError) bool {
	return e.Code == errViewWrongList || e.Code == errWithColumnCount
}

// nativeError returns what the server says of an INSERT whose query it refuses
// to count. What is wrong with the text or its names is found when it is prepared, and
// may be another error than that of the query alone.
func (s learner) nativeError(p *decide.Part, refused *mysql.MyError) error {
	if miscounts(refused) {
		return clienterr.New(mysql.ER_WRONG_VALUE_COUNT_ON_ROW, "21S01", "Column count doesn't match value count at row 1")
	}
	const ofText = "42" // the class of SQL states
	if !strings.HasPrefix(refused.State, ofText) {
		return refused
	}
	_, own, err := catalog.TryPrepare(s.questions(), p.Text)
	if err != nil {
		return err
	}
	if own != nil {
		return own
	}
	if refused.Code == mysql.ER_PARSE_ERROR || refused.Code == mysql.ER_CANT_USE_OPTION_HERE {
		return clienterr.Unsupported(p.Rules[0], p.Name, "INSERT ... SELECT whose query cannot stand inside another")
	}
	return refused
}

// Errors of a query that names its columns, WITH d(a,b) AS (..), in place of
// ER_WRONG_VALUE_COUNT_ON_ROW.
const (
	errViewWrongList   = 1353 // MySQL
	errWithColumnCount = 4002 // MariaDB
)

// errUnsound says that the server refuses a statement as the client wrote it.
var errUnsound = errors.New("the server refuses the statement")

// executeCount asks how many rows the query of an execution gives, with the values
// of its first parameters.
func (s learner) executeCount(sql []byte, marks int) (wire.Result, error) {
	parameters := s.st.Execution.One.Parameters
	if marks > len(parameters) {
		return wire.Result{}, clienterr.Arguments("mysqld_stmt_execute")
	}
	execution := decide.ExecutionOf(&s.st.Execution.One, s.c.Caps, 0, parameters[:marks])
	if e := s.c.TooLarge(len(s.st.Prefix)+s.st.End, len(execution)); e != nil { // with the types, which the client need not repeat
		return wire.Result{}, e
	}
	made, err := s.questions().Prepare(sql)
	if err != nil {
		return wire.Result{}, err
	}
	const cursors = 1 | 2 | 4 // flags that would keep the rows at the server
	execution[5] &^= cursors
	binary.LittleEndian.PutUint32(execution[1:], made.ID)
	packets, err := s.ask(wire.AppendPacket(nil, 0, execution), protocol.ReplyResult)
	if err != nil {
		return wire.Result{}, err
	}
	if err := s.questions().Close(made.ID); err != nil {
		return wire.Result{}, err
	}
	return wire.ReadBinaryResult(packets, s.c.Caps, made.Shown.Payloads)
}
