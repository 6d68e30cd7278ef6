package decide

import (
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// decision is what is to be done with the next piece of a command. Its memory is used again.
type decision struct {
	Order    Order
	Prepared *relay.Prepared   // the statement that is executed or prepared, if anything is known of that
	Dynamic  *rewriter.Dynamic // the PREPARE, EXECUTE or the like in SQL that the piece is
	Found    Findings

	Filled    filled
	Execution execution
	forwarded forwardedExecution
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

// piece is what is sent at once of a command, and what that leaves behind.
type piece struct {
	Spans  []rewriter.Span // its statements
	End    int             // where it ends in the text
	Rest   int             // where the next one begins; 0: there is none
	Touch  relay.Touch
	After  *relay.After // what it changes besides
	Owing  bool         // LAST_INSERT_ID() must be paid before it
	Facts  *facts.Table // what is known of the table of its last INSERT that may have ids
	Unseen bool         // it may write to tables out of sight
}

// cut ends the piece in front of its i-th statement.
func (p *piece) cut(i int) {
	p.End, p.Rest = p.Spans[i-1].End, p.Spans[i].Start
	p.Spans = p.Spans[:i]
}

// changes returns what the piece changes besides, for more to be added.
func (p *piece) changes() *relay.After {
	if p.After == nil {
		p.After = &relay.After{}
	}
	return p.After
}

// Order is what is done with a piece: a type for each kind of command.
type Order interface {
	// Draw draws the ids of INSERTs, before anything is sent, and says what is to be expected of
	// the replies to them. at is the statement of the piece that there are none for.
	Draw(s Carrier) (expected []relay.Expect, at int, err error)
	// Write returns what is sent. made: it stands in st.out, behind room for a header, and is
	// not the command as it came.
	Write(s Carrier, st *Command) (payload []byte, made bool, err error)
	// Begin does what must be done just before it is sent.
	Begin(s Carrier, st *Command) error
	// Watcher returns who sees the reply; nil: nobody.
	Watcher(st *Command, expected []relay.Expect) relay.Watcher
	// MayOwe reports whether the server's LAST_INSERT_ID() may come to differ from the native one:
	// what it is in front of the piece must be known.
	MayOwe() bool
	// Asks reports whether the reply may leave a question.
	Asks() bool
	// Asked returns the INSERT or LOAD DATA whose reply left a question; storedSQL asks which of
	// its ids are in the table.
	Asked() *Part
	StoredSQL(e *relay.Expect, table, id []byte) string
	// LetGo closes what was made at the server for the piece.
	LetGo(s Carrier) error
	// Outnumbered is told that a query gave more rows than were counted. It is decided on once
	// more unless it is refused.
	Outnumbered(s Carrier) (refused *mysql.MyError, err error)
	// Went is told how many rows went in.
	Went(s Carrier, rows uint64)
}

// noInserts is an order without INSERTs that get ids. Other orders embed it.
type noInserts struct{}

func (noInserts) Draw(Carrier) ([]relay.Expect, int, error)      { return nil, 0, nil }
func (noInserts) Begin(Carrier, *Command) error                  { return nil }
func (noInserts) MayOwe() bool                                   { return false }
func (noInserts) Asks() bool                                     { return false }
func (noInserts) Asked() *Part                                   { return nil }
func (noInserts) StoredSQL(*relay.Expect, []byte, []byte) string { return "" }
func (noInserts) LetGo(Carrier) error                            { return nil }
func (noInserts) Outnumbered(Carrier) (*mysql.MyError, error)    { return nil, nil }
func (noInserts) Went(Carrier, uint64)                           {}

// Watcher watches a piece that another one follows, too: an error of it may be withheld.
func (noInserts) Watcher(st *Command, expected []relay.Expect) relay.Watcher {
	if expected == nil && st.Rest == 0 {
		return nil
	}
	st.reply = &relay.InsertReply{Inserts: expected, Seq: st.Seq}
	return st.reply
}

// filled are the INSERTs of a piece that get ids.
type filled struct {
	noInserts
	Parts []Part
	plans []rewriter.Plan // by index of the part
}

// Part is one statement of the text that gets ids, or brings its own.
type Part struct {
	result  int
	span    rewriter.Span
	head    rewriter.Head
	Text    []byte        // of the span
	Name    rewriter.Name // with its schema
	Rules   []*rule.Rule
	Facts   *facts.Table
	columns []rule.Column // by rule
	absent  []*rule.Rule  // of a statement to prepare: those whose columns the table does not have
	view    bool          // it is a view that has none of the columns
	ids     [][]uint64    // by rule
	asked   *draw.Asked   // for the first rule, in place of its source's; nil: none
}

// room returns the memory for a part behind those that there are, which it may become, and for
// its plan.
func (x *filled) room() (*Part, *rewriter.Plan) {
	n := len(x.Parts)
	x.Parts = slices.Grow(x.Parts, 1)
	if len(x.plans) <= n {
		x.plans = append(x.plans, rewriter.Plan{})
	}
	p := &x.Parts[:n+1][n]
	*p = Part{Rules: p.Rules[:0], columns: p.columns[:0], ids: p.ids}
	return p, &x.plans[n]
}

// add makes a part of what room gave.
func (x *filled) add() { x.Parts = x.Parts[:len(x.Parts)+1] }
