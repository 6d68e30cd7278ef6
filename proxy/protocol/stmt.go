package protocol

import (
	"bytes"
	"slices"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/wire"
	"idproxy/rewriter"
	"idproxy/rule"
)

// Stmt is a statement that the client has prepared and that is more than
// passed on. Once it was sent only the goroutine that reads from the client uses it,
// but for what the reply to its PREPARE says.
type Stmt struct {
	Number uint32 // the server's; 0: its reply has not come
	Own    *OwnText
	Touch  Touch                 // what an execution may change
	Reads  bool                  // LAST_INSERT_ID() must be right before an execution
	LastID *rewriter.LastIDQuery // nil: it is something else
	Unseen bool                  // an execution may write to tables out of sight
	// target is the table of an INSERT; book are the rules that it was prepared by.
	target rewriter.Name
	Book   *rule.List
	Unread bool // prepared in SQL, unread while no table had a rule
	// Makes is the key of the temporary table that a statement prepared in SQL makes.
	Makes  string
	Kind   kind    // nil: an execution goes as it is
	Hidden *Hidden // the server's parameters that the client does not have; nil: none
	// Of the reply to the PREPARE:
	Broken bool // the server counts other parameters than the proxy; under the conversation's mu
	Failed Flag // it was an ERR

	Params   int      // the client's parameters
	Types    []uint16 // of those, as it gave them last
	Untyped  bool     // the server, which has the statement anew, was not told
	Renewed  bool     // since its last execution
	Reshaped bool     // its table had another number of columns before it was
	Long     LongData
}

// Flag is raised by one goroutine and looked at by another. A statement is copied only when nobody
// raises its flag any more.
type Flag struct{ up uint32 }

// Raise raises the flag for good.
func (f *Flag) Raise() { atomic.StoreUint32(&f.up, 1) }

// Raised reports whether somebody has raised it.
func (f *Flag) Raised() bool { return atomic.LoadUint32(&f.up) != 0 }

// kind is what a prepared statement is to a decision on its executions.
type kind interface {
	// Held reports whether each execution is decided on.
	Held() bool
	// FollowsRules reports whether the PREPARE was decided on by the rules of its table: by
	// others it is another statement.
	FollowsRules() bool
}

// LongData is what COM_STMT_SEND_LONG_DATA has brought since the last execution.
type LongData struct {
	Sent map[int]bool   // the client's parameters whose data the server has
	IDs  map[int][]byte // those that are ids: the server has nothing of them
	// Ready: the statement was made the right one when the first piece came, or that was
	// refused.
	Ready   bool
	Refused *mysql.MyError
}

// AtServer notes that the server has data of a parameter.
func (l *LongData) AtServer(param int) {
	if l.Sent == nil {
		l.Sent = map[int]bool{}
	}
	l.Sent[param] = true
}

// Has reports whether data of a parameter has come.
func (l *LongData) Has(param int) bool {
	_, id := l.IDs[param]
	return id || l.Sent[param]
}

// MaxLongID bounds the text of an id that comes as long data; no column holds an
// id that long.
const MaxLongID = 4096

// NewStmt returns what is to be known of a statement that is prepared as it
// is: nil when nothing is. sql is all of it, or, unless whole, its beginning.
func NewStmt(head rewriter.Head, sql []byte, whole bool) *Stmt {
	var p Pending
	Changes(&p, head, sql, whole)
	e := &Stmt{Touch: p.Touch, Unseen: p.Unseen}
	runs := false
	switch head.Kind {
	case rewriter.Call, rewriter.Prepare, rewriter.Execute, rewriter.Compound:
		runs = true
		fallthrough // they may do what DDL does
	case rewriter.DDL:
		e.Touch |= TouchAll
	case rewriter.Use:
		e.Touch |= TouchSchema
	}
	e.Reads = !whole || (runs || rewriter.MentionsLastID(sql) || head.HidesLastID()) && !rewriter.ReadsDiagnostics(sql)
	if e.Touch == 0 && !e.Reads {
		return nil
	}
	if q, ok := rewriter.ReadLastIDQuery(sql); ok && whole {
		e.LastID = &q
	}
	return e
}

// Inserts reports whether a statement may be one that rules concern.
func Inserts(head rewriter.Head) bool {
	return head.Kind == rewriter.Insert || head.Kind == rewriter.Replace
}

// Aims notes the table of an INSERT, and its text, nil when too little of it was seen.
func (e *Stmt) Aims(head rewriter.Head, text []byte, s *Vars, book *rule.List) {
	e.target, e.Book = CloneName(head.Target), book
	if len(e.target.Schema) == 0 {
		e.target.Schema = bytes.Clone(s.KnownSchema())
	}
	if text != nil {
		e.Own = newOwnText(text, head, s)
	}
}

