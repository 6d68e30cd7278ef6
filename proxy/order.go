package proxy

import (
	"slices"

	"idproxy/proxy/draw"
	"idproxy/proxy/facts"
	"idproxy/proxy/relay"
	"idproxy/rewriter"
	"idproxy/rule"
)

// decision is what is to be done with the next piece of a command. Its memory is used again.
type decision struct {
	piece
	order    order
	prepared *relay.Prepared   // the statement that is executed or prepared, if anything is known of that
	dynamic  *rewriter.Dynamic // the PREPARE, EXECUTE or the like in SQL that the piece is
	found    findings

	filled    filled
	execution execution
	forwarded forwardedExecution
	reading   rewriter.Statement // what a plan reads
	speller   speller
	key       []byte // of a table
}

// reset begins a decision on a text, of which nothing is known.
func (d *decision) reset(text []byte) {
	d.piece = piece{spans: d.spans[:0], end: len(text)}
	d.prepared, d.dynamic = nil, nil
	d.found.reset()
	d.asItCame()
}

// asItCame says that the piece is sent as the client wrote it.
func (d *decision) asItCame() {
	d.filled.parts = d.filled.parts[:0]
	d.order = sqlText{&d.filled}
}

// piece is what is sent at once of a command, and what that leaves behind.
type piece struct {
	spans  []rewriter.Span // its statements
	end    int             // where it ends in the text
	rest   int             // where the next one begins; 0: there is none
	touch  relay.Touch
	after  *relay.After // what it changes besides
	owing  bool         // LAST_INSERT_ID() must be paid before it
	facts  *facts.Table // what is known of the table of its last INSERT that may have ids
	unseen bool         // it may write to tables out of sight
}

// cut ends the piece in front of its i-th statement.
func (p *piece) cut(i int) {
	p.end, p.rest = p.spans[i-1].End, p.spans[i].Start
	p.spans = p.spans[:i]
}

// changes returns what the piece changes besides, for more to be added.
func (p *piece) changes() *relay.After {
	if p.after == nil {
		p.after = &relay.After{}
	}
	return p.after
}

// order is what is done with a piece: a type for each kind of command.
type order interface {
	// draw draws the ids of INSERTs, before anything is sent, and says what is to be expected of
	// the replies to them. at is the statement of the piece that there are none for.
	draw(s *session, st *statement) (expected []relay.Expect, at int, err error)
	// write returns what is sent. made: it stands in st.out, behind room for a header, and is
	// not the command as it came.
	write(s *session, st *statement) (payload []byte, made bool, err error)
	// begin does what must be done just before it is sent.
	begin(s *session, st *statement) error
	// watcher returns who sees the reply; nil: nobody.
	watcher(st *statement, expected []relay.Expect) relay.Watcher
	// mayOwe reports whether the server's LAST_INSERT_ID() may come to differ from the native one:
	// what it is in front of the piece must be known.
	mayOwe() bool
	// asks reports whether the reply may leave a question.
	asks() bool
	// asked returns the INSERT or LOAD DATA whose reply left a question; storedSQL asks which of
	// its ids are in the table.
	asked() *part
	storedSQL(e *relay.Expect, table, id []byte) string
	// letGo closes what was made at the server for the piece.
	letGo(s *session) error
	// outnumbered is told that a query gave more rows than were counted. again: it is decided on
	// once more.
	outnumbered(s *session, st *statement) (again bool, err error)
	// went is told how many rows went in.
	went(s *session, rows uint64)
}

// noInserts is an order without INSERTs that get ids. Other orders embed it.
type noInserts struct{}

func (noInserts) draw(*session, *statement) ([]relay.Expect, int, error)   { return nil, 0, nil }
func (noInserts) begin(*session, *statement) error                         { return nil }
func (noInserts) mayOwe() bool                                             { return false }
func (noInserts) asks() bool                                               { return false }
func (noInserts) asked() *part                                             { return nil }
func (noInserts) storedSQL(*relay.Expect, []byte, []byte) string           { return "" }
func (noInserts) letGo(*session) error                                     { return nil }
func (noInserts) outnumbered(*session, *statement) (again bool, err error) { return false, nil }
func (noInserts) went(*session, uint64)                                    {}

// watcher watches a piece that another one follows, too: an error of it may be withheld.
func (noInserts) watcher(st *statement, expected []relay.Expect) relay.Watcher {
	if expected == nil && st.rest == 0 {
		return nil
	}
	st.reply = &relay.InsertReply{Inserts: expected, Seq: st.seq}
	return st.reply
}

// filled are the INSERTs of a piece that get ids.
type filled struct {
	noInserts
	parts []part
	plans []rewriter.Plan // by index of the part
}

// part is one statement of the text that gets ids, or brings its own.
type part struct {
	result  int
	span    rewriter.Span
	head    rewriter.Head
	text    []byte        // of the span
	name    rewriter.Name // with its schema
	rules   []*rule.Rule
	facts   *facts.Table
	columns []rule.Column // by rule
	absent  []*rule.Rule  // of a statement to prepare: those whose columns the table does not have
	view    bool          // it is a view that has none of the columns
	ids     [][]uint64    // by rule
	asked   *draw.Asked   // for the first rule, in place of its source's; nil: none
}

// room returns the memory for a part behind those that there are, which it may become, and for
// its plan.
func (x *filled) room() (*part, *rewriter.Plan) {
	n := len(x.parts)
	x.parts = slices.Grow(x.parts, 1)
	if len(x.plans) <= n {
		x.plans = append(x.plans, rewriter.Plan{})
	}
	p := &x.parts[:n+1][n]
	*p = part{rules: p.rules[:0], columns: p.columns[:0], ids: p.ids}
	return p, &x.plans[n]
}

// add makes a part of what room gave.
func (x *filled) add() { x.parts = x.parts[:len(x.parts)+1] }
