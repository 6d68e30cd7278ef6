package decide

import (
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/catalog"
	"idproxy/proxy/draw"
	"idproxy/proxy/protocol"
	"idproxy/proxy/wire"
	"idproxy/rewriter"
)

// Statement is a held command, and what is decided on it. It is used again.
type Statement struct {
	Command
	answers
	decision
	Room int // bytes that are counted for texts that the server was asked for
}

// answers are what was learned for a command, and what became of what was tried.
type answers struct {
	// denied is what the server answered instead of describing tables, to this session
	// and for this statement, by their keys: another user may be told more.
	denied      map[string]*catalog.Table
	Asked       *draw.Asked      // what SET insert_id asks its first statement for; nil: nothing
	Values      []rewriter.Value // of the expressions for ids in its first statement
	Source      *InnerText       // the text that a PREPARE or EXECUTE IMMEDIATE was asked for
	Bound       []rewriter.Value // of the ids among the arguments of an EXECUTE
	FileCharset string           // character_set_database, where a LOAD DATA needs it
	// Until is the statement that the piece ends in front of: one to be refused once those in
	// front are over, or one that is paid for. 0: none.
	Until int
	// Selection is of its only statement, when the rows of that come from a query.
	Selection Selection
}

// Deny notes that the server did not describe a table, or not all of it.
func (a *answers) Deny(key string, f *catalog.Table) {
	if a.denied == nil {
		a.denied = map[string]*catalog.Table{}
	}
	a.denied[key] = f
}

// more forgets what was learned for a piece that was sent.
func (a *answers) more() {
	a.Values, a.Source, a.Bound, a.Until, a.Selection = nil, nil, nil, 0, Selection{}
	a.FileCharset, a.Asked = "", nil
}

// Read takes a held command, one whole packet.
func (st *Statement) Read(command []byte, as protocol.Arrival) {
	payload := wire.Join(command)
	at := 1
	if payload[0] == mysql.COM_QUERY {
		at, _ = wire.QueryText(payload, as.Caps)
	}
	st.whole, st.Prefix, st.Text, st.Seq, st.pieces = payload, payload[:at], payload[at:], as.Seq, 0
	st.Multi, st.Executes, st.head, st.Begun = as.Multi, as.Executes, as.Head, time.Now()
	st.answers = answers{}
	st.writes = finder{-1}
	for i := range st.doubtful {
		st.doubtful[i] = finder{-1}
	}
}

// mayCall reports whether the INSERT or LOAD decided on last may call a function that can set
// variables.
func (d *decision) mayCall(sql []byte, head rewriter.Head) bool {
	if head.Kind == rewriter.Load {
		return rewriter.CallsUnknown(sql, head.Target.Table)
	}
	return d.Filled.plans[len(d.Filled.Parts)-1].MayCall(sql)
}

// Next goes on to the piece behind one that was sent.
func (st *Statement) Next(seq byte) {
	st.Text, st.Seq, st.Begun = st.Text[st.Rest:], seq, time.Now()
	st.pieces++
	st.writes.at = max(st.writes.at-st.Rest, -1)
	for i := range st.doubtful {
		st.doubtful[i].at = max(st.doubtful[i].at-st.Rest, -1)
	}
	st.more()
}

// Forget lets go of the client's bytes, and of all that was learned and decided.
func (st *Statement) Forget() {
	st.head.Forget()
	st.whole, st.Prefix, st.Text, st.Executes, st.reply = nil, nil, nil, nil, nil
	st.answers = answers{}
	st.reset()
	st.at = reading{}
	st.Execution.e, st.forwarded = nil, forwardedExecution{}
}

// decision is what is to be done with the next piece of a command. Its memory is used again.
type decision struct {
	Order    Order
	Prepared *protocol.Stmt    // the statement that is executed or prepared, if anything is known of that
	Dynamic  *rewriter.Dynamic // the PREPARE, EXECUTE or the like in SQL that the piece is
	Found    Findings

	Filled    filled
	Execution execution
	forwarded forwardedExecution
	at        reading            // how far it has come
	reading   rewriter.Statement // what a plan reads
	speller   speller
	Key       []byte // of a table
}

// reset begins a decision on what is left of the text.
func (st *Statement) reset() {
	st.piece = piece{Spans: st.Spans[:0], End: len(st.Text)}
	st.Prepared, st.Dynamic = nil, nil
	st.Found.Reset()
	st.asItCame()
}

// asItCame says that the piece is sent as the client wrote it.
func (d *decision) asItCame() {
	d.Filled.Parts = d.Filled.Parts[:0]
	d.Order = sqlText{&d.Filled}
}

// AsSQL returns the order of a text.
func (d *decision) AsSQL() Order { return sqlText{&d.Filled} }

// KeepInsertID keeps the SET insert_id that the piece is from the server, if it is one: see [kept].
func (st *Statement) KeepInsertID() {
	if st.Prefix[0] != mysql.COM_QUERY || len(st.Spans) != 1 {
		return
	}
	if id := rewriter.ReadInsertID(st.sql()); id > 0 {
		st.Order, st.Touch = kept{id: id}, 0
	}
}

// LeavesInsertID reports whether what SET insert_id asks for need not be told to the server in front of the piece.
func (st *Statement) LeavesInsertID() bool {
	_, asks := st.Order.(kept)
	return asks || st.Prepares()
}

// knownNames says which names outlines may show: those of rules, and of tables that the server has
// described.
func knownNames(t *catalog.Tables, rules protocol.RuleBook) func([]byte) bool {
	return func(name []byte) bool { return rules.Names(name) || t.Knows(name) }
}

// Outline is the statement that is decided on, as rewriter.Outline has it. Of an execution it is
// what was prepared.
func (d *Decider) Outline(st *Statement, mode rewriter.Mode) string {
	if e := st.Prepared; e != nil && e.Own != nil && e.Own.Kept && !st.Prepares() {
		return d.Shape([]byte(e.Own.Text.Value()), e.Own.By.Mode)
	}
	if st.Prefix[0] != mysql.COM_QUERY && st.Prefix[0] != mysql.COM_STMT_PREPARE {
		return "execution of a prepared statement"
	}
	if n := len(st.Spans); n > 0 {
		return d.Shape(st.Text[st.Spans[n-1].Start:st.Spans[n-1].End], mode)
	}
	return d.Shape(st.Text, mode)
}

// Shape is any text as rewriter.Outline has it.
func (d *Decider) Shape(text []byte, mode rewriter.Mode) string {
	return rewriter.Outline(text, mode, knownNames(d.Tables, d.Rules()))
}