// CloneName copies a name, for it to outlive the command.
func CloneName(n rewriter.Name) rewriter.Name {
	return rewriter.Name{Schema: bytes.Clone(n.Schema), Table: bytes.Clone(n.Table)}
}

// Ruled reports whether the rules of the INSERT are not those that it was prepared by:
// a reload has brought others.
func (e *Stmt) Ruled(book RuleBook) bool {
	if e.Book == nil || e.Book == book.List {
		return false
	}
	if e.Kind != nil && e.Kind.FollowsRules() {
		return true
	}
	if len(e.target.Schema) == 0 {
		return book.MayMatch(e.target.Table, book.Fold)
	}
	for _, rule := range book.Match(e.target.Schema, e.target.Table, book.Fold) {
		if !rule.Observe {
			return true
		}
	}
	return false
}

// MayShowOthers notes in p, which executes the statement, where the result may show other columns than
// the one before. MariaDB then sets SERVER_STATUS_METADATA_CHANGED if it prepared the statement anew
// itself, and RETURNING stands behind SET: it counts the columns of the first SELECT_LEX
// (Prepared_statement::validate_metadata), which is not that of RETURNING in other forms.
func (e *Stmt) MayShowOthers(p *Pending) {
	if e.Own != nil && e.Own.showsAll {
		p.shows, p.renewed, p.reshaped = e.Own, e.Renewed, e.Reshaped
	}
	e.Renewed = false
}

// Held reports whether every execution is decided on.
func (e *Stmt) Held() bool {
	return e.Untyped || e.Kind != nil && e.Kind.Held()
}

// noteTypes keeps the types that an execution gives the parameters, for a server
// that has the statement anew does not know them. It reports false when the packet
// ends in front of them.
func (e *Stmt) noteTypes(payload []byte, caps uint64) bool {
	types, ok := TypesOf(e.Types, payload, caps, e.Params)
	if len(types) > 0 {
		e.Types = types
	}
	return ok
}

// TypesOf returns the types that an execution gives the n parameters of its statement, in the
// memory of dst.
func TypesOf(dst []uint16, payload []byte, caps uint64, n int) (types []uint16, ok bool) {
	if n == 0 {
		return dst[:0], true
	}
	read := wire.AppendTypes
	if payload[0] == ComBulkExecute {
		read = wire.AppendBulkTypes
	}
	return read(dst[:0], payload, caps, n)
}

// Learn takes what the server said of a statement.
func (e *Stmt) Learn(p wire.Prepared) {
	e.Number, e.Params = p.ID, int(p.Params)
	if e.Hidden == nil {
		return
	}
	if e.Broken = e.Params != len(e.Hidden.All); !e.Broken {
		e.Params = e.Hidden.Client
	}
}

// Hidden are the parameters of a statement that the server has with some of the proxy's among the
// client's: those that the ids of an INSERT are bound to.
type Hidden struct {
	All    []rewriter.Parameter
	Client int      // how many are the client's
	places []uint16 // of those among all, once long data has asked for them
	// derived are the types of the client's parameters, once the reply to the PREPARE has come.
	derived atomic.Pointer[[]uint16]
}

// Derived returns the types that the server gave the client's parameters at the PREPARE, maybe with
// wire.Unsigned. There are none where nobody has seen them, or where no parameter is an id.
func (h *Hidden) Derived() []uint16 {
	if types := h.derived.Load(); types != nil {
		return *types
	}
	return nil
}

// binds reports whether one of the client's parameters is an id.
func (h *Hidden) binds() bool {
	return slices.ContainsFunc(h.All, func(p rewriter.Parameter) bool { return p.Role == rewriter.RoleBound })
}

// position returns the place among all parameters of one of the client's, and its
// role. What the client does not have lies behind all.
func (h *Hidden) position(client int) (at int, role rewriter.Role) {
	if h.places == nil {
		for i := range h.All {
			if !h.All[i].Role.Hidden() {
				h.places = append(h.places, uint16(i))
			}
		}
	}
	if client >= len(h.places) {
		return len(h.All) + client - len(h.places), rewriter.RoleValue
	}
	at = int(h.places[client])
	return at, h.All[at].Role
}

// Hides reports whether the n-th packet behind the first of a reply to the
// PREPARE is not for the client: the definition of a hidden parameter, or the
// EOF behind definitions of which none is left. defined: there are definitions;
// ended: and an EOF behind them.
func (h *Hidden) Hides(n int, defined, ended bool) bool {
	if defined && n < len(h.All) {
		return h.All[n].Role.Hidden()
	}
	if defined {
		n -= len(h.All)
	}
	return ended && n == 0 && h.Client == 0 && len(h.All) > 0
}
